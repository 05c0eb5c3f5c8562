/*
 * The calls about threads and clocks that Swift cannot name. They exist on Linux and on Darwin; what exists on Linux alone is
 * in CLLSystem. Every function that can fail returns a negated errno.
 */
#ifndef LIMITED_LOGIN_CTHREADS_H
#define LIMITED_LOGIN_CTHREADS_H

#include <pthread.h>
#include <stdint.h>

/* Starts a detached thread with a stack of 1 MiB. */
int platform_start_thread(void *(*body)(void *), void *context);
/* Names the calling thread; at most 15 bytes. */
void platform_name_thread(const char *name);

/* A condition whose deadlines are those of platform_monotonic_nanoseconds. */
int platform_make_condition(pthread_cond_t *condition);
/* Waits until the condition is signalled or the moment has come. The caller holds the mutex. */
void platform_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t nanoseconds);

uint64_t platform_monotonic_nanoseconds(void);
int64_t platform_unix_seconds(void);
int64_t platform_unix_nanoseconds(void);

#endif
