package import Sockets

/// Why a fetch yielded no response. `description` is one sentence fit for a log line; it quotes nothing the peer sent.
package enum HTTPSClientError: Error, Equatable, Sendable, CustomStringConvertible {
    /// No connection, or it broke.
    case stream(StreamError)
    case proxyFailed(reason: String)
    case malformedRequest
    case malformedResponse(reason: String)
    case headTooLarge(limit: Int)
    case bodyTooLarge(limit: Int)
    case redirectRefused(reason: String)

    package var description: String {
        switch self {
        case .stream(let error): error.description
        case .proxyFailed(let reason): "the proxy did not open a tunnel: \(reason)"
        case .malformedRequest: "a header field holds a byte that is not allowed"
        case .malformedResponse(let reason): "the answer is not HTTP: \(reason)"
        case .headTooLarge(let limit): "the answer's head is larger than \(limit) bytes"
        case .bodyTooLarge(let limit): "the answer's body is larger than \(limit) bytes"
        case .redirectRefused(let reason): "the redirect was not followed: \(reason)"
        }
    }
}

/// The faults of the stream by their own names.
extension HTTPSClientError {
    package static let connectionClosed = Self.stream(.closed)
    package static let cancelled = Self.stream(.cancelled)

    package static func timedOut(phase: StreamError.Phase) -> Self { .stream(.timedOut(phase: phase)) }
}
