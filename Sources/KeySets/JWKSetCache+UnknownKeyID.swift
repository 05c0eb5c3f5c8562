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
