/* The least that any server can do for a verdict: one loop that receives a request, hashes as many bytes as a token's
   signing input has, lets OpenSSL verify a signature, and sends an answer of the service's length. It parses nothing, so
   its cost is that of sockets and OpenSSL on this machine, the least possible with those calls.

   least-server LISTEN KEY.pem DIGEST SIGNATURE HASHED ANSWER

   LISTEN is a port of 127.0.0.1, or the path of a Unix socket; HASHED and ANSWER are numbers of bytes. With - for KEY.pem
   nothing is verified: the least cost of a token with a remembered signature. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../load.h"

enum { BUFFER_BYTES = 65536, EVENTS = 256 };

static EVP_PKEY_CTX *verification;
static EVP_MD_CTX *hashing;
static EVP_MD *sha256;
static unsigned char digest[32], signature[1024];
static size_t signature_count, hashed_count;
static char request[BUFFER_BYTES], answer[BUFFER_BYTES];
static size_t answer_count;

static int prepare_verification(char **arguments) {
    FILE *file = fopen(arguments[2], "r");
    EVP_PKEY *key = file ? PEM_read_PUBKEY(file, NULL, NULL, NULL) : NULL;
    size_t digest_count = load(arguments[3], digest, sizeof digest);
    signature_count = load(arguments[4], signature, sizeof signature);
    verification = key ? EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL) : NULL;
    return digest_count == sizeof digest && verification && EVP_PKEY_verify_init(verification) == 1 &&
           EVP_PKEY_CTX_set_rsa_padding(verification, RSA_PKCS1_PADDING) == 1 &&
           EVP_PKEY_CTX_set_signature_md(verification, sha256) == 1;
}

static int prepare(char **arguments) {
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    hashing = EVP_MD_CTX_new();
    if (!sha256 || !hashing || (strcmp(arguments[2], "-") != 0 && !prepare_verification(arguments))) return 0;
    size_t body = (size_t)atol(arguments[6]);
    hashed_count = (size_t)atol(arguments[5]);
    if (hashed_count > sizeof request || body > sizeof answer - 256) return 0;
    int head = snprintf(answer, 256, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", body);
    memset(answer + head, 'x', body);
    answer_count = (size_t)head + body;
    return 1;
}

static int listen_at(const char *place) {
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(place)),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    int is_path = place[0] == '/', one = 1;
    if (is_path && strlen(place) >= sizeof path.sun_path) return -1;
    if (is_path) strcpy(path.sun_path, place);
    int listener = socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* Accepted sockets inherit it. */
    if (!is_path) setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int bound = is_path ? bind(listener, (struct sockaddr *)&path, sizeof path)
                        : bind(listener, (struct sockaddr *)&port, sizeof port);
    return bound < 0 || listen(listener, 1024) < 0 ? -1 : listener;
}

static void verify(void) {
    unsigned char hash[32];
    if (EVP_DigestInit_ex2(hashing, sha256, NULL) != 1 || EVP_DigestUpdate(hashing, request, hashed_count) != 1 ||
        EVP_DigestFinal_ex(hashing, hash, NULL) != 1 ||
        (verification && EVP_PKEY_verify(verification, signature, signature_count, digest, sizeof digest) != 1))
        abort();
}

static void serve(int socket) {
    ssize_t count = recv(socket, request, sizeof request, MSG_DONTWAIT);
    if (count <= 0) {
        if (count == 0 || errno != EAGAIN) close(socket);
        return;
    }
    verify();
    if (send(socket, answer, answer_count, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)answer_count) close(socket);
}

int main(int count, char **arguments) {
    if (count != 7) return 2;
    int listener = listen_at(arguments[1]), poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[EVENTS];
    if (listener < 0 || !prepare(arguments) || epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event) < 0) {
        perror("least-server");
        return 1;
    }
    for (;;) {
        int ready = epoll_wait(poll, events, EVENTS, -1);
        for (int index = 0; index < ready; index++) {
            if (events[index].data.fd != listener) {
                serve(events[index].data.fd);
                continue;
            }
            int socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            event.events = EPOLLIN | EPOLLRDHUP;
            event.data.fd = socket;
            if (socket >= 0 && epoll_ctl(poll, EPOLL_CTL_ADD, socket, &event) < 0) close(socket);
        }
    }
}
