internal import COpenSSL
internal import Glibc

extension TLSError {
    /// Empties this thread's OpenSSL error queue and answers the reason of its oldest entry, the root of the failure.
    static func drainQueue() -> String? {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0 else { return nil }
        // An errno has no reason of OpenSSL's, but a mark beside it (ERR_GET_REASON(3)).
        if code & systemErrorMark != 0 { return systemReason(Int32(truncatingIfNeeded: code & (systemErrorMark - 1))) }
        guard let reason = unsafe ERR_reason_error_string(code) else { return "OpenSSL error \(code)" }
        return unsafe String(cString: reason)
    }

    /// `ERR_SYSTEM_FLAG`, which is no name in Swift.
    private static let systemErrorMark: CUnsignedLong = 0x8000_0000

    /// The system's words for an errno.
    static func systemReason(_ number: Int32) -> String {
        // glibc's and musl's `strerror` answer from constant or thread-local memory.
        guard let text = unsafe strerror(number) else { return "error \(number)" }
        return unsafe String(cString: text).lowercased()
    }

    /// The sentence for a certificate that failed verification (`X509_V_ERR_…`).
    static func certificateReason(_ code: Int) -> String {
        switch Int32(truncatingIfNeeded: code) {
        case X509_V_ERR_CERT_HAS_EXPIRED: "certificate has expired"
        case X509_V_ERR_CERT_NOT_YET_VALID: "certificate is not yet valid"
        case X509_V_ERR_HOSTNAME_MISMATCH: "host name mismatch"
        case X509_V_ERR_IP_ADDRESS_MISMATCH: "IP address mismatch"
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: "self-signed certificate"
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN: "self-signed certificate in the chain"
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            "certificate is not issued by a trusted authority"
        default:
            unsafe String(cString: X509_verify_cert_error_string(code))
        }
    }
}
