/* Sends prepared HTTP/1.1 requests over keep-alive connections from one thread. Measures the latency of each, and the CPU
   time of the server's process.

   load-generator ADDRESS REQUESTS CONNECTIONS SECONDS RATE STATUS PID

   ADDRESS is a port of 127.0.0.1, or the path of a Unix socket. REQUESTS is a file of whole requests, each behind its
   length (32 bits, little-endian); they are sent in turn. RATE 0 keeps every connection busy (closed loop). With another
   RATE that many requests a second are due, even if earlier ones are not answered. Latency counts from the time at which
   a request was due, so a slow answer also counts for the requests that it held up. STATUS is the status every answer
   must have. The first fifth of SECONDS warms up and is not measured. Prints one JSON object. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { RESPONSE_BYTES = 65536, EVENTS = 256 };

struct connection {
    int fd;
    bool busy;
    uint64_t due;
    size_t received;
    char *buffer;
};

static char *requests;
static size_t *offsets;
static uint32_t *lengths;
static size_t request_count, next_request;
static uint32_t *latencies;
static size_t latency_count, latency_capacity;
static uint64_t wrong, failed;
static bool measuring;
static int expected_status;
static const char *address;

static void die(const char *what) {
    fprintf(stderr, "load-generator: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* utime + stime of a process, in milliseconds; the kernel scales their sum to the exact run time. */
static double processor_milliseconds(int pid) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) die("the server's process");
    size_t count = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[count] = 0;
    char *fields = strrchr(text, ')');
    unsigned long user = 0, system = 0;
    if (!fields || sscanf(fields + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        die("/proc/PID/stat");
    return (double)(user + system) * 1000.0 / (double)sysconf(_SC_CLK_TCK);
}

static void load_requests(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) die(path);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    requests = malloc((size_t)size);
    if (!requests || fread(requests, 1, (size_t)size, file) != (size_t)size) die(path);
    fclose(file);
    size_t capacity = (size_t)size / 4 + 1;
    offsets = malloc(capacity * sizeof *offsets);
    lengths = malloc(capacity * sizeof *lengths);
    for (size_t at = 0; at + 4 <= (size_t)size;) {
        uint32_t length;
        memcpy(&length, requests + at, 4);
        if (at + 4 + length > (size_t)size) break;
        offsets[request_count] = at + 4;
        lengths[request_count++] = length;
        at += 4 + length;
    }
    if (request_count == 0) die("no requests");
}

static int connect_to(const char *place) {
    if (place[0] == '/') {
        struct sockaddr_un path = {.sun_family = AF_UNIX};
        if (strlen(place) >= sizeof path.sun_path) return -1;
        strcpy(path.sun_path, place);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        return connect(fd, (struct sockaddr *)&path, sizeof path) < 0 ? -1 : fd;
    }
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(place)),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return connect(fd, (struct sockaddr *)&port, sizeof port) < 0 ? -1 : fd;
}

static void open_connection(struct connection *connection, int poll) {
    connection->fd = connect_to(address);
    if (connection->fd < 0) die("connect");
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, connection->fd, &event) < 0) die("epoll_ctl");
    connection->busy = false;
    connection->received = 0;
}

static void send_request(struct connection *connection, uint64_t due) {
    size_t index = next_request++ % request_count;
    connection->busy = true;
    connection->due = due;
    connection->received = 0;
    if (send(connection->fd, requests + offsets[index], lengths[index], MSG_NOSIGNAL) != (ssize_t)lengths[index])
        connection->received = RESPONSE_BYTES;
}

/* Returns the length of the whole answer, 0 until its head is there, or -1 if it cannot be read. */
static long answer_length(struct connection *connection) {
    char *end = memmem(connection->buffer, connection->received, "\r\n\r\n", 4);
    if (!end) return 0;
    long head = end - connection->buffer + 4;
    for (char *line = connection->buffer; line < end; line++) {
        line = memchr(line, '\n', (size_t)(end - line));
        if (!line) break;
        if (strncasecmp(line + 1, "content-length:", 15) == 0) return head + atol(line + 16);
    }
    return -1;
}

static void record(uint64_t nanoseconds) {
    if (!measuring) return;
    if (latency_count == latency_capacity) {
        latency_capacity = latency_capacity ? latency_capacity * 2 : 1 << 20;
        latencies = realloc(latencies, latency_capacity * sizeof *latencies);
        if (!latencies) die("memory");
    }
    latencies[latency_count++] = nanoseconds > UINT32_MAX ? UINT32_MAX : (uint32_t)nanoseconds;
}

