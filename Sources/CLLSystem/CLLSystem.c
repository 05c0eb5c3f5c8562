#define _GNU_SOURCE
#include "CLLSystem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define NEGATED(call)            \
    do {                         \
        long result = (call);    \
        if (result < 0)          \
            return -errno;       \
        return result;           \
    } while (0)

int platform_close(int fd) { NEGATED(close(fd)); }
long platform_recv(int fd, void *buffer, size_t count) { NEGATED(recv(fd, buffer, count, 0)); }
long platform_send(int fd, const void *buffer, size_t count) { NEGATED(send(fd, buffer, count, MSG_NOSIGNAL)); }
int platform_shutdown_write(int fd) { NEGATED(shutdown(fd, SHUT_WR)); }

int platform_socket(size_t count, int port) {
    int family = port < 0 ? AF_UNIX : count == 16 ? AF_INET6 : AF_INET;
    NEGATED(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

static int set_option(int fd, int level, int name, int value) {
    NEGATED(setsockopt(fd, level, name, &value, sizeof value));
}

int platform_set_reuse_address(int fd) { return set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1); }
int platform_set_reuse_port(int fd) { return set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1); }
int platform_set_ipv6_only(int fd) { return set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1); }
int platform_set_no_delay(int fd) { return set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1); }

/* A path needs its terminating NUL. An abstract name (first byte '@') may fill the whole field. */
static socklen_t to_unix_address(const char *name, size_t count, struct sockaddr_un *out) {
    memset(out, 0, sizeof *out);
    out->sun_family = AF_UNIX;
    if (count == 0 || count >= sizeof out->sun_path)
        return 0;
    memcpy(out->sun_path, name, count);
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + count;
    if (name[0] != '@')
        return length + 1;
    out->sun_path[0] = '\0';
    return length;
}

/* 0 if no address has that many bytes; the system then answers EINVAL. */
static socklen_t to_system(const void *bytes, size_t count, int port, struct sockaddr_storage *out) {
    memset(out, 0, sizeof *out);
    if (port < 0)
        return to_unix_address(bytes, count, (struct sockaddr_un *)out);
    if (count == 16) {
        struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)out;
        ipv6->sin6_family = AF_INET6;
        ipv6->sin6_port = htons(port);
        memcpy(&ipv6->sin6_addr, bytes, 16);
        return sizeof *ipv6;
    }
    if (count != 4)
        return 0;
    struct sockaddr_in *ipv4 = (struct sockaddr_in *)out;
    ipv4->sin_family = AF_INET;
    ipv4->sin_port = htons(port);
    memcpy(&ipv4->sin_addr, bytes, 4);
    return sizeof *ipv4;
}

/* `call` is bind or connect. */
static int call_with_address(
    int call(int, const struct sockaddr *, socklen_t), int fd, const void *bytes, size_t count, int port) {
    struct sockaddr_storage storage;
    socklen_t length = to_system(bytes, count, port, &storage);
    NEGATED(call(fd, (struct sockaddr *)&storage, length));
}

int platform_bind(int fd, const void *bytes, size_t count, int port) {
    return call_with_address(bind, fd, bytes, count, port);
}

int platform_connect(int fd, const void *bytes, size_t count, int port) {
    return call_with_address(connect, fd, bytes, count, port);
}

int platform_read_address(const void *system, struct platform_address *out) {
    memset(out, 0, sizeof *out);
    int family = ((const struct sockaddr *)system)->sa_family;
    if (family == AF_INET6) {
        const struct sockaddr_in6 *ipv6 = system;
        out->is_ipv6 = 1;
        out->port = ntohs(ipv6->sin6_port);
        memcpy(out->address, &ipv6->sin6_addr, 16);
        return 0;
    }
    if (family == AF_INET) {
        const struct sockaddr_in *ipv4 = system;
        out->port = ntohs(ipv4->sin_port);
        memcpy(out->address, &ipv4->sin_addr, 4);
        return 0;
    }
    return -EAFNOSUPPORT;
}

int platform_listen(int fd, int backlog) { NEGATED(listen(fd, backlog)); }

int platform_refuse_new_connections(int fd) {
    /* The filter of a TCP socket sees the packet from its TCP header on; byte 13 holds the flags.
       A packet with SYN but not ACK opens a connection and is dropped (0). All others pass whole. */
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    NEGATED(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program));
}

int platform_accept(int fd, struct platform_address *peer) {
    struct sockaddr_storage storage = {0};
    socklen_t length = sizeof storage;
    int accepted = accept4(fd, (struct sockaddr *)&storage, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted < 0)
        return -errno;
    platform_read_address(&storage, peer);
    return accepted;
}

