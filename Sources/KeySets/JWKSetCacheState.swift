package import Sockets

/// The key cache without its I/O: events and times go in, a fetch to begin or an answer comes out.
///
/// Two things have a state of their own, the keys held and the fetch; ``phase(at:)`` names the pair. The diagram is in
/// the documentation of this target.
package struct JWKSetCacheState: Sendable {
    /// When held keys are asked for again, grow stale and stop verifying.
    package struct Times: Sendable, Equatable {
        package var refreshAt: MonotonicInstant
        package var expiresAt: MonotonicInstant
        package var usableUntil: MonotonicInstant
    }

    /// What the one fetch at a time is doing.
    package enum Fetch: Sendable, Equatable {
        case idle
        case underWay(since: MonotonicInstant)
        case backingOff(until: MonotonicInstant)
    }

    /// How a fetch of all sources ended.
    package enum Outcome: Sendable, Equatable {
        /// Another set than before.
        case replaced(JWKSetFreshness)
        /// 304, or the same keys again.
        case unchanged(JWKSetFreshness)
        /// No source gave a usable set.
        case failed(retryAfterSeconds: Int?)
    }

    let limits: JWKSetCacheLimits
    let jitter: @Sendable () -> Double
    package internal(set) var times: Times?
    package internal(set) var fetch = Fetch.idle
    package internal(set) var consecutiveFailures = 0
    var isStopped = false
    // Fetches are numbered from 1 in the order they begin.
    var fetchNumber: UInt64 = 0
    var lastGoodFetch: UInt64 = 0
    var lastGoodFetchBeganAt = MonotonicInstant(nanoseconds: 0)
    var lastGoodFetchEndedAt = MonotonicInstant(nanoseconds: 0)
    // What was learned about key IDs before this fetch no longer holds: it changed the set.
    var setChangedByFetch: UInt64 = 0
    var budget: RefetchBudget
    var memory: UnknownKeyIDMemory

    /// `jitter` answers numbers from 0 up to 1.
    package init(limits: JWKSetCacheLimits, jitter: @escaping @Sendable () -> Double) {
        self.limits = limits
        self.jitter = jitter
        budget = RefetchBudget(burst: limits.unknownKeyIDBurst, interval: limits.unknownKeyIDInterval)
        memory = UnknownKeyIDMemory(capacity: limits.negativeEntryCount)
    }

    /// The state's name, by its most serious property.
    package func phase(at now: MonotonicInstant) -> JWKSetCachePhase {
        guard let times else { return .empty }
        if now >= times.usableUntil { return .expired }
        if now >= times.expiresAt { return .stale }
        switch fetch {
        case .idle: return .fresh
        case .underWay: return .refreshing
        case .backingOff: return .backingOff
        }
    }

    /// The next moment at which something is due: a fetch, or a state that changes by time alone.
    package func nextWake(after now: MonotonicInstant) -> MonotonicInstant? {
        guard !isStopped else { return nil }
        var next = MonotonicInstant.never
        if let times {
            if now < times.expiresAt { next = min(next, times.expiresAt) }
            if now < times.usableUntil { next = min(next, times.usableUntil) }
            if fetch == .idle { next = min(next, times.refreshAt) }
        }
        if case .backingOff(let until) = fetch { next = min(next, until) }
        return next == .never ? nil : next
    }
}
