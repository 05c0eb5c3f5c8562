package import Sockets

/// What to do about a token whose key ID is not in the key set.
package enum UnknownKeyIDAnswer: Sendable, Equatable {
    /// The key set has changed since it was looked at: take the new snapshot and look again.
    case lookAgain
    /// A fetch that may bring the key is under way: park the request, ask again at the next update, and at the latest
    /// at this moment, which never lies past the request's own wait.
    case wait(until: MonotonicInstant)
    /// The sources were asked and do not have it: 401 `unknown_key`.
    case unknown
    /// The sources cannot be asked at present, because they fail or because the budget for asking is spent: 503
    /// `keys_unavailable`.
    case unavailable(retryAfterSeconds: Int)
}

/// What to do about a request that finds no usable keys at all.
package enum KeysUnavailableAnswer: Sendable, Equatable {
    /// The key set has changed since it was looked at: take the new snapshot and look again.
    case lookAgain
    /// A fetch is under way: park the request, ask again at the next update, at the latest at this moment.
    case wait(until: MonotonicInstant)
    /// 503 `keys_unavailable`.
    case unavailable(retryAfterSeconds: Int)
}
