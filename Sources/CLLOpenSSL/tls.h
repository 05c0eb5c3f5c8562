#ifndef LIMITED_LOGIN_CLLOPENSSL_TLS_H
#define LIMITED_LOGIN_CLLOPENSSL_TLS_H

// OpenSSL features that Swift cannot call directly: function-like macros and a socket BIO. OpenSSL's own socket BIO
// uses write(2), so a peer that has gone away would end the whole process by SIGPIPE. This BIO sends with MSG_NOSIGNAL.

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

/// The number of socket reads that one call of OpenSSL may make: 64, enough for 32 records of at most 16 KiB. A
/// handshake has a dozen records. Within one call OpenSSL goes on reading while records arrive without application
/// data, and no deadline is checked.
enum { CLLOpenSSL_reads_of_a_call = 64 };

/// The state of one BIO: the socket, and the progress of the peer's hello.
struct CLLOpenSSL_Socket {
    SSL *connection;
    int descriptor;
    int reads_left;
    // The position in the peer's stream while a hello is possible: within a record, and within a handshake message.
    uint32_t longest_message;
    uint64_t record_header;
    uint32_t record_header_count, record_left;
    uint32_t message_header, message_header_count, message_left;
};

static inline int CLLOpenSSL_errno(void) { return errno; }

