internal import LLBytes

/// The key cache without its I/O: events and times go in, a fetch to begin or an answer comes out.
/// The held keys and the fetch each have a state; ``phase(at:)`` names the pair. The diagram is in the documentation of
/// this target.
struct JWKSetCacheState: Sendable {
    /// The moments at which the source confirmed the held keys, and at which they are refreshed, become stale and stop
    /// verifying.
    struct Times: Sendable, Equatable {
        let confirmedAt: MonotonicInstant
        let refreshAt: MonotonicInstant
        let expiresAt: MonotonicInstant
        let usableUntil: MonotonicInstant
        /// The age that they had when they were confirmed; above zero only for a seed.
        var age = Duration.zero
    }

    enum Fetch: Sendable, Equatable {
        case idle
        case underWay(since: MonotonicInstant)
        case backingOff(until: MonotonicInstant)
    }

    let limits: JWKSetCacheLimits
    var times: Times?
    var fetch = Fetch.idle
    var consecutiveFailures = 0
    var isStopped = false
    // Fetches are numbered from 1 in the order they begin.
    var fetchNumber: UInt64 = 0
    var lastGoodFetch: UInt64 = 0
    var lastGoodFetchBeganAt = MonotonicInstant(nanoseconds: 0)
    var lastGoodFetchEndedAt = MonotonicInstant(nanoseconds: 0)
    // The moment at which the sources may be asked again for unknown key IDs, and a flag that such a fetch is wanted.
    var nextRefetchAt = MonotonicInstant(nanoseconds: 0)
    var isRefetchWanted = false
    /// The key IDs that the sources were asked for, each with the fetch that answers; `hasLeft` if that was the first one
    /// without it. The sender of a token chooses its key ID: the keys are hashes with a random key, never the text.
    var askedKeyIDs: [UInt64: (fetch: UInt64, hasLeft: Bool)] = [:]

    var isFetching: Bool { if case .underWay = fetch { true } else { false } }

    var fetchUnderWay: UInt64? { isFetching ? fetchNumber : nil }

    /// The number of the fetch that requests wait for: the running one, or the next.
    var awaitedFetch: UInt64? { fetchUnderWay ?? (isRefetchWanted ? fetchNumber + 1 : nil) }

    /// The moment of the next attempt after a failure; nil if the last fetch did not fail.
    var nextAttempt: MonotonicInstant? { if case .backingOff(let until) = fetch { until } else { nil } }

    func phase(at now: MonotonicInstant) -> JWKSetCachePhase {
        guard let times else { return .empty }
        if now >= times.usableUntil { return .expired }
        if now >= times.expiresAt { return .stale }
        switch fetch {
        case .idle: return .fresh
        case .underWay: return .refreshing
        case .backingOff: return .backingOff
        }
    }

    /// The next moment at which a fetch is due, or a phase changes by time alone.
    func nextWake(after now: MonotonicInstant) -> MonotonicInstant? {
        guard !isStopped else { return nil }
        let changes = [times?.expiresAt, times?.usableUntil].compactMap { $0 }.filter { now < $0 }
        let refetchAt = isRefetchWanted ? nextRefetchAt : nil
        let fetches = (fetch == .idle ? [times?.refreshAt, refetchAt] : [nextAttempt]).compactMap { $0 }
        return (changes + fetches).filter { $0 != .never }.min()
    }
}

extension JWKSetCacheState {
    /// Keys from the seed file, confirmed `age` ago: they are used no longer than any others.
    mutating func seed(age: Duration, at now: MonotonicInstant) {
        let expiresAt = now + (limits.timeToLive - age)
        times = Times(
            confirmedAt: now,
            refreshAt: expiresAt,
            expiresAt: expiresAt,
            usableUntil: now + (limits.maximumStaleness - age),
            age: age
        )
    }

    /// Begins a fetch if none is running, independent of interval and back-off: for a start, or a person's request.
    mutating func begin(at now: MonotonicInstant) -> Bool {
        if isStopped || isFetching { return false }
        fetchNumber += 1
        fetch = .underWay(since: now)
        // The fetch answers all that wait.
        isRefetchWanted = false
        return true
    }

    /// Time has passed: begins the fetch that is now due, and returns its reason.
    mutating func wake(at now: MonotonicInstant) -> JWKSetEvent.Reason? {
        switch fetch {
        case .underWay: nil
        case .backingOff(let until): now >= until && begin(at: now) ? .retry : nil
        case .idle where times.map { now >= $0.refreshAt } ?? false: begin(at: now) ? .refresh : nil
        case .idle: isRefetchWanted && beginRefetch(at: now) ? .unknownKeyID : nil
        }
    }

    /// The running fetch has ended: no source gave a usable set.
    mutating func fail(retryAfter: Duration?, at now: MonotonicInstant) {
        consecutiveFailures += 1
        fetch = .backingOff(until: now + backOff(retryAfter: retryAfter))
    }

    /// The time to live of an answer: its own within the limits, or the default (RFC 9111, 4.2.1).
    func timeToLive(of freshness: JWKSetFreshness) -> Duration {
        guard let remaining = freshness.remaining else { return limits.timeToLive }
        return min(max(remaining, limits.minimumTimeToLive), limits.maximumTimeToLive)
    }

