/*
 * The few system calls that Swift cannot name: macros, variadic functions, packed structures and
 * address casts. No logic lives here. Every function returns a value that is not negative, or the
 * negated errno. A caller therefore never reads an errno that another call could have changed.
 */
#ifndef LIMITED_LOGIN_CSYSTEM_H
#define LIMITED_LOGIN_CSYSTEM_H

/* Swift sees the names of these headers too, from glibc as from musl. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* The address of a peer or a socket without the casts: IPv4 uses the first 4 bytes. */
struct platform_address {
    uint8_t address[16];
    uint16_t port;
    uint8_t is_ipv6;
};

/* The identity of the file at a path. A symbolic link is not followed. */
struct platform_file {
    uint64_t device;
    uint64_t inode;
    uint8_t is_socket;
};

/* One readiness report; the packed layout of struct epoll_event stays in C. */
struct platform_event {
    uint64_t tag;
    long events;
};

/* The events of a descriptor, both requested and reported (epoll_ctl(2)). */
enum {
    PLATFORM_READABLE = EPOLLIN,
    PLATFORM_WRITABLE = EPOLLOUT,
    PLATFORM_READ_HANG_UP = EPOLLRDHUP,
    PLATFORM_READABLE_OR_ENDED = EPOLLIN | EPOLLRDHUP,
    PLATFORM_GONE = EPOLLERR | EPOLLHUP,
};

int platform_close(int fd);
long platform_recv(int fd, void *buffer, size_t count);
/* Sends with MSG_NOSIGNAL: a peer that is gone causes an error, never SIGPIPE. */
long platform_send(int fd, const void *buffer, size_t count);
int platform_shutdown_write(int fd);

/* A stream socket: non-blocking, closed on exec. An address is given by its bytes, in network order: 4 for IPv4, 16 for
   IPv6. The port -1 marks the path of a Unix socket, of at most 107 bytes. */
int platform_socket(size_t count, int port);
int platform_set_reuse_address(int fd);
int platform_set_reuse_port(int fd);
int platform_set_ipv6_only(int fd);
int platform_set_no_delay(int fd);
int platform_bind(int fd, const void *bytes, size_t count, int port);
int platform_listen(int fd, int backlog);
/* Makes a listener drop packets that open new connections. Connections already begun still complete. */
int platform_refuse_new_connections(int fd);
/* Leaves *peer unchanged if the peer has no address, as on a Unix socket. */
int platform_accept(int fd, struct platform_address *peer);
int platform_connect(int fd, const void *bytes, size_t count, int port);
/* The pending error of a socket, as an errno not negated (0: none). */
int platform_socket_error(int fd);
/* Reads a sockaddr of the system; -EAFNOSUPPORT if it is none of IPv4 or IPv6. */
int platform_read_address(const void *system, struct platform_address *address);
int platform_local_address(int fd, struct platform_address *address);
int platform_peer_address(int fd, struct platform_address *address);

/* Makes a listening Unix socket refuse new connections. Waiting connections can still be accepted. */
int platform_shutdown_read(int fd);
int platform_change_mode(const char *path, uint32_t mode);
int platform_file_facts(const char *path, struct platform_file *file);
int platform_unlink(const char *path);

/* Sends one datagram to a Unix socket. The name is a path, or an abstract name if its first byte is '@'. */
int platform_send_datagram(const char *name, size_t name_count, const void *bytes, size_t count);

int platform_epoll_create(void);
int platform_epoll_add(int epoll, int fd, long events, uint64_t tag);
int platform_epoll_modify(int epoll, int fd, long events, uint64_t tag);
int platform_epoll_remove(int epoll, int fd);
/* Waits for at most count (<= 256) events; timeout_milliseconds -1 waits forever. */
int platform_epoll_wait(int epoll, struct platform_event *events, int count, int timeout_milliseconds);
int platform_poll(struct pollfd *descriptors, size_t count, int timeout_milliseconds);

int platform_event_descriptor(void);
int platform_event_signal(int fd);
int platform_event_clear(int fd);
/* Sets the size of the stacks of threads that start later; does nothing without glibc. */
void platform_set_stack_size(size_t bytes);
/* Returns free memory of this process to the system. */
void platform_release_memory(void);
/* Raises this process's limit of open descriptors to its hard limit; returns the new limit. */
int platform_raise_descriptor_limit(void);

/* The process's argument at an index, the program's name first; null after the last one, and without glibc. */
const char *platform_argument(int index);

/* Makes an empty file in memory, closed on exec; it has no name and ends with its last descriptor. */
int platform_memory_file(void);

int platform_allowed_processors(void);

#endif
