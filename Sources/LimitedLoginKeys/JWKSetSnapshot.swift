package import LLBytes
public import LLJOSE

/// A published key set: immutable, shared by all workers, safe to drop while another thread still uses it.
public final class JWKSetSnapshot: Sendable {
    /// Rises by one with each publication; 0 is the empty snapshot before the first.
    public let epoch: UInt64
    /// Rises only when the keys themselves change, and not when only their time is extended. Data that a worker has
    /// built from ``keySet`` stays valid while this number is the same.
    public let keySetVersion: UInt64
    /// The keys; none before the first publication.
    public let keySet: JWKSet
    /// Name of the source of the keys; nil before the first publication.
    public let source: String?
    /// The moments at which they were confirmed, are due again and end; nil before the first publication.
    let times: JWKSetCacheState.Times?
    private let clock: @Sendable () -> MonotonicInstant

    init(
        epoch: UInt64 = 0,
        keySetVersion: UInt64 = 0,
        keySet: JWKSet = JWKSet(keys: []),
        source: String? = nil,
        times: JWKSetCacheState.Times? = nil,
        clock: @escaping @Sendable () -> MonotonicInstant = { MonotonicClock.now() }
    ) {
        self.epoch = epoch
        self.keySetVersion = keySetVersion
        self.keySet = keySet
        self.source = source
        self.times = times
        self.clock = clock
    }

    /// From this moment on the keys verify no token: the answer is 503. This needs no timer.
    package var usableUntil: MonotonicInstant { times?.usableUntil ?? MonotonicInstant(nanoseconds: 0) }

    /// True if the keys may verify now, by the cache's clock. Check it before each use of a snapshot that you keep.
    public var isUsable: Bool { isUsable(at: clock()) }

    package func isUsable(at now: MonotonicInstant) -> Bool { now < usableUntil }

    /// The snapshot before the first publication: no keys, never usable.
    static let empty = JWKSetSnapshot()
}
