internal import COpenSSL
internal import Glibc

extension TLSConnection {
    /// Drives the handshake on.
    package func handshake() throws(TLSError) -> Step {
        ERR_clear_error()
        let result = unsafe SSL_do_handshake(pointer)
        if result == 1 { return .done }
        switch try outcome(of: result, errno: errno) {
        case .wantRead: return .wantRead
        case .wantWrite: return .wantWrite
        case .closed, .bytes: throw .truncated
        }
    }

    /// Reads what there is, at most the buffer's size.
    package func read(into buffer: inout MutableSpan<UInt8>) throws(TLSError) -> Transfer {
        ERR_clear_error()
        // `SSL_read` of no bytes has no defined outcome.
        guard buffer.count > 0 else { return .bytes(0) }
        let capacity = Int32(clamping: buffer.count)
        let result = unsafe buffer.withUnsafeMutableBytes { unsafe SSL_read(pointer, $0.baseAddress, capacity) }
        if result > 0 { return .bytes(Int(result)) }
        return try outcome(of: result, errno: errno)
    }

    /// Writes a first part of the bytes, at most all of them.
    package func write(_ bytes: Span<UInt8>) throws(TLSError) -> Transfer {
        ERR_clear_error()
        guard bytes.count > 0 else { return .bytes(0) }
        let count = Int32(clamping: bytes.count)
        let result = unsafe bytes.withUnsafeBytes { unsafe SSL_write(pointer, $0.baseAddress, count) }
        if result > 0 { return .bytes(Int(result)) }
        return try outcome(of: result, errno: errno)
    }

    /// Says close_notify; does not wait for the peer's own (RFC 8446, 6.1).
    package func shutdown() throws(TLSError) -> Step {
        ERR_clear_error()
        let result = unsafe SSL_shutdown(pointer)
        if result >= 0 { return .done }
        switch try outcome(of: result, errno: errno) {
        case .wantRead: return .wantRead
        case .wantWrite: return .wantWrite
        case .closed, .bytes: return .done
        }
    }

    /// Whether bytes are decrypted and ready: a poll of the descriptor would not tell.
    package var hasPendingBytes: Bool { unsafe SSL_pending(pointer) > 0 }

    /// Whether this connection's session was resumed.
    package var isResumed: Bool { unsafe SSL_session_reused(pointer) == 1 }

    /// The version in force, such as `TLSv1.3`.
    package var version: String { unsafe String(cString: SSL_get_version(pointer)) }

    private func outcome(of result: Int32, errno: Int32) throws(TLSError) -> Transfer {
        let code = unsafe SSL_get_error(pointer, result)
        switch code {
        case SSL_ERROR_WANT_READ: return .wantRead
        case SSL_ERROR_WANT_WRITE: return .wantWrite
        case SSL_ERROR_ZERO_RETURN: return .closed
        case SSL_ERROR_SYSCALL:
            ERR_clear_error()
            if errno == 0 { throw .truncated }
            throw .system(errno: errno)
        default:
            throw failure()
        }
    }

    /// The reason of a failed handshake or record, the certificate's before the protocol's.
    private func failure() -> TLSError {
        let verdict = unsafe SSL_get_verify_result(pointer)
        let isTruncation = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING
        let reason = TLSError.drainQueue() ?? "no reason given"
        if verdict != Int(X509_V_OK) { return .certificate(TLSError.certificateReason(verdict)) }
        return isTruncation ? .truncated : .protocolFailure(reason)
    }
}
