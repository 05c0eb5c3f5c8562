internal import Dispatch
public import JOSE
internal import Sockets

extension JWKSetCache {
    /// The keys that verify now, for a token of this key ID: waits for a fetch where that may bring the key.
    ///
    /// Waits at most ``JWKSetCacheLimits/waitForFetch``. The set answered may still lack the key: then no source has it
    /// and the token is to be rejected.
    /// - Throws: ``JWKSetCacheError/unavailable(_:)`` when there are no usable keys, or when the key is unknown and the
    ///   sources cannot be asked at present, because they fail or were asked moments ago: not the token's fault.
    public func keySet(containing keyID: String) async throws(JWKSetCacheError) -> JSONWebKeySet {
        let began = clock()
        var isFirst = true
        while true {
            let now = isFirst ? began : clock()
            isFirst = false
            let snapshot = snapshot
            if !snapshot.isUsable(at: now) {
                switch keysUnavailable(seenEpoch: snapshot.epoch, waitingSince: began, now: now) {
                case .lookAgain: continue
                case .wait(let deadline): await update(until: deadline)
                case .unavailable: throw .unavailable(lastError ?? "no source has answered yet")
                }
                continue
            }
            if snapshot.keySet.key(withID: keyID) != nil { return snapshot.keySet }
            let answer = unknownKeyID(
                Array(keyID.utf8).span,
                seenEpoch: snapshot.epoch,
                waitingSince: began,
                now: now
            )
            switch answer {
            case .lookAgain: continue
            case .wait(let deadline): await update(until: deadline)
            case .unknown: return snapshot.keySet
            case .unavailable(let seconds):
                throw .unavailable(lastError ?? "the sources can be asked about an unknown key in \(seconds) s")
            }
        }
    }

    /// Fetches now and waits until the fetch, or the one already under way, has ended; answers the state thereafter.
    public func refresh() async -> JWKSetCacheStatus {
        refreshNow()
        if isFetching { await update(until: .never) }
        return status
    }

    /// A queue of its own: one use of the global pool would keep libdispatch's monitor awake for ever.
    private static let waitQueue = DispatchQueue(label: "key-set-waits")

    private var lastError: String? { storage.withLock { $0.lastError } }

    /// Returns after the next fetch that ends, at once if none is under way, at `deadline` at the latest.
    private func update(until deadline: MonotonicInstant) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let number: UInt64? = storage.withLock { storage in
                guard case .underWay = storage.machine.fetch, !storage.machine.isStopped else { return nil }
                storage.nextWaiter += 1
                storage.waiters[storage.nextWaiter] = Waiter(fetch: storage.machine.fetchNumber) {
                    continuation.resume()
                }
                return storage.nextWaiter
            }
            guard let number else { return continuation.resume() }
            guard deadline != .never else { return }
            // The queue itself is busy with the fetch; whoever takes the waiter out resumes it, so it resumes once.
            let delay = Int(clamping: deadline.nanoseconds(since: clock()))
            Self.waitQueue.asyncAfter(deadline: .now() + .nanoseconds(delay)) {
                let waiter = self.storage.withLock { $0.waiters.removeValue(forKey: number) }
                waiter?.resume()
            }
        }
    }
}
