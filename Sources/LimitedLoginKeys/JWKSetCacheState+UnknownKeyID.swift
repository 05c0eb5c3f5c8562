internal import LLBytes

extension JWKSetCacheState {
    /// A token's key is missing: decides how to answer the request, and begins a fetch if needed.
    /// - Parameters:
    ///   - hash: The hash of the key ID; nil if there are no usable keys at all. The only question then is if a fetch
    ///     is worth waiting for.
    ///   - since: The moment the request began to wait; it bounds the wait even if the request asks again.
    ///   - mayWait: False if there is no place left for one more request with an unknown key.
    mutating func missingKey(
        hash: UInt64?,
        since: MonotonicInstant,
        mayWait: Bool = true,
        at now: MonotonicInstant
    ) -> (answer: MissingKeyAnswer, begins: Bool) {
        if let hash {
            if isAnswered(since: since, at: now) { return (.unknown, false) }
            if isKnownToBeUnknown(hash, at: now) {
                if since >= lastGoodFetchEndedAt { lookOnceMore(for: hash) }
                return (.unknown, false)
            }
        }
        if case .backingOff(let until) = fetch {
            return (.unavailable(retryAfterSeconds: Self.seconds(from: now, to: until)), false)
        }
        guard let hash else { return (waitForFirstKeys(since: since, at: now), false) }
        let deadline = since + limits.waitForUnknownKeyID
        guard !isStopped, now < deadline, mayWait else { return (noAnswer(at: now), false) }
        if case .underWay(let began) = fetch {
            join(hash, isOlder: began < since)
            return (.wait(until: deadline), false)
        }
        // The sources were not asked about this key ID, so it may not be called unknown. The next fetch answers for it.
        remember(hash, AskedKeyID(fetch: fetchNumber + 1))
        if beginRefetch(at: now) { return (.wait(until: deadline), true) }
        isRefetchWanted = true
        return (nextRefetchAt < deadline ? .wait(until: deadline) : noAnswer(at: now), false)
    }

    /// Begins a fetch for unknown key IDs if the interval since the last one is over.
    mutating func beginRefetch(at now: MonotonicInstant) -> Bool {
        guard now >= nextRefetchAt, begin(at: now) else { return false }
        nextRefetchAt = now + limits.unknownKeyIDInterval
        return true
    }

    /// The good fetch that has just ended no longer has this key: its tokens are rejected for a moment without another
    /// fetch. Then the sources are asked again, since an edge server of the issuer may have answered with the previous
    /// set.
    mutating func keyHasLeft(hash: UInt64) { remember(hash, AskedKeyID(fetch: fetchNumber, hasLeft: true)) }

    /// There are no usable keys: a running fetch may bring the first.
    private func waitForFirstKeys(since: MonotonicInstant, at now: MonotonicInstant) -> MissingKeyAnswer {
        let deadline = since + limits.waitForFetch
        let waits = isFetching && !isStopped && now < deadline
        return waits ? .wait(until: deadline) : .unavailable(retryAfterSeconds: 1)
    }

    /// The request cannot wait (any longer). It is an outage only if the last fetch failed; otherwise any client could
    /// cause one.
    private func noAnswer(at now: MonotonicInstant) -> MissingKeyAnswer {
        if isStopped || consecutiveFailures > 0 { return .unavailable(retryAfterSeconds: 1) }
        return .exhausted(retryAfterSeconds: Self.seconds(from: now, to: max(now, nextRefetchAt)))
    }

    /// Only one fetch has found this key ID unknown, and its tokens keep coming. An edge server of the issuer may have
    /// answered with the previous set, so the key ID is checked once more; no request waits for that.
    private mutating func lookOnceMore(for hash: UInt64) {
        guard fetch == .idle, !isStopped, askedKeyIDs[hash]?.fetch == lastGoodFetch else { return }
        isRefetchWanted = true
    }

    /// True if a good fetch that began while this request waited has just ended. No request then causes or joins
    /// another fetch, so a burst of any size costs one. The answer of an earlier fetch may be older than the key.
    private func isAnswered(since: MonotonicInstant, at now: MonotonicInstant) -> Bool {
        lastGoodFetch > 0 && since <= lastGoodFetchBeganAt && since < lastGoodFetchEndedAt
            && now < lastGoodFetchEndedAt + limits.joinedNegativeLifetime
    }

    private func isKnownToBeUnknown(_ hash: UInt64, at now: MonotonicInstant) -> Bool {
        // No fetch has answered for it yet, or the set has changed since, which makes the answer void.
        guard let entry = askedKeyIDs[hash], lastGoodFetch >= entry.fetch, entry.fetch >= setChangedByFetch else {
            return false
        }
        // A removed key counts as gone after a second fetch without it.
        let isBorneOut = !entry.hasLeft || lastGoodFetch > entry.fetch
        return now < lastGoodFetchEndedAt + (isBorneOut ? limits.negativeLifetime : limits.joinedNegativeLifetime)
    }

    /// Remembers that the key ID was asked about. The running fetch answers for it, unless it is older than the
    /// request; then the next fetch does.
    private mutating func join(_ hash: UInt64, isOlder: Bool) {
        // Keep the first entry: the running fetch is newer.
        if let entry = askedKeyIDs[hash], entry.fetch >= setChangedByFetch { return }
        remember(hash, AskedKeyID(fetch: isOlder ? fetchNumber + 1 : fetchNumber))
    }

    /// Remembers a key ID, and forgets all others if there are too many. A forgotten one costs a wait for the next fetch,
    /// never a wrong answer about a key.
    private mutating func remember(_ hash: UInt64, _ asked: AskedKeyID) {
        if askedKeyIDs.count >= JWKSetCacheLimits.negativeEntryCount { askedKeyIDs = [:] }
        askedKeyIDs[hash] = asked
    }

    /// Whole seconds, at least 1: the value of `Retry-After`.
    private static func seconds(from now: MonotonicInstant, to later: MonotonicInstant) -> Int {
        let nanoseconds = later.nanoseconds(since: now)
        return max(1, Int(clamping: nanoseconds / 1_000_000_000 + (nanoseconds % 1_000_000_000 == 0 ? 0 : 1)))
    }
}
