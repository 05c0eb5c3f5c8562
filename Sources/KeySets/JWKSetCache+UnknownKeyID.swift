package import Sockets

extension JWKSetCache {
    /// A token names a key ID that the snapshot of epoch `seenEpoch` lacks: answers what to do about it.
    ///
    /// Begins a fetch where the budget allows. Takes the cache's lock: only tokens with unknown keys come here. A bad
    /// signature must not, for it says nothing about the keys.
    /// - Parameters:
    ///   - keyID: `kid` as the token has it, decoded.
    ///   - waitingSince: When the request came in; it bounds the wait however often the request asks again.
    package func unknownKeyID(
        _ keyID: Span<UInt8>,
        seenEpoch: UInt64,
        waitingSince: MonotonicInstant,
        now: MonotonicInstant
    ) -> UnknownKeyIDAnswer {
        let hash = Self.hash(keyID)
        let (answer, begins) = storage.withLock { storage -> (UnknownKeyIDAnswer, Bool) in
            if published.epoch != seenEpoch { return (.lookAgain, false) }
            let result = storage.machine.unknownKeyID(hash: hash, since: waitingSince, at: now)
            // A request that waits is counted when it has its answer, however often it asks.
            if case .wait = result.answer {} else { storage.counters.unknownKeyIDs += 1 }
            if result.begins { storage.counters.fetchesForUnknownKeyIDs += 1 }
            return result
        }
        if begins { run(.unknownKeyID) }
        return answer
    }

    /// A request finds the snapshot of epoch `seenEpoch` unusable, empty or too old: answers whether to wait.
    package func keysUnavailable(
        seenEpoch: UInt64,
        waitingSince: MonotonicInstant,
        now: MonotonicInstant
    ) -> KeysUnavailableAnswer {
        storage.withLock { storage in
            if published.epoch != seenEpoch { return .lookAgain }
            return storage.machine.keysUnavailable(since: waitingSince, at: now)
        }
    }

    /// Whether a fetch is under way.
    public var isFetching: Bool {
        storage.withLock { storage in
            if case .underWay = storage.machine.fetch { true } else { false }
        }
    }

    /// A hash with the process's random key, so that nobody outside can aim at an entry.
    static func hash(_ keyID: Span<UInt8>) -> UInt64 {
        var hasher = Hasher()
        unsafe keyID.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        return UInt64(truncatingIfNeeded: hasher.finalize())
    }
}

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
