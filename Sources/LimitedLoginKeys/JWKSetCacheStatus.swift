internal import LLBytes
public import LLJOSE

/// The state of a key cache, by its most serious property.
@nonexhaustive  // SE-0487
public enum JWKSetCachePhase: String, Sendable, CaseIterable {
    /// The cache has had no keys yet.
    case empty
    /// Keys are within their time to live, and no fetch is running.
    case fresh
    /// Keys are within their time to live, and a fetch is running.
    case refreshing
    /// Keys are past their time to live but are still used; the source has not confirmed them.
    case stale
    /// Keys are past their greatest staleness and verify nothing.
    case expired
    /// Keys are within their time to live, the last fetch failed, and the next attempt waits.
    case backingOff
}

/// The state and the totals of a key cache, for health checks, metrics and people.
public struct JWKSetCacheStatus: Sendable, Equatable {
    /// The cache's counts since it was made.
    public struct Counters: Sendable, Equatable {
        /// Fetches that brought another set than before.
        public var fetchesReplaced: UInt64 = 0
        /// Fetches that found the set unchanged: 304, or the same keys again.
        public var fetchesUnchanged: UInt64 = 0
        /// Fetches that brought no usable set.
        public var fetchesFailed: UInt64 = 0
        /// Tokens with a key ID that was not in the set: refused, or left without a verdict.
        public var unknownKeyIDs: UInt64 = 0
    }

    /// The state.
    public let phase: JWKSetCachePhase
    /// True if the keys may verify now.
    public let isUsable: Bool
    /// True while a fetch is running.
    public let isFetching: Bool
    /// The keys, in the order of the set.
    public let keys: [JWK]
    /// Keys of the set that cannot be used here. The source chose their key IDs, so escape them before they are shown.
    public let ignoredKeys: [JWKSet.IgnoredKey]
    /// The source of the keys; nil while there are none.
    public let source: String?
    /// Time since the source last confirmed the keys; nil while there are none.
    public let age: Duration?
    /// Time until the keys must be fetched again, negative once past; nil while there are none.
    public let untilExpiry: Duration?
    /// Time until the keys stop verifying, negative once past; nil while there are none.
    public let untilUnusable: Duration?
    /// Time until the next attempt after a failure; nil if none is due.
    public let untilNextAttempt: Duration?
    /// Fetches failed since the last good one.
    public let consecutiveFailures: Int
    /// The last failure's sentence; nil once a fetch has succeeded since.
    public let lastError: String?
    /// Totals.
    public let counters: Counters
}

extension JWKSetCache {
    /// The state and the totals of the cache at this moment.
    public var status: JWKSetCacheStatus {
        let now = clock()
        let (storage, snapshot) = storage.withLock { ($0, published.value) }
        let times = snapshot.times
        return JWKSetCacheStatus(
            phase: storage.machine.phase(at: now),
            isUsable: snapshot.isUsable(at: now),
            isFetching: storage.machine.isFetching,
            keys: snapshot.keySet.keys,
            ignoredKeys: snapshot.keySet.ignoredKeys,
            source: snapshot.source,
            age: times.map { $0.age + now.duration(since: $0.confirmedAt) },
            untilExpiry: times.map { Self.time(from: now, to: $0.expiresAt) },
            untilUnusable: times.map { Self.time(from: now, to: $0.usableUntil) },
            untilNextAttempt: storage.machine.nextAttempt?.duration(since: now),
            consecutiveFailures: storage.machine.consecutiveFailures,
            lastError: storage.lastError,
            counters: storage.counters
        )
    }

    private static func time(from now: MonotonicInstant, to later: MonotonicInstant) -> Duration {
        later.duration(since: now) - now.duration(since: later)
    }
}
