/// Why an outbound stream could not be opened, or broke.
package enum StreamError: Error, Equatable, Sendable, CustomStringConvertible {
    case nameNotResolved(host: String, reason: String)
    case connectFailed(reason: String)
    case tls(reason: String)
    case timedOut(phase: Phase)
    case closed
    case failed(reason: String)
    case cancelled

    /// What was under way when the time ran out.
    package enum Phase: String, Sendable { case resolving, connecting, handshaking, sending, receiving }

    package var description: String {
        switch self {
        case .nameNotResolved(let host, let reason): "the name \(host) could not be resolved: \(reason)"
        case .connectFailed(let reason): "no connection could be made: \(reason)"
        case .tls(let reason): reason
        case .timedOut(let phase): "the time ran out while \(phase.rawValue)"
        case .closed: "the connection was closed before the answer was whole"
        case .failed(let reason): "the connection failed: \(reason)"
        case .cancelled: "the fetch was cancelled"
        }
    }
}