/* Returns true if the connection has its answer and is free. */
static bool receive(struct connection *connection, int poll) {
    ssize_t count = -1;
    if (connection->received < RESPONSE_BYTES)
        count = recv(connection->fd, connection->buffer + connection->received,
                     RESPONSE_BYTES - connection->received, MSG_DONTWAIT);
    if (count < 0 && connection->received < RESPONSE_BYTES && errno == EAGAIN) return false;
    long length = -1;
    if (count > 0) {
        connection->received += (size_t)count;
        length = answer_length(connection);
        if (length == 0 || length > (long)connection->received) return false;
    }
    if (length < 0) {
        /* Servers end a connection after some number of requests. An idle one is opened again, and no request is lost. */
        if (connection->busy) failed += measuring;
        close(connection->fd);
        open_connection(connection, poll);
        return true;
    }
    if (atoi(connection->buffer + 9) != expected_status) wrong += measuring;
    record(now() - connection->due);
    bool closes = memmem(connection->buffer, connection->received, "onnection: close", 16) != NULL;
    if (closes) {
        close(connection->fd);
        open_connection(connection, poll);
    }
    connection->busy = false;
    return true;
}

static int compare(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static double percentile(double share) {
    if (latency_count == 0) return 0;
    size_t index = (size_t)((double)latency_count * share);
    return (double)latencies[index < latency_count ? index : latency_count - 1] / 1000.0;
}

int main(int count, char **arguments) {
    if (count != 8) {
        fprintf(stderr, "usage: load-generator ADDRESS REQUESTS CONNECTIONS SECONDS RATE STATUS PID\n");
        return 2;
    }
    address = arguments[1];
    load_requests(arguments[2]);
    size_t connection_count = (size_t)atol(arguments[3]);
    double seconds = atof(arguments[4]), rate = atof(arguments[5]);
    expected_status = atoi(arguments[6]);
    int pid = atoi(arguments[7]);

    int poll = epoll_create1(EPOLL_CLOEXEC);
    struct connection *connections = calloc(connection_count, sizeof *connections);
    struct connection **idle = calloc(connection_count, sizeof *idle);
    /* A ring: the connection that has been idle longest is next, so that all are used. */
    size_t idle_count = 0, idle_first = 0;
    for (size_t index = 0; index < connection_count; index++) {
        connections[index].buffer = malloc(RESPONSE_BYTES);
        open_connection(&connections[index], poll);
    }
    uint64_t start = now(), warm = start + (uint64_t)(seconds * 0.2e9), end = start + (uint64_t)(seconds * 1e9);
    uint64_t interval = rate > 0 ? (uint64_t)(1e9 / rate) : 0, due = start;
    double processor = 0;
    for (size_t index = 0; index < connection_count; index++) {
        if (interval) idle[idle_count++ % connection_count] = &connections[index];
        else send_request(&connections[index], now());
    }
    for (;;) {
        uint64_t moment = now();
        if (!measuring && moment >= warm) {
            measuring = true;
            warm = moment;
            processor = processor_milliseconds(pid);
        }
        if (moment >= end) break;
        while (interval && due <= moment && idle_count > 0) {
            send_request(idle[idle_first], due);
            idle_first = (idle_first + 1) % connection_count;
            idle_count--;
            due += interval;
        }
        struct epoll_event events[EVENTS];
        /* This thread spins. So no request is late by a timer's grain, and no server pays for waking a sleeping client on its
           own machine, as clients usually run elsewhere. */
        int ready = epoll_wait(poll, events, EVENTS, 0);
        for (int index = 0; index < ready; index++) {
            struct connection *connection = events[index].data.ptr;
            bool was_busy = connection->busy;
            if (!receive(connection, poll) || (interval && !was_busy)) continue;
            connection->busy = false;
            if (interval) idle[(idle_first + idle_count++) % connection_count] = connection;
            else send_request(connection, now());
        }
    }
    processor = processor_milliseconds(pid) - processor;
    double elapsed = (double)(now() - warm) / 1e9;
    qsort(latencies, latency_count, sizeof *latencies, compare);
    printf("{\"requests\":%zu,\"wrong\":%llu,\"failed\":%llu,\"seconds\":%.3f,\"per_second\":%.0f,"
           "\"cpu_us\":%.3f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f}\n",
           latency_count, (unsigned long long)wrong, (unsigned long long)failed, elapsed,
           (double)latency_count / elapsed, latency_count ? processor * 1000.0 / (double)latency_count : 0,
           percentile(0.5), percentile(0.99), percentile(0.999));
    return 0;
}
