/// Every limit of the key cache, with its default and reason.
///
/// `init` takes what it is given; ``JWKSetCache`` refuses limits that contradict each other (``validate()``).
public struct JWKSetCacheLimits: Sendable, Equatable {
    /// Time to live of a key set whose answer names none. 3600 s: keys rotate monthly, a superseded one stays
    /// published for a month, and an unknown key ID asks at once.
    public var timeToLive: Duration = .seconds(3600)
    /// Least time to live, whatever `Cache-Control` says. 300 s: `max-age=0` must not become a fetch loop.
    public var minimumTimeToLive: Duration = .seconds(300)
    /// Greatest time to live, whatever `Cache-Control` says. 86400 s: a key withdrawn by the issuer stops verifying
    /// within a day even if nothing else asks.
    public var maximumTimeToLive: Duration = .seconds(86_400)
    /// Part of the time to live by which a refresh runs ahead of expiry. 0.1: ten chances of a minute each before the
    /// keys of an hour grow stale. Jitter makes it half to one and a half of that, so that a fleet does not ask at once.
    public var refreshAheadFraction = 0.1
    /// How long the last good keys serve past their expiry. 86400 s: longer than any outage seen, short enough that a
    /// withdrawn key does not verify for ever.
    public var maximumStaleness: Duration = .seconds(86_400)
    /// How long a request waits for a fetch that may bring its key, counted from its arrival. 2 s: a login can bear it.
    public var waitForFetch: Duration = .seconds(2)
    /// Refetches for unknown key IDs that may follow each other at once. 2: a rotation one second after a fetch is
    /// still picked up by the first token that needs it.
    public var unknownKeyIDBurst = 2
    /// Time in which one more such refetch is earned. 5 s: the longest that a flood of made-up key IDs can delay a
    /// rotation, and twelve small conditional requests a minute while it lasts. Separate from ordinary refreshes, which
    /// no flood delays.
    public var unknownKeyIDInterval: Duration = .seconds(5)
    /// Key IDs remembered as unknown. 1,024, about 32 KiB: the memory of a flood stays flat.
    public var negativeEntryCount = 1024
    /// How long a key ID stays unknown after the key set was asked for its sake. 60 s; a changed set forgets it sooner.
    public var negativeLifetime: Duration = .seconds(60)
    /// The same for a key ID that came while a fetch was already under way, whose answer may be older than the key. 2 s.
    public var joinedNegativeLifetime: Duration = .seconds(2)
    /// Wait after a first failed fetch, doubled by each further one. 1 s.
    public var minimumBackOff: Duration = .seconds(1)
    /// Greatest wait after failed fetches, also for `Retry-After`. 60 s: keys are back within a minute of the source.
    public var maximumBackOff: Duration = .seconds(60)
    /// Bytes of a JWK Set. 64 KiB: Facebook's takes 1 KiB.
    public var keySetBytes = 64 * 1024

    /// The defaults.
    public init() {}
}
