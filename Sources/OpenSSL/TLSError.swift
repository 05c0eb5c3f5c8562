internal import COpenSSL

/// Why TLS did not come about or broke off. `description` is one sentence fit for a log line.
package enum TLSError: Error, Equatable, Sendable, CustomStringConvertible {
    /// A certificate, key or trust file could not be used, or memory was short.
    case configuration(String)
    /// The peer's certificate was refused, or it refused ours.
    case certificate(String)
    /// The peer broke the protocol, or the two sides share no version or cipher.
    case protocolFailure(String)
    /// The stream ended without the peer's close_notify: what came may be cut short (RFC 8446, 6.1).
    case truncated
    /// The socket failed.
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
}