int platform_socket_error(int fd) {
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        return errno;
    return error;
}

/* `get` is getsockname or getpeername. */
static int get_address(int get(int, struct sockaddr *, socklen_t *), int fd, struct platform_address *address) {
    struct sockaddr_storage storage;
    socklen_t length = sizeof storage;
    if (get(fd, (struct sockaddr *)&storage, &length) < 0)
        return -errno;
    return platform_read_address(&storage, address);
}

int platform_local_address(int fd, struct platform_address *address) { return get_address(getsockname, fd, address); }

int platform_peer_address(int fd, struct platform_address *address) { return get_address(getpeername, fd, address); }

int platform_shutdown_read(int fd) { NEGATED(shutdown(fd, SHUT_RD)); }
int platform_change_mode(const char *path, uint32_t mode) { NEGATED(chmod(path, mode)); }
int platform_unlink(const char *path) { NEGATED(unlink(path)); }

int platform_file_facts(const char *path, struct platform_file *file) {
    struct stat facts;
    if (lstat(path, &facts) < 0)
        return -errno;
    file->device = facts.st_dev;
    file->inode = facts.st_ino;
    file->is_socket = S_ISSOCK(facts.st_mode);
    return 0;
}

int platform_send_datagram(const char *name, size_t name_count, const void *bytes, size_t count) {
    struct sockaddr_un address;
    socklen_t length = to_unix_address(name, name_count, &address);
    if (length == 0)
        return -EINVAL;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    /* A receiver that does not read must not hold the sender for ever. */
    struct timeval limit = {.tv_sec = 2};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    ssize_t sent = sendto(fd, bytes, count, MSG_NOSIGNAL, (struct sockaddr *)&address, length);
    int result = sent < 0 ? -errno : 0;
    close(fd);
    return result;
}

int platform_epoll_create(void) { NEGATED(epoll_create1(EPOLL_CLOEXEC)); }

static int control(int epoll, int operation, int fd, long events, uint64_t tag) {
    struct epoll_event event = {.events = events, .data.u64 = tag};
    NEGATED(epoll_ctl(epoll, operation, fd, &event));
}

int platform_epoll_add(int epoll, int fd, long events, uint64_t tag) {
    return control(epoll, EPOLL_CTL_ADD, fd, events, tag);
}

int platform_epoll_modify(int epoll, int fd, long events, uint64_t tag) {
    return control(epoll, EPOLL_CTL_MOD, fd, events, tag);
}

int platform_epoll_remove(int epoll, int fd) { return control(epoll, EPOLL_CTL_DEL, fd, 0, 0); }

int platform_epoll_wait(int epoll, struct platform_event *events, int count, int timeout_milliseconds) {
    struct epoll_event buffer[256];
    int most = count < 256 ? count : 256;
    int ready = epoll_wait(epoll, buffer, most, timeout_milliseconds);
    if (ready < 0)
        return -errno;
    for (int index = 0; index < ready; index++) {
        events[index].tag = buffer[index].data.u64;
        events[index].events = buffer[index].events;
    }
    return ready;
}

int platform_poll(struct pollfd *descriptors, size_t count, int timeout_milliseconds) {
    NEGATED(poll(descriptors, count, timeout_milliseconds));
}

int platform_event_descriptor(void) { NEGATED(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }

int platform_event_signal(int fd) {
    uint64_t one = 1;
    NEGATED(write(fd, &one, sizeof one));
}

int platform_event_clear(int fd) {
    uint64_t value;
    NEGATED(read(fd, &value, sizeof value));
}

/* glibc gives the arguments to each constructor; other C libraries do not. They are found elsewhere only in /proc, if it is
 * mounted, and below the environment, if no other library has moved it. */
static int argument_count;
static char **arguments;

#ifdef __GLIBC__
__attribute__((constructor)) static void keep_arguments(int count, char **values) {
    argument_count = count;
    arguments = values;
}
#endif

const char *platform_argument(int index) {
    return index >= 0 && index < argument_count ? arguments[index] : NULL;
}

int platform_raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -errno;
    struct rlimit raised = {limit.rlim_max, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
        limit = raised;
    return limit.rlim_cur > INT_MAX ? INT_MAX : (int)limit.rlim_cur;
}

void platform_set_stack_size(size_t bytes) {
#ifdef __GLIBC__
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return;
    if (pthread_attr_setstacksize(&attributes, bytes) == 0)
        pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
#endif
}

void platform_release_memory(void) { malloc_trim(0); }

int platform_memory_file(void) { NEGATED(memfd_create("limited-login", MFD_CLOEXEC)); }

int platform_allowed_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return -errno;
    return CPU_COUNT(&set);
}
