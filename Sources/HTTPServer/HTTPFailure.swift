package import HTTP1

/// A refusal by the server itself, before or instead of its handler.
package enum HTTPFailure: Equatable, Sendable {
    /// The grammar refuses the request: 400, 413, 414, 417, 431, 501 or 505.
    case refused(RequestRefusal)
    /// The body exceeds what the handler asked for: 413.
    case bodyTooLarge
    /// Head or body did not arrive in time: 408.
    case timedOut
    /// Requests wait too long, or there are too many connections: 503 with Retry-After.
    case overloaded
    /// The handler broke its contract (a status out of range, parking for ever): 500.
    case handlerFailed

    /// The status code this failure is answered with.
    package var status: UInt16 {
        switch self {
        case .refused(let refusal): refusal.status
        case .bodyTooLarge: 413
        case .timedOut: 408
        case .overloaded: 503
        case .handlerFailed: 500
        }
    }
}
