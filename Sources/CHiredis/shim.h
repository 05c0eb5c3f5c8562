#ifndef LIMITED_LOGIN_CHIREDIS_SHIM_H
#define LIMITED_LOGIN_CHIREDIS_SHIM_H

#include <stddef.h>

#include <hiredis/hiredis.h>
#include <hiredis/read.h>

/* An array of more elements than this is refused before memory is had for it: no answer this project asks for has more
   than two, and the reader would believe a peer that announces thousands of millions. */
#define CHIREDIS_MOST_ELEMENTS 16

/* The reader makes its replies by these, each handing on to the reader's own functions, which stand in `privdata`. */
static inline redisReplyObjectFunctions *CHiredis_own(const redisReadTask *task) {
    return (redisReplyObjectFunctions *)task->privdata;
}

static inline void *CHiredis_string(const redisReadTask *task, char *bytes, size_t count) {
    return CHiredis_own(task)->createString(task, bytes, count);
}

static inline void *CHiredis_array(const redisReadTask *task, int count) {
    /* NULL is what the reader takes for a lack of memory: it stops with an error. */
    if (count < 0 || count > CHIREDIS_MOST_ELEMENTS) return NULL;
    return CHiredis_own(task)->createArray(task, count);
}

static inline void *CHiredis_integer(const redisReadTask *task, long long value) {
    return CHiredis_own(task)->createInteger(task, value);
}

static inline void *CHiredis_nil(const redisReadTask *task) {
    return CHiredis_own(task)->createNil(task);
}

static redisReplyObjectFunctions CHiredis_bounded_functions = {
    CHiredis_string, CHiredis_array, CHiredis_integer, CHiredis_nil, freeReplyObject,
};

/* A reader whose replies are bounded; NULL without memory. */
static inline redisReader *CHiredis_reader_create(void) {
    redisReader *reader = redisReaderCreate();
    if (reader == NULL) return NULL;
    reader->privdata = reader->fn;
    reader->fn = &CHiredis_bounded_functions;
    return reader;
}

#endif
