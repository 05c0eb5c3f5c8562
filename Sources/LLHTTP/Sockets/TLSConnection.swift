internal import CLLOpenSSL.TLS
internal import LLJOSE

/// One TLS connection over a non-blocking descriptor that the caller owns; it belongs to one thread at a time.
///
/// Every call returns at once. After `wantRead` or `wantWrite`, wait until the descriptor is readable or writable, then
/// repeat the same call. OpenSSL's error queue is empty when a call returns.
@safe package final class TLSConnection {
    nonisolated(unsafe) private static let socketMethod = unsafe CLLOpenSSL_BIO_socket_method()

    let pointer: OpaquePointer
    // Keeps the settings alive as long as the connection. OpenSSL counts a reference of its own as well.
    private let context: TLSContext

    /// A client's connection. `hostName` is the host of the URL. It goes into SNI unless it is an IP address (RFC 6066,
    /// 3), and the certificate must carry it as a subject alternative name (RFC 9525, 6).
    package convenience init(client context: TLSContext, descriptor: Int32, hostName: String) throws(TLSError) {
        // OpenSSL's own bounds are enough: a client has chosen its server.
        try self.init(context, descriptor, longestMessage: 0)
        unsafe SSL_set_connect_state(pointer)
        let parameters = unsafe SSL_get0_param(pointer)
        if unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, hostName) == 1 { return }
        ERR_clear_error()
        // The final dot of a root name is part of neither SNI (RFC 6066, 3) nor a certificate's name.
        let name = hostName.hasSuffix(".") ? String(hostName.dropLast()) : hostName
        // Partial wildcards are refused, and the subject's common name is never used (RFC 9525, 2 and 6.3).
        let flags = UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS) | UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)
        unsafe SSL_set_hostflags(pointer, flags)
        try TLSError.require(unsafe SSL_set1_host(pointer, name), "the host name")
        try TLSError.require(unsafe CLLOpenSSL_SSL_set_host_name(pointer, name), "the host name")
    }

    package convenience init(server context: TLSContext, descriptor: Int32) throws(TLSError) {
        try self.init(context, descriptor, longestMessage: UInt32(TLSContext.handshakeMessageBytes))
        unsafe SSL_set_accept_state(pointer)
    }

    private init(_ context: TLSContext, _ descriptor: Int32, longestMessage: UInt32) throws(TLSError) {
        guard let method = unsafe Self.socketMethod, let pointer = unsafe SSL_new(context.pointer) else {
            throw .failure(of: "a TLS connection")
        }
        self.context = context
        unsafe self.pointer = pointer
        let isSet = unsafe CLLOpenSSL_SSL_set_socket(pointer, method, descriptor, longestMessage)
        try TLSError.require(isSet, "a TLS connection")
    }

    deinit { unsafe SSL_free(pointer) }

    /// - Returns: `wantRead` or `wantWrite`; nil once the handshake is done.
    package func handshake() throws(TLSError) -> Socket.Transfer? {
        ERR_clear_error()
        unsafe CLLOpenSSL_SSL_begin_reading(pointer)
        switch try outcome(of: unsafe SSL_do_handshake(pointer)) {
        case .bytes: return nil
        case .closed: throw .truncated
        case let wanted: return wanted
        }
    }

    /// Does the same as ``Socket/receive(_:into:atMost:)``, decrypted: one record at most.
    package func read(into buffer: inout [UInt8], atMost most: Int = .max) throws(TLSError) -> Socket.Transfer {
        ERR_clear_error()
        let capacity = Int32(clamping: min(buffer.count, most))
        // `SSL_read` of zero bytes has no defined outcome.
        guard capacity > 0 else { return .bytes(0) }
        unsafe CLLOpenSSL_SSL_begin_reading(pointer)
        // OpenSSL writes at most this number of bytes, all within the array.
        return try outcome(of: unsafe SSL_read(pointer, &buffer, capacity))
    }

    /// Does the same as ``Socket/send(_:_:from:)``, encrypted: one record at most.
    package func write(_ bytes: [UInt8], from offset: Int = 0) throws(TLSError) -> Socket.Transfer {
        ERR_clear_error()
        let rest = bytes.span.extracting(offset...)
        guard !rest.isEmpty else { return .bytes(0) }
        let count = Int32(clamping: rest.count)
        return try outcome(of: unsafe rest.withUnsafeBytes { unsafe SSL_write(pointer, $0.baseAddress, count) })
    }

    /// Sends close_notify if the socket accepts it at once. It does not wait for the peer's close_notify (RFC 8446,
    /// 6.1).
    package func sayClose() {
        ERR_clear_error()
        _ = unsafe SSL_shutdown(pointer)
        ERR_clear_error()
    }

    /// True if decrypted bytes are ready. A poll of the descriptor does not report them.
    package var hasPendingBytes: Bool { unsafe SSL_pending(pointer) > 0 }

    /// True if OpenSSL keeps a buffer for a record that has arrived only in part, or was read only in part.
    package var holdsPartialInput: Bool { unsafe CLLOpenSSL_SSL_holds_partial_input(pointer) == 1 }

    /// Server: true if the client had to show a certificate.
    package var verifiesClient: Bool { unsafe SSL_get_verify_mode(pointer) & SSL_VERIFY_PEER != 0 }

    package var version: String { unsafe String(cString: SSL_get_version(pointer)) }

    /// - Parameter result: A number of bytes, or 1 after a handshake; anything less is no success.
    private func outcome(of result: Int32) throws(TLSError) -> Socket.Transfer {
        if result > 0 { return .bytes(Int(result)) }
        let errno = CLLOpenSSL_errno()
        switch unsafe SSL_get_error(pointer, result) {
        case SSL_ERROR_WANT_READ: return .wantRead
        case SSL_ERROR_WANT_WRITE: return .wantWrite
        case SSL_ERROR_ZERO_RETURN: return .closed
        case SSL_ERROR_SYSCALL:
            ERR_clear_error()
            throw errno == 0 ? .truncated : .system(errno: errno)
        default: throw failure()
        }
    }

    /// The reason of a failed handshake or record. The certificate's reason takes precedence over the protocol's.
    private func failure() -> TLSError {
        let verdict = unsafe SSL_get_verify_result(pointer)
        let isTruncation = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING
        let reason = TLSError.drainQueue() ?? "no reason given"
        if verdict != Int(X509_V_OK) { return .certificate(TLSError.certificateReason(verdict)) }
        return isTruncation ? .truncated : .protocolFailure(reason)
    }
}

