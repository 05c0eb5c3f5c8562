#define _GNU_SOURCE
#include "CLLThreads.h"

#include <time.h>

int platform_start_thread(void *(*body)(void *), void *context) {
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0)
        return -error;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    /* Below 2 MiB, so that the system does not back a whole stack with one huge page. */
    pthread_attr_setstacksize(&attributes, 1 << 20);
    pthread_t thread;
    error = pthread_create(&thread, &attributes, body, context);
    pthread_attr_destroy(&attributes);
    return -error;
}

void platform_name_thread(const char *name) {
#ifdef __APPLE__
    pthread_setname_np(name);
#else
    pthread_setname_np(pthread_self(), name);
#endif
}

int platform_make_condition(pthread_cond_t *condition) {
#ifdef __APPLE__
    return -pthread_cond_init(condition, NULL);
#else
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);
    if (error != 0)
        return -error;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    error = pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return -error;
#endif
}

void platform_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t nanoseconds) {
#ifdef __APPLE__
    uint64_t now = platform_monotonic_nanoseconds();
    uint64_t rest = nanoseconds > now ? nanoseconds - now : 0;
    struct timespec time = {.tv_sec = (time_t)(rest / 1000000000u), .tv_nsec = (long)(rest % 1000000000u)};
    pthread_cond_timedwait_relative_np(condition, mutex, &time);
#else
    struct timespec time = {
        .tv_sec = (time_t)(nanoseconds / 1000000000u), .tv_nsec = (long)(nanoseconds % 1000000000u)};
    pthread_cond_timedwait(condition, mutex, &time);
#endif
}

uint64_t platform_monotonic_nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int64_t platform_unix_seconds(void) {
    struct timespec time;
#ifdef __linux__
    clock_gettime(CLOCK_REALTIME_COARSE, &time);
#else
    clock_gettime(CLOCK_REALTIME, &time);
#endif
    return time.tv_sec;
}

int64_t platform_unix_nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}
