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

/// The times of the key cache, each with its default and reason. Those that only tests change are not public.
///
/// `init` accepts any values; ``JWKSetCache`` refuses limits that contradict each other.
public struct JWKSetCacheLimits: Sendable, Equatable {
    /// Time to live of a key set if the answer names none. 3600 s: keys rotate monthly, an old key stays published for
    /// a month, and an unknown key ID causes a fetch at once.
    public var timeToLive: Duration = .seconds(3600)
    /// Least time to live, whatever `Cache-Control` says. 300 s: `max-age=0` must not become a fetch loop.
    public var minimumTimeToLive: Duration = .seconds(300)
    /// Greatest time to live, whatever `Cache-Control` says. 86400 s: a key withdrawn by the issuer stops verifying
    /// within a day even without another cause for a fetch.
    public var maximumTimeToLive: Duration = .seconds(86_400)
    /// Part of the time to live by which a refresh precedes the expiry. 0.1: for keys of an hour that leaves time for
    /// several attempts before they become stale. Jitter makes it half to one and a half of that, so that a fleet does
    /// not fetch all at once.
    static let refreshAheadFraction = 0.1
    /// The time for which the last good keys are used past their expiry. 86400 s: longer than any outage seen, short
    /// enough that a withdrawn key does not verify for ever.
    public var maximumStaleness: Duration = .seconds(86_400)
    /// The time a request waits for the first keys if there are none, counted from its arrival. 2 s: a login tolerates
    /// it.
    package var waitForFetch: Duration = .seconds(2)
    /// Time between two fetches for unknown key IDs. 5 s: the longest delay of a rotation by a flood of made-up key
    /// IDs, and twelve small conditional requests a minute while it lasts. Ordinary refreshes are separate, and no
    /// flood delays them.
    package var unknownKeyIDInterval: Duration = .seconds(5)
    /// The time a request with an unknown key ID waits for the next fetch, counted from its arrival. 6 s: the interval,
    /// and a second for the fetch.
    package var waitForUnknownKeyID: Duration = .seconds(6)
    /// Tasks that wait in ``JWKSetCache/keySet(containing:)`` for an unknown key ID. 512, about a hundred a second:
    /// each holds a token.
    package var waitingTaskCount = 512
    /// Key IDs remembered as unknown. 1,024: the memory stays bounded in a flood.
    static let negativeEntryCount = 1024
    /// The time a key ID stays unknown after a good fetch without it. 60 s: a key ID that keeps coming is refused
    /// meanwhile and takes no place among the waiting ones. A changed set ends that time earlier. While the key ID
    /// keeps coming, one more fetch after the interval checks it, since an edge server of the issuer may have answered
    /// with the previous set.
    package var negativeLifetime: Duration = .seconds(60)
    /// The same for a key that has just left the set: such an edge server must not keep it out longer. It is also the
    /// time for which a fetch answers the requests that waited for it. 2 s.
    package var joinedNegativeLifetime: Duration = .seconds(2)
    /// Wait after a first failed fetch, doubled by each further one. 1 s.
    static let minimumBackOff: Duration = .seconds(1)
    /// Greatest wait after failed fetches, also for `Retry-After`. 60 s: keys return within a minute after the source
    /// does.
    static let maximumBackOff: Duration = .seconds(60)
    /// Spreads the fetches of a fleet: from 0 up to 1; nil for chance.
    package var jitter: Double?
    /// The time that one source may take. 10 s: a source that takes longer stops the cache's other work, and the
    /// service reports itself as not alive.
    package static let fetchTimeout: Duration = .seconds(10)

    /// The defaults.
    public init() {}
}

extension JWKSetCacheLimits {
    /// Refuses limits that contradict each other or that no cache could keep.
    /// - Throws: ``JWKSetCacheError/invalidLimits(_:)``.
    package func validate() throws(JWKSetCacheError) {
        let year = Duration.seconds(366 * 86_400)
        func require(_ holds: Bool, _ reason: String) throws(JWKSetCacheError) {
            if !holds { throw .invalidLimits(reason) }
        }
        try require(minimumTimeToLive >= .seconds(1), "the minimum time to live is below one second")
        try require(minimumTimeToLive <= maximumTimeToLive, "the minimum time to live exceeds the maximum")
        let isWithin = timeToLive >= minimumTimeToLive && timeToLive <= maximumTimeToLive
        try require(isWithin, "the time to live lies outside its minimum and maximum")
        try require(maximumTimeToLive <= year, "the maximum time to live exceeds a year")
        try require((.zero...year).contains(maximumStaleness), "the maximum staleness is negative or exceeds a year")
    }
}
