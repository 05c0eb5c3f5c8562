#define _GNU_SOURCE
#include "CLLTestProcess.h"
#include "Original.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A thread of a simulation. The first is its owner, which lets one other at a time run until that one waits. */
struct actor {
    struct simulated_time *world;
    long long lead;
    void (*body)(void *);
    void *context;
    pthread_t thread;
    sem_t turn;
    struct pollfd *polled;
    nfds_t count;
    uint64_t deadline;
    int is_dead, has_ended;
};

enum { ACTORS = 64 };

struct simulated_time {
    _Atomic uint64_t now;
    uint64_t random;
    simulated_listener listener;
    void *context;
    sem_t waits;
    struct actor actors[ACTORS];
    int count;
};

static _Thread_local struct actor *here;

struct simulated_time *simulated_time_begin(unsigned long long seed, simulated_listener listener, void *context) {
    struct simulated_time *world = calloc(1, sizeof *world);
    if (!world)
        abort();
    *world = (struct simulated_time){.random = seed * 2 + 1, .listener = listener, .context = context, .count = 1};
    sem_init(&world->waits, 0, 0);
    here = world->actors;
    here->world = world;
    return world;
}

static void let_run(struct actor *actor) {
    sem_post(&actor->turn);
    sem_wait(&actor->world->waits);
}

static void *run(void *argument) {
    here = argument;
    sem_wait(&here->turn);
    here->body(here->context);
    here->has_ended = 1;
    sem_post(&here->world->waits);
    return NULL;
}

int simulated_time_start(struct simulated_time *world, long long lead, void (*body)(void *), void *context) {
    struct actor *made = &world->actors[world->count];
    *made = (struct actor){.world = world, .lead = lead, .body = body, .context = context};
    sem_init(&made->turn, 0, 0);
    if (world->count == ACTORS - 1 || pthread_create(&made->thread, NULL, run, made))
        abort();
    let_run(made);
    return world->count++;
}

unsigned long long simulated_time_settle(struct simulated_time *world) {
    uint64_t first = UINT64_MAX;
    for (struct actor *actor = &world->actors[1]; actor < &world->actors[world->count]; actor++) {
        while (!actor->has_ended && (actor->deadline <= world->now || ORIGINAL(poll)(actor->polled, actor->count, 0)))
            let_run(actor);
        if (!actor->has_ended && actor->deadline < first)
            first = actor->deadline;
    }
    return first;
}

void simulated_time_kill(struct simulated_time *world, int index) {
    struct actor *actor = &world->actors[index];
    actor->is_dead = 1;
    if (!actor->has_ended)
        let_run(actor);
    pthread_join(actor->thread, NULL);
}

void simulated_time_end(struct simulated_time *world) {
    here = NULL;
    free(world);
}

unsigned long long simulated_time_now(struct simulated_time *world) { return world->now; }
void simulated_time_set(struct simulated_time *world, unsigned long long now) { world->now = now; }
void simulated_time_set_lead(struct simulated_time *world, long long lead) { world->actors[0].lead = lead; }

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!here)
        return ORIGINAL(clock_gettime)(clock, time);
    uint64_t now = here->world->now + (clock == CLOCK_MONOTONIC ? 0 : (uint64_t)here->lead);
    /* Every deadline of a dead thread has passed. */
    if (here->is_dead)
        now = INT64_MAX;
    *time = (struct timespec){.tv_sec = (time_t)(now / 1000000000), .tv_nsec = (long)(now % 1000000000)};
    return 0;
}

int poll(struct pollfd *polled, nfds_t count, int milliseconds) {
    if (!here || here == here->world->actors)
        return ORIGINAL(poll)(polled, count, milliseconds);
    here->deadline = milliseconds < 0 ? UINT64_MAX : here->world->now + (uint64_t)milliseconds * 1000000;
    here->polled = polled;
    here->count = count;
    for (;;) {
        int ready = here->is_dead ? 0 : ORIGINAL(poll)(polled, count, 0);
        if (here->is_dead || ready != 0 || here->deadline <= here->world->now)
            return ready;
        sem_post(&here->world->waits);
        sem_wait(&here->turn);
    }
}

int connect(int fd, const struct sockaddr *address, socklen_t length) {
    int pair[2];
    if (!here || address->sa_family != AF_INET)
        return ORIGINAL(connect)(fd, address, length);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair))
        return -1;
    dup2(pair[0], fd);
    close(pair[0]);
    if (here->world->listener(here->world->context, ntohs(((const struct sockaddr_in *)address)->sin_port), pair[1]))
        return 0;
    close(pair[1]);
    errno = ECONNREFUSED;
    return -1;
}

/* Swift asks here for random numbers, 8 bytes at a time; OpenSSL asks for more. */
long syscall(long number, ...) {
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int index = 0; index < 6; index++)
        a[index] = va_arg(rest, long);
    va_end(rest);
    if (!here || number != SYS_getrandom || a[1] < 1 || a[1] > 8)
        return ORIGINAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    for (long index = 0; index < a[1]; index++) {
        here->world->random = here->world->random * 6364136223846793005 + 1442695040888963407;
        ((unsigned char *)a[0])[index] = (unsigned char)(here->world->random >> 56);
    }
    return a[1];
}
