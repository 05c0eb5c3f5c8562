#define _GNU_SOURCE
#include "CLLTestProcess.h"
#include "Original.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

struct fault_plan {
    enum fault_call call;
    int error_number;
    long first, most;
    atomic_long end, open_descriptors, counts[FAULT_CALL_COUNT];
    struct fault_plan *earlier;
};

enum { DESCRIPTORS = 65536 };

/* The plan of the descriptors that this thread opens. */
static _Thread_local struct fault_plan *plan;
/* The plan of each descriptor. */
static _Atomic(struct fault_plan *) owners[DESCRIPTORS];

/* All plans: none is freed, since a descriptor may outlive its test, and the sanitizer reports what nothing points to. */
static _Atomic(struct fault_plan *) latest;

struct fault_plan *fault_plan_make(enum fault_call call, long first, long end, int error_number, long most) {
    struct fault_plan *made = calloc(1, sizeof *made);
    if (!made)
        abort();
    made->call = call;
    made->error_number = error_number;
    made->first = first;
    made->most = most;
    made->end = end;
    made->earlier = latest;
    while (!atomic_compare_exchange_weak(&latest, &made->earlier, made)) {
    }
    return made;
}

void fault_plan_use(struct fault_plan *used) { plan = used; }
void fault_plan_end(struct fault_plan *ended) { ended->end = 0; }
long fault_plan_count(struct fault_plan *counted, enum fault_call call) { return counted->counts[call]; }
long fault_plan_open_descriptors(struct fault_plan *counted) { return counted->open_descriptors; }

static struct fault_plan *plan_of(int fd) { return fd >= 0 && fd < DESCRIPTORS ? owners[fd] : NULL; }

static int fails(struct fault_plan *plan, enum fault_call call) {
    if (!plan)
        return 0;
    long number = atomic_fetch_add(&plan->counts[call], 1) + 1;
    if (plan->call != call || number < plan->first || number >= plan->end)
        return 0;
    errno = plan->error_number;
    return 1;
}

static int opened(struct fault_plan *plan, int fd) {
    if (plan && fd >= 0 && fd < DESCRIPTORS) {
        plan->open_descriptors++;
        owners[fd] = plan;
    }
    return fd;
}

int close(int fd) {
    struct fault_plan *owner = fd >= 0 && fd < DESCRIPTORS ? atomic_exchange(&owners[fd], NULL) : NULL;
    if (owner)
        owner->open_descriptors--;
    return ORIGINAL(close)(fd);
}

int socket(int domain, int type, int protocol) { return opened(plan, ORIGINAL(socket)(domain, type, protocol)); }

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) {
    struct fault_plan *plan = plan_of(fd);
    return fails(plan, FAULT_ACCEPT) ? -1 : opened(plan, ORIGINAL(accept4)(fd, address, length, flags));
}

ssize_t recv(int fd, void *buffer, size_t count, int flags) {
    return fails(plan_of(fd), FAULT_RECEIVE) ? -1 : ORIGINAL(recv)(fd, buffer, count, flags);
}

ssize_t send(int fd, const void *buffer, size_t count, int flags) {
    struct fault_plan *plan = plan_of(fd);
    if (fails(plan, FAULT_SEND))
        return -1;
    size_t most = plan && (size_t)plan->most < count ? (size_t)plan->most : count;
    return ORIGINAL(send)(fd, buffer, most, flags);
}

int shutdown(int fd, int how) {
    return how == SHUT_WR && fails(plan_of(fd), FAULT_SHUTDOWN) ? -1 : ORIGINAL(shutdown)(fd, how);
}

int epoll_create1(int flags) {
    return fails(plan, FAULT_CREATE_POLL) ? -1 : opened(plan, ORIGINAL(epoll_create1)(flags));
}

int epoll_ctl(int poll, int operation, int fd, struct epoll_event *event) {
    int can_fail = operation != EPOLL_CTL_DEL;
    return can_fail && fails(plan_of(poll), FAULT_CONTROL) ? -1 : ORIGINAL(epoll_ctl)(poll, operation, fd, event);
}

int epoll_wait(int poll, struct epoll_event *events, int most, int milliseconds) {
    return fails(plan_of(poll), FAULT_WAIT) ? -1 : ORIGINAL(epoll_wait)(poll, events, most, milliseconds);
}

int eventfd(unsigned int value, int flags) {
    return fails(plan, FAULT_CREATE_EVENT_DESCRIPTOR) ? -1 : opened(plan, ORIGINAL(eventfd)(value, flags));
}
