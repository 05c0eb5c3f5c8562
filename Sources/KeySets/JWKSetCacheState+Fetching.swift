package import Sockets

extension JWKSetCacheState {
    /// Keys from the seed file, confirmed `age` ago: they serve no longer than any others would.
    package mutating func seed(age: Duration, at now: MonotonicInstant) {
        let life = limits.timeToLive - age
        let expiresAt = now + life
        times = Times(
            refreshAt: expiresAt,
            expiresAt: expiresAt,
            usableUntil: now + (limits.maximumStaleness - age)
        )
    }

    /// Begins a fetch if none is under way, whatever the budget and the back-off say: a start, or a person asking.
    package mutating func begin(at now: MonotonicInstant) -> Bool {
        if isStopped { return false }
        if case .underWay = fetch { return false }
        fetchNumber += 1
        fetch = .underWay(since: now)
        return true
    }

    /// Time has passed; answers the reason of the fetch that is now due and thereby begun.
    package mutating func wake(at now: MonotonicInstant) -> JWKSetEvent.Reason? {
        switch fetch {
        case .underWay:
            return nil
        case .backingOff(let until):
            return now >= until && begin(at: now) ? .retry : nil
        case .idle:
            guard let times, now >= times.refreshAt else { return nil }
            return begin(at: now) ? .refresh : nil
        }
    }

    /// The fetch under way has ended.
    package mutating func end(_ outcome: Outcome, at now: MonotonicInstant) {
        switch outcome {
        case .replaced(let freshness):
            setChangedByFetch = fetchNumber
            confirm(freshness, at: now)
        case .unchanged(let freshness):
            confirm(freshness, at: now)
        case .failed(let retryAfterSeconds):
            consecutiveFailures += 1
            fetch = .backingOff(until: now + backOff(retryAfterSeconds: retryAfterSeconds))
        }
    }

    /// Nothing is begun any more.
    package mutating func stop() {
        isStopped = true
    }

    /// The time to live of an answer: what it says within the limits, or the default (RFC 9111, 4.2.1).
    package func timeToLive(of freshness: JWKSetFreshness) -> Duration {
        guard let seconds = freshness.remainingSeconds else { return limits.timeToLive }
        // Clamped before it becomes a duration: a source may say any number of digits.
        let greatest = limits.maximumTimeToLive
        let bounded = min(Int64(seconds), greatest.components.seconds &+ 1)
        return min(max(.seconds(bounded), limits.minimumTimeToLive), greatest)
    }

    private mutating func confirm(_ freshness: JWKSetFreshness, at now: MonotonicInstant) {
        let life = timeToLive(of: freshness)
        let lead = life * (limits.refreshAheadFraction * (0.5 + jitter()))
        times = Times(
            refreshAt: now + (life - lead),
            expiresAt: now + life,
            usableUntil: now + life + limits.maximumStaleness
        )
        consecutiveFailures = 0
        lastGoodFetch = fetchNumber
        if case .underWay(let began) = fetch { lastGoodFetchBeganAt = began }
        lastGoodFetchEndedAt = now
        fetch = .idle
    }

    // Three quarters to the whole of 1, 2, 4 … 60 s; never shorter than the source asked, within the same maximum.
    private func backOff(retryAfterSeconds: Int?) -> Duration {
        // Twenty doublings make a second into twelve days; the count itself may grow without end.
        let doublings = min(max(consecutiveFailures - 1, 0), 20)
        let step = min(limits.minimumBackOff * (1 << doublings), limits.maximumBackOff) * (0.75 + 0.25 * jitter())
        guard let retryAfterSeconds else { return step }
        let greatest = limits.maximumBackOff
        let asked = Duration.seconds(min(Int64(retryAfterSeconds), greatest.components.seconds &+ 1))
        return max(step, min(asked, greatest))
    }
}
