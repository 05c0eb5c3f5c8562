public import LLJOSE
package import LLSockets

/// A key set as it was published: immutable, shared by all workers, safe to drop while another thread still uses it.
public final class JWKSetSnapshot: Sendable {
    /// Rises by one with each publication; 0 is the empty snapshot before the first.
    public let epoch: UInt64
    /// Rises only when the keys themselves change; a mere extension of their time leaves it. What a worker has built
    /// from ``keySet`` stays right for as long as this number stands.
    public let keySetVersion: UInt64
    /// The keys; none before the first publication.
    public let keySet: JSONWebKeySet
    /// Name of the source the keys came from; nil before the first publication.
    public let source: String?
    /// When they were confirmed, are due again and end; nil before the first publication.
    let times: JWKSetCacheState.Times?

    init(epoch: UInt64, keySetVersion: UInt64, keySet: JSONWebKeySet, source: String?, times: JWKSetCacheState.Times?) {
        self.epoch = epoch
        self.keySetVersion = keySetVersion
        self.keySet = keySet
        self.source = source
        self.times = times
    }

    /// From this moment on the keys verify nothing: the answer is 503. No timer is needed for it to be right.
    package var usableUntil: MonotonicInstant { times?.usableUntil ?? MonotonicInstant(nanoseconds: 0) }

    /// Whether the keys may verify now, by the monotonic clock. Ask it before each use of a snapshot that you keep.
    public var isUsable: Bool { isUsable(at: MonotonicClock.now()) }

    /// Whether the keys may verify at this moment.
    package func isUsable(at now: MonotonicInstant) -> Bool { now < usableUntil }

    /// The snapshot before the first publication: no keys, usable never.
    static let empty =
        JWKSetSnapshot(epoch: 0, keySetVersion: 0, keySet: JSONWebKeySet(keys: []), source: nil, times: nil)
}
