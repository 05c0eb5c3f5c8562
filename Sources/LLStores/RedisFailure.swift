internal import LLSockets

/// Why the store cannot be used. The description states the remedy and quotes no secret.
package enum RedisFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// The connection could not be made or broke. The text is the network's reason.
    case connection(String)
    case timedOut
    /// The answer is not RESP, or has longer lines or arrays than ``RESPLimits`` allow.
    case malformedAnswer
    /// The answer is longer than ``RESPLimits/answerBytes``.
    case answerTooLong
    case unauthenticated
    case notPermitted
    case readOnly
    case outOfMemory
    case evicting(policy: String)
    case loading
    case cannotPersist
    case unsupportedMode(String)
    /// The data were replaced while the connection was open.
    case memoryLost
    /// The server's clock changed, so entries dated by it may be out of order.
    case clockChanged
    case tooManyRevocations
    /// Another refusal, identified by its code.
    case refused(code: String)

    /// A refusal of the server, from the first word of its error.
    init(code: String) {
        self =
            switch code {
            case "NOAUTH", "WRONGPASS": .unauthenticated
            case "NOPERM": .notPermitted
            case "READONLY", "NOREPLICAS": .readOnly
            case "OOM": .outOfMemory
            case "LOADING", "MASTERDOWN", "BUSY", "TRYAGAIN": .loading
            case "MISCONF": .cannotPersist
            case "MOVED", "ASK", "CROSSSLOT", "CLUSTERDOWN": .unsupportedMode("cluster")
            default: .refused(code: code)
            }
    }

    init(_ error: StreamError) {
        switch error {
        case .timedOut: self = .timedOut
        default: self = .connection(error.description)
        }
    }

    package var description: String {
        switch self {
        case .connection(let reason): reason
        case .timedOut: "the server does not answer in time"
        case .malformedAnswer: "what answers does not speak the Redis protocol, or speaks it through TLS"
        case .answerTooLong: "an answer of the server is longer than \(RESPLimits.answerBytes) bytes"
        case .unauthenticated:
            "the password or user is refused: check LIMITED_LOGIN_REPLAY_STORE_PASSWORD_FILE and the user in the URL"
        case .notPermitted:
            "the user may not run all of INFO, TIME, GET, SET, ZADD, ZRANGEBYSCORE, ZREM and ZREMRANGEBYSCORE: grant them"
        case .readOnly: "the server is a read-only replica: name the primary"
        case .outOfMemory: "the server has no memory left: raise its maxmemory"
        case .evicting(let policy):
            "the server forgets keys when its memory is full (maxmemory-policy \(policy)): set noeviction"
        case .loading: "the server is busy or still reading its data"
        case .cannotPersist: "the server refuses writes because it cannot save to its disk"
        case .unsupportedMode(let mode): "the server runs in \(mode) mode: name a single primary"
        case .memoryLost: "the server's data were replaced"
        case .clockChanged: "the server's clock was set, or this machine stood still: run NTP"
        case .tooManyRevocations:
            "limited-login:revocations has more members than the service writes: find out what else writes there"
        case .refused(let code): "the server refuses with \(code)"
        }
    }
}