/// The reason why TLS could not start or ended with an error. `description` is one sentence fit for a log line.
package enum TLSError: Error, Equatable, Sendable, CustomStringConvertible {
    /// A certificate, key or trust file could not be used, or memory ran out.
    case configuration(String)
    /// The peer's certificate was refused, or the peer refused this side's.
    case certificate(String)
    /// The peer broke the protocol, or the two sides share no version or cipher.
    case protocolFailure(String)
    /// The stream ended without the peer's close_notify: the data may be cut short (RFC 8446, 6.1).
    case truncated
    case system(errno: Int32)

    package var description: String {
        switch self {
        case .configuration(let reason): "TLS cannot be set up: \(reason)"
        case .certificate(let reason): "the certificate was refused: \(reason)"
        case .protocolFailure(let reason): "the TLS connection failed: \(reason)"
        case .truncated: "the TLS connection ended without notice"
        case .system(let errno): "the connection failed: \(Self.systemReason(errno))"
        }
    }

    /// Throws unless the result is 1, which OpenSSL's functions return on success.
    static func require(_ result: Int32, _ subject: String, in file: String? = nil) throws(TLSError) {
        guard result == 1 else { throw .failure(of: subject, in: file) }
    }

    /// A failed step of the set-up, with OpenSSL's reason and the file concerned.
    static func failure(of subject: String, in file: String? = nil) -> TLSError {
        let place = file.map { " in \($0)" } ?? ""
        return .configuration("\(subject)\(place): \(drainQueue() ?? "no reason given")")
    }

    /// Empties this thread's OpenSSL error queue and returns the reason of its oldest entry, the root of the failure.
    static func drainQueue() -> String? { OpenSSLError.drainQueue(wordsOfErrno: systemReason) }

    static func systemReason(_ number: Int32) -> String { SystemReason.sentence(for: number).lowercased() }

    /// The sentence for a certificate that failed verification (`X509_V_ERR_…`).
    static func certificateReason(_ code: Int) -> String {
        switch Int32(truncatingIfNeeded: code) {
        case X509_V_ERR_HOSTNAME_MISMATCH: "host name mismatch"
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN: "self-signed certificate in the chain"
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            "certificate is not issued by a trusted authority"
        default: unsafe String(cString: X509_verify_cert_error_string(code))
        }
    }
}