    /// The running fetch has ended: a source gave another set or the same one, or confirmed the held one.
    mutating func confirm(_ freshness: JWKSetFreshness, isReplaced: Bool, at now: MonotonicInstant) {
        let life = timeToLive(of: freshness)
        let lead = life * (JWKSetCacheLimits.refreshAheadFraction * (0.5 + jitter))
        times = Times(
            confirmedAt: now,
            refreshAt: now + (life - lead),
            expiresAt: now + life,
            usableUntil: now + life + limits.maximumStaleness
        )
        consecutiveFailures = 0
        // Another set makes the answers of earlier fetches void.
        if isReplaced { askedKeyIDs = askedKeyIDs.filter { $0.value.fetch >= fetchNumber } }
        lastGoodFetch = fetchNumber
        if case .underWay(let began) = fetch { lastGoodFetchBeganAt = began }
        lastGoodFetchEndedAt = now
        fetch = .idle
    }

    private var jitter: Double { limits.jitter ?? Double.random(in: 0..<1) }

    // Three quarters to the whole of 1, 2, 4 … 60 s; never shorter than the source asked for, within the same maximum.
    private func backOff(retryAfter: Duration?) -> Duration {
        // Twenty doublings of a second are twelve days; the count itself may grow without end.
        let doublings = min(max(consecutiveFailures - 1, 0), 20)
        let (least, greatest) = (JWKSetCacheLimits.minimumBackOff, JWKSetCacheLimits.maximumBackOff)
        let step = min(least * (1 << doublings), greatest) * (0.75 + 0.25 * jitter)
        return retryAfter.map { max(step, min($0, greatest)) } ?? step
    }
}

// MARK: Unknown key IDs

extension JWKSetCacheState {
    /// Decides about a token with a missing key, and begins a fetch if needed. The parameters are those of
    /// ``JWKSetCache/missingKey(_:seenEpoch:waitingSince:mayWait:now:)``.
    mutating func missingKey(
        hash: UInt64?,
        since: MonotonicInstant,
        mayWait: Bool = true,
        at now: MonotonicInstant
    ) -> (answer: MissingKeyAnswer, begins: Bool) {
        if let hash {
            if isAnswered(since: since, at: now) { return (.unknown, false) }
            if isKnownToBeUnknown(hash, at: now) {
                // If only one fetch has found the key ID unknown and its tokens keep coming, it is checked once more: an
                // edge server of the issuer may have answered with the previous set. No request waits for that.
                let isFoundOnce = since >= lastGoodFetchEndedAt && askedKeyIDs[hash]?.fetch == lastGoodFetch
                if isFoundOnce, fetch == .idle, !isStopped { isRefetchWanted = true }
                return (.unknown, false)
            }
        }
        if case .backingOff(let until) = fetch {
            return (.unavailable(retryAfterSeconds: Self.seconds(from: now, to: until)), false)
        }
        guard let hash else {
            // There are no usable keys: a running fetch may bring the first.
            let deadline = since + limits.waitForFetch
            let waits = isFetching && !isStopped && now < deadline
            return (waits ? .wait(until: deadline) : .unavailable(retryAfterSeconds: 1), false)
        }
        let deadline = since + limits.waitForUnknownKeyID
        guard !isStopped, now < deadline, mayWait else { return (noAnswer(at: now), false) }
        if case .underWay(let began) = fetch {
            // The running fetch answers for it, unless it is older than the request; then the next fetch does. Keep the
            // first entry: the running fetch is newer.
            let answering = began < since ? fetchNumber + 1 : fetchNumber
            if askedKeyIDs[hash] == nil { remember(hash, answering) }
            return (.wait(until: deadline), false)
        }
        // The sources were not asked about this key ID, so it may not be called unknown. The next fetch answers for it.
        remember(hash, fetchNumber + 1)
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
    mutating func keyHasLeft(hash: UInt64) { remember(hash, fetchNumber, hasLeft: true) }

    /// The request cannot wait (any longer). It is an outage only if the last fetch failed; otherwise any client could
    /// cause one.
    private func noAnswer(at now: MonotonicInstant) -> MissingKeyAnswer {
        if isStopped || consecutiveFailures > 0 { return .unavailable(retryAfterSeconds: 1) }
        return .exhausted(retryAfterSeconds: Self.seconds(from: now, to: max(now, nextRefetchAt)))
    }

    /// True if a good fetch that began while this request waited has just ended. No request then causes or joins
    /// another fetch, so a burst of any size costs one. The answer of an earlier fetch may be older than the key.
    private func isAnswered(since: MonotonicInstant, at now: MonotonicInstant) -> Bool {
        lastGoodFetch > 0 && since <= lastGoodFetchBeganAt && since < lastGoodFetchEndedAt
            && now < lastGoodFetchEndedAt + limits.joinedNegativeLifetime
    }

    private func isKnownToBeUnknown(_ hash: UInt64, at now: MonotonicInstant) -> Bool {
        guard let entry = askedKeyIDs[hash], lastGoodFetch >= entry.fetch else { return false }
        // A removed key counts as gone after a second fetch without it.
        let isBorneOut = !entry.hasLeft || lastGoodFetch > entry.fetch
        return now < lastGoodFetchEndedAt + (isBorneOut ? limits.negativeLifetime : limits.joinedNegativeLifetime)
    }

    /// Remembers a key ID, and forgets all others if there are too many. A forgotten one costs a wait for the next fetch,
    /// never a wrong answer about a key.
    private mutating func remember(_ hash: UInt64, _ fetch: UInt64, hasLeft: Bool = false) {
        if askedKeyIDs.count >= JWKSetCacheLimits.negativeEntryCount { askedKeyIDs = [:] }
        askedKeyIDs[hash] = (fetch, hasLeft)
    }

    /// Whole seconds, at least 1: the value of `Retry-After`.
    private static func seconds(from now: MonotonicInstant, to later: MonotonicInstant) -> Int {
        let nanoseconds = later.nanoseconds(since: now)
        return max(1, Int(clamping: nanoseconds / 1_000_000_000 + (nanoseconds % 1_000_000_000 == 0 ? 0 : 1)))
    }
}
