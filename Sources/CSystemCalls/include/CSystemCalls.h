/*
 * The few system calls Swift cannot name: macros, variadic functions, packed structures and
 * address casts. No logic lives here. Every function returns a value that is not negative, or the
 * negated errno, so that no caller reads errno after something else could have changed it.
 */
#ifndef LIMITED_LOGIN_CSYSTEM_H
#define LIMITED_LOGIN_CSYSTEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>

/* A socket address without the casts: IPv4 uses the first 4 bytes of address. */
struct platform_address {
    uint8_t address[16];
    uint32_t scope;
    uint16_t port;
    uint8_t is_ipv6;
};

/* Which file a path names, itself and not what a link leads to. */
struct platform_file {
    uint64_t device;
    uint64_t inode;
    uint8_t is_socket;
};

/* One readiness report; the packed layout of struct epoll_event stays in C. */
struct platform_event {
    uint64_t tag;
    uint32_t events;
};

/* What to be told about a descriptor, and what was told (epoll_ctl(2)). */
enum {
    PLATFORM_READABLE = EPOLLIN,
    PLATFORM_WRITABLE = EPOLLOUT,
    PLATFORM_ERROR = EPOLLERR,
    PLATFORM_HANG_UP = EPOLLHUP,
    PLATFORM_READ_HANG_UP = EPOLLRDHUP,
    PLATFORM_EXCLUSIVE = EPOLLEXCLUSIVE, /* Of several sets that wait, one is woken. */
};

int platform_close(int fd);
long platform_recv(int fd, void *buffer, size_t count);
/* send with MSG_NOSIGNAL: a peer that is gone is an error, never SIGPIPE. */
long platform_send(int fd, const void *buffer, size_t count);
int platform_shutdown_write(int fd);

/* A stream socket: non-blocking, closed on exec. */
int platform_tcp_socket(int is_ipv6);
int platform_set_reuse_address(int fd);
int platform_set_reuse_port(int fd);
int platform_set_ipv6_only(int fd);
int platform_set_no_delay(int fd);
int platform_bind(int fd, const struct platform_address *address);
int platform_listen(int fd, int backlog);
/* Makes a listener drop the packets that open connections, while those begun still complete. */
int platform_refuse_new_connections(int fd);
/* The address of the peer is left as it was where there is none, as on a Unix socket. */
int platform_accept(int fd, struct platform_address *peer);
int platform_connect(int fd, const struct platform_address *address);
/* The pending error of a socket, as an errno not negated (0: none). */
int platform_socket_error(int fd);
int platform_local_address(int fd, struct platform_address *address);
int platform_peer_address(int fd, struct platform_address *address);

/* A Unix stream socket: non-blocking, closed on exec. A path has at most 107 bytes. */
int platform_unix_socket(void);
int platform_unix_bind(int fd, const char *path, size_t count);
int platform_unix_connect(int fd, const char *path, size_t count);
/* Of a listening Unix socket: refuses new connections, while those that wait can still be accepted. */
int platform_shutdown_read(int fd);
/* Another number of the same descriptor, closed on exec. */
int platform_duplicate(int fd);
int platform_change_mode(const char *path, uint32_t mode);
int platform_file_facts(const char *path, struct platform_file *file);
int platform_unlink(const char *path);
int platform_open_directory(const char *path);
/* Takes the lock of an open file that ends when it is closed; an error where another has it. */
int platform_lock(int fd);

/* Sends one datagram to a unix socket: a path, or an abstract name where the first byte is '@'. */
int platform_send_datagram(const char *name, size_t name_count, const void *bytes, size_t count);

int platform_epoll_create(void);
int platform_epoll_add(int epoll, int fd, uint32_t events, uint64_t tag);
int platform_epoll_modify(int epoll, int fd, uint32_t events, uint64_t tag);
int platform_epoll_remove(int epoll, int fd);
/* Waits for at most count (<= 256) events; timeout_milliseconds -1 waits for ever. */
int platform_epoll_wait(int epoll, struct platform_event *events, int count, int timeout_milliseconds);

int platform_event_descriptor(void);
int platform_event_signal(int fd);
int platform_event_clear(int fd);
/* A descriptor of /dev/null, closed on exec: held in reserve for a moment without descriptors. */
int platform_spare_descriptor(void);
/* Names the calling thread; at most 15 bytes. */
void platform_name_thread(const char *name);
/* Gives memory that is free in this process back to the system. */
void platform_release_memory(void);
/* Raises how many descriptors this process may open to the most that is allowed to it; returns what it is then. */
int platform_raise_descriptor_limit(void);

uint64_t platform_monotonic_nanoseconds(void);
int64_t platform_unix_seconds(void);
int64_t platform_unix_nanoseconds(void);
int platform_allowed_processors(void);

#endif