static inline int CLLOpenSSL_BIO_socket_write(BIO *bio, const char *bytes, int count) {
    const struct CLLOpenSSL_Socket *socket = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (bytes == NULL || count <= 0) return 0;
    ssize_t sent = send(socket->descriptor, bytes, (size_t)count, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_write(bio);
    return (int)sent;
}

/// Returns 1 if an unencrypted handshake message announces more bytes than the limit. Records and messages may be split
/// at any byte (RFC 8446 section 5.1).
static inline int CLLOpenSSL_announces_too_much(struct CLLOpenSSL_Socket *socket, const char *bytes, ssize_t count) {
    for (ssize_t index = 0; index < count; index++) {
        uint8_t byte = (uint8_t)bytes[index];
        if (socket->record_left == 0) {
            socket->record_header = socket->record_header << 8 | byte;
            if (++socket->record_header_count < SSL3_RT_HEADER_LENGTH) continue;
            socket->record_header_count = 0;
            socket->record_left = socket->record_header & 0xFFFF;
            continue;
        }
        socket->record_left--;
        if ((socket->record_header >> 32 & 0xFF) != SSL3_RT_HANDSHAKE) continue;
        if (socket->message_left > 0) {
            socket->message_left--;
            continue;
        }
        socket->message_header = socket->message_header << 8 | byte;
        if (++socket->message_header_count < SSL3_HM_HEADER_LENGTH) continue;
        socket->message_header_count = 0;
        socket->message_left = socket->message_header & 0xFFFFFF;
        if (socket->message_left > socket->longest_message) return 1;
    }
    return 0;
}

static inline int CLLOpenSSL_BIO_socket_read(BIO *bio, char *bytes, int count) {
    struct CLLOpenSSL_Socket *socket = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (bytes == NULL || count <= 0) return 0;
    if (socket->reads_left == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    socket->reads_left--;
    ssize_t received = recv(socket->descriptor, bytes, (size_t)count, 0);
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_read(bio);
    if (received == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    if (socket->longest_message == 0) return (int)received;
    // A second hello is possible until TLS 1.2 is chosen or the handshake is over. In TLS 1.3 only hellos are
    // unencrypted. In TLS 1.2 OpenSSL bounds the later messages, and an encrypted message does not show its length.
    if (SSL_is_init_finished(socket->connection) || SSL_version(socket->connection) == TLS1_2_VERSION) {
        socket->longest_message = 0;
    } else if (CLLOpenSSL_announces_too_much(socket, bytes, received)) {
        ERR_new();
        ERR_set_error(ERR_LIB_SSL, SSL_R_EXCESSIVE_MESSAGE_SIZE, NULL);
        return -1;
    }
    return (int)received;
}

static inline int CLLOpenSSL_BIO_socket_destroy(BIO *bio) {
    OPENSSL_free(BIO_get_data(bio));
    return 1;
}

static inline long CLLOpenSSL_BIO_socket_control(BIO *bio, int command, long number, void *pointer) {
    (void)number;
    (void)pointer;
    switch (command) {
    case BIO_CTRL_FLUSH: return 1;
    case BIO_CTRL_EOF: return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    default: return 0;
    }
}

/// The method table of the socket BIO. It is made once and kept for the life of the process. NULL if memory is short.
static inline BIO_METHOD *CLLOpenSSL_BIO_socket_method(void) {
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without SIGPIPE");
    if (method == NULL) return NULL;
    BIO_meth_set_write(method, CLLOpenSSL_BIO_socket_write);
    BIO_meth_set_read(method, CLLOpenSSL_BIO_socket_read);
    BIO_meth_set_ctrl(method, CLLOpenSSL_BIO_socket_control);
    BIO_meth_set_destroy(method, CLLOpenSSL_BIO_socket_destroy);
    return method;
}

/// Makes the connection read from and write to a descriptor that the caller owns. A peer's hello of more than
/// `longest_message` bytes fails as soon as it announces them; 0 leaves the bound to OpenSSL. Returns 1 on success, 0
/// if memory is short.
static inline int CLLOpenSSL_SSL_set_socket(
    SSL *connection, const BIO_METHOD *method, int descriptor, uint32_t longest_message) {
    struct CLLOpenSSL_Socket *socket = OPENSSL_zalloc(sizeof *socket);
    BIO *bio = socket == NULL ? NULL : BIO_new(method);
    if (bio == NULL) {
        OPENSSL_free(socket);
        return 0;
    }
    socket->connection = connection;
    socket->descriptor = descriptor;
    socket->longest_message = longest_message;
    BIO_set_data(bio, socket);
    BIO_set_init(bio, 1);
    // Takes ownership of the BIO, which serves both reading and writing.
    SSL_set_bio(connection, bio, bio);
    return 1;
}

/// Begins a call that may read. The call asks to be repeated once it has used all its socket reads.
static inline void CLLOpenSSL_SSL_begin_reading(SSL *connection) {
    struct CLLOpenSSL_Socket *socket = BIO_get_data(SSL_get_rbio(connection));
    socket->reads_left = CLLOpenSSL_reads_of_a_call;
}

/// Requires TLS 1.2 or newer and turns off renegotiation and compression. Stores no sessions: only clients keep them, as
/// tickets. Writes may be partial and may move their buffer. OpenSSL frees its buffers while a connection is idle. Returns
/// 1 on success.
static inline int CLLOpenSSL_SSL_CTX_harden(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(
        context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    return (int)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
}

/// Returns 1 if a buffer is kept for an incomplete record: unread bytes lie in it, or its header was read and its body
/// is awaited.
static inline int CLLOpenSSL_SSL_holds_partial_input(const SSL *connection) {
    return SSL_has_pending(connection) || SSL_rstate_string(connection)[1] == 'B';
}

/// Turns off session resumption: the server gives and accepts no tickets.
static inline int CLLOpenSSL_SSL_CTX_never_resume(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    return SSL_CTX_set_num_tickets(context, 0);
}

/// Limits key exchange to these groups, in the order of the list. Returns 1 on success.
static inline int CLLOpenSSL_SSL_CTX_set_groups(SSL_CTX *context, const char *names) {
    return (int)SSL_CTX_set1_groups_list(context, names);
}

/// Limits the total size in bytes of a peer's certificates, as they are sent. A read ends after one record, even one
/// without application data: a peer that sends endless key updates must not keep the caller within one call.
static inline void CLLOpenSSL_SSL_CTX_bound_input(SSL_CTX *context, long longest_chain) {
    SSL_CTX_set_max_cert_list(context, longest_chain);
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
}

static inline int64_t CLLOpenSSL_seconds(const ASN1_TIME *time) {
    ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
    int days = 0, seconds = 0;
    int is_read = epoch != NULL && ASN1_TIME_diff(&days, &seconds, epoch, time) == 1;
    ASN1_TIME_free(epoch);
    return is_read ? (int64_t)days * 86400 + seconds : -1;
}

/// The latest start and the earliest end of the certificates that the server sends, in seconds since 1970. The end is
/// -1 if there is no certificate, or one that cannot be read.
static inline void CLLOpenSSL_SSL_CTX_certificate_times(SSL_CTX *context, int64_t *start, int64_t *end) {
    const X509 *certificate = SSL_CTX_get0_certificate(context);
    // `sk_X509_num` of a missing chain (NULL) is -1.
    STACK_OF(X509) *chain = NULL;
    SSL_CTX_get0_chain_certs(context, &chain);
    *start = -1;
    *end = certificate == NULL ? -1 : INT64_MAX;
    for (int index = 0; certificate != NULL; index++) {
        int64_t from = CLLOpenSSL_seconds(X509_get0_notBefore(certificate));
        int64_t until = CLLOpenSSL_seconds(X509_get0_notAfter(certificate));
        if (from > *start) *start = from;
        if (until < *end) *end = until;
        certificate = index < sk_X509_num(chain) ? sk_X509_value(chain, index) : NULL;
    }
}

static inline int CLLOpenSSL_SSL_set_host_name(SSL *connection, const char *name) {
    return (int)SSL_set_tlsext_host_name(connection, name);
}

#endif
