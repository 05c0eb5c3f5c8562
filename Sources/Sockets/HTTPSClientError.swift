/// Why a fetch yielded no response. `description` is one sentence fit for a log line; it quotes nothing the peer sent.
package enum HTTPSClientError: Error, Equatable, Sendable, CustomStringConvertible {
    case nameNotResolved(host: String, reason: String)
    case connectFailed(reason: String)
    case proxyFailed(reason: String)
    case tls(reason: String)
    case timedOut(phase: Phase)
    case malformedRequest
    case malformedResponse(reason: String)
    case connectionClosed
    case connectionFailed(reason: String)
    case headTooLarge(limit: Int)
    case bodyTooLarge(limit: Int)
    case redirectRefused(reason: String)
    case cancelled

    /// Where a fetch stood when its time ran out.
    package enum Phase: String, Sendable { case resolving, connecting, handshaking, sending, receiving }

    package var description: String {
        switch self {
        case .nameNotResolved(let host, let reason): "the name \(host) could not be resolved: \(reason)"
        case .connectFailed(let reason): "no connection could be made: \(reason)"
        case .proxyFailed(let reason): "the proxy did not open a tunnel: \(reason)"
        case .tls(let reason): reason
        case .timedOut(let phase): "the time ran out while \(phase.rawValue)"
        case .malformedRequest: "a header field holds a byte that is not allowed"
        case .malformedResponse(let reason): "the answer is not HTTP: \(reason)"
        case .connectionClosed: "the connection was closed before the answer was whole"
        case .connectionFailed(let reason): "the connection failed: \(reason)"
        case .headTooLarge(let limit): "the answer's head is larger than \(limit) bytes"
        case .bodyTooLarge(let limit): "the answer's body is larger than \(limit) bytes"
        case .redirectRefused(let reason): "the redirect was not followed: \(reason)"
        case .cancelled: "the fetch was cancelled"
        }
    }
}
