internal import JOSE
internal import KeySets
internal import LimitedLogin
internal import Networking

/// One worker's verification keys, built from the cache's snapshot and rebuilt when the key set changes.
///
/// On the request path it costs one atomic load; the snapshot is taken, and OpenSSL's contexts are made, only when the
/// cache has published another epoch.
final class WorkerKeys {
    private let cache: JWKSetCache
    private(set) var snapshot: JWKSetSnapshot
    private(set) var keys: VerificationKeys

    init(cache: JWKSetCache) {
        self.cache = cache
        snapshot = cache.snapshot
        keys = VerificationKeys(snapshot.keySet)
    }

    /// Takes the cache's newest snapshot if there is one.
    func refresh() {
        guard cache.epoch != snapshot.epoch else { return }
        let newest = cache.snapshot
        // An extension of the keys' time leaves the keys themselves, and so the contexts, as they are.
        if newest.keySetVersion != snapshot.keySetVersion { keys = VerificationKeys(newest.keySet) }
        snapshot = newest
    }

    /// Whether the keys may verify at this moment (past max-stale they verify nothing).
    func isUsable(at now: MonotonicInstant) -> Bool { snapshot.isUsable(at: now) && !keys.isEmpty }
}
