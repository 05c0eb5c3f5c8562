internal import COpenSSL

/// One TLS connection over a non-blocking descriptor that stays the caller's.
///
/// Every call returns at once: `wantRead` or `wantWrite` says what to wait for before the same call is made again. A
/// connection belongs to one thread at a time. OpenSSL's error queue is empty when a call returns.
@safe package final class TLSConnection {
    /// How far a handshake or a shutdown came.
    package enum Step: Sendable, Equatable { case done, wantRead, wantWrite }

    /// What a read or a write achieved.
    package enum Transfer: Sendable, Equatable {
        case bytes(Int)
        case wantRead, wantWrite
        /// The peer said close_notify: the stream is whole.
        case closed
    }

    let pointer: OpaquePointer
    // Keeps the settings alive as long as the connection; OpenSSL counts the reference as well.
    private let context: TLSContext

    /// A client's connection. `hostName` is the host the URL names: it goes into SNI unless it is an IP address
    /// (RFC 6066, 3), and the certificate must carry it as a subject alternative name (RFC 9525, 6).
    package convenience init(client context: TLSContext, descriptor: Int32, hostName: String) throws(TLSError) {
        try self.init(context, descriptor: descriptor)
        try expect(hostName)
        unsafe SSL_set_connect_state(pointer)
    }

    /// A server's connection.
    package convenience init(server context: TLSContext, descriptor: Int32) throws(TLSError) {
        try self.init(context, descriptor: descriptor)
        unsafe SSL_set_accept_state(pointer)
    }

    private init(_ context: TLSContext, descriptor: Int32) throws(TLSError) {
        guard let method = unsafe SocketBIO.method, let pointer = unsafe SSL_new(context.pointer) else {
            throw .failure(of: "a TLS connection", in: nil)
        }
        self.context = context
        unsafe self.pointer = pointer
        guard let bio = unsafe COpenSSL_BIO_new_socket(method, descriptor) else {
            throw .failure(of: "a TLS connection", in: nil)
        }
        // Takes ownership of the BIO, which is both the reading and the writing side.
        unsafe SSL_set_bio(pointer, bio, bio)
    }

    deinit { unsafe SSL_free(pointer) }

    private func expect(_ hostName: String) throws(TLSError) {
        let parameters = unsafe SSL_get0_param(pointer)
        if unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, hostName) == 1 { return }
        ERR_clear_error()
        // The root's dot is part of neither SNI (RFC 6066, 3) nor a certificate's name.
        let name = hostName.hasSuffix(".") ? String(hostName.dropLast()) : hostName
        // No partial wildcards, and no fall-back to the subject's common name (RFC 9525, 2 and 6.3).
        let flags = UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS) | UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)
        unsafe SSL_set_hostflags(pointer, flags)
        guard unsafe SSL_set1_host(pointer, name) == 1,
            unsafe COpenSSL_SSL_set_host_name(pointer, name) == 1
        else { throw .failure(of: "the host name", in: nil) }
    }
}

/// The one method table of the socket BIO.
private enum SocketBIO {
    nonisolated(unsafe) static let method = unsafe COpenSSL_BIO_socket_method()
}
