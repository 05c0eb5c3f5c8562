internal import Dispatch
public import LLJOSE
package import LLSockets

extension JWKSetCache {
    /// The keys that verify now, for a token of this key ID: waits for a fetch where that may bring the key.
    ///
    /// Waits at most ``JWKSetCacheLimits/waitForUnknownKeyID``, or ``JWKSetCacheLimits/waitForFetch`` where there are no
    /// keys. The set answered may still lack the key: then no source has it and the token is to be rejected.
    /// - Throws: ``JWKSetCacheError/unavailable(_:)`` when there are no usable keys, or when the key is unknown and the
    ///   sources fail: not the token's fault. Also when the task is cancelled while it waits.
    ///   ``JWKSetCacheError/exhausted(retryAfterSeconds:)`` when too many tasks wait already.
    public func keySet(containing keyID: String) async throws(JWKSetCacheError) -> JSONWebKeySet {
        let began = clock()
        var now = began
        var hasWaited = false
        while true {
            let snapshot = published.value
            let isUsable = snapshot.isUsable(at: now)
            if isUsable, snapshot.keySet.key(withID: keyID) != nil { return snapshot.keySet }
            let hash = isUsable ? Self.hash(keyID.utf8.span) : nil
            let mayWait = hasWaited || storage.withLock { $0.waiters.count < limits.waitingTaskCount }
            switch missingKey(hash, seenEpoch: snapshot.epoch, waitingSince: began, mayWait: mayWait, now: now) {
            case .lookAgain: break
            case .wait(let deadline):
                await wait(until: deadline) { $0.awaitedFetch }
                hasWaited = true
                if Task.isCancelled { throw .unavailable("the task was cancelled") }
            case .unknown: return snapshot.keySet
            case .unavailable where !isUsable: throw unavailable("no source has answered yet")
            case .unavailable: throw unavailable("the sources fail")
            case .exhausted(let seconds): throw .exhausted(retryAfterSeconds: seconds)
            }
            now = clock()
        }
    }

    /// Fetches now and waits until the fetch, or the one already under way, has ended, or the task is cancelled; answers
    /// the state thereafter.
    public func refresh() async -> JWKSetCacheStatus {
        refreshNow()
        await wait(until: .never) { $0.fetchUnderWay }
        return status
    }

    /// A queue of its own: one use of the global pool would keep libdispatch's monitor awake for ever.
    static let waitQueue = DispatchQueue(label: "key-set-waits")

    /// Why there are no keys: `reason`, unless more is known.
    private func unavailable(_ reason: String) -> JWKSetCacheError {
        storage.withLock { storage in
            if storage.machine.isStopped { return .unavailable("the cache was stopped") }
            // Fetches count from 1, and a start begins the first.
            if storage.machine.fetchNumber == 0 { return .unavailable("the cache was not started") }
            return .unavailable(storage.lastError ?? reason)
        }
    }

    /// Returns when the fetch of this number has ended, at once if there is none; no later than `deadline`, the cache's
    /// stop, or the cancellation of the task.
    func wait(until deadline: MonotonicInstant, for fetch: @Sendable (JWKSetCacheState) -> UInt64?) async {
        let number = storage.withLock { storage in
            storage.nextWaiter += 1
            return storage.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let waits = storage.withLock { storage in
                    // A task cancelled before this line finds it here; one cancelled later finds its waiter.
                    guard !Task.isCancelled, !storage.machine.isStopped, let fetch = fetch(storage.machine) else {
                        return false
                    }
                    storage.waiters[number] = (fetch, continuation)
                    return true
                }
                guard waits else { return continuation.resume() }
                guard deadline != .never else { return }
                // The cache's own queue is busy with the fetch.
                let delay = Int(clamping: deadline.nanoseconds(since: clock()))
                Self.waitQueue.asyncAfter(deadline: .now() + .nanoseconds(delay)) { self.release(number) }
            }
        } onCancel: {
            release(number)
        }
    }

    /// Resumes a waiter, unless it was resumed before: only the call that takes it out resumes it.
    private func release(_ number: UInt64) {
        storage.withLock { $0.waiters.removeValue(forKey: number) }?.task.resume()
    }
}

extension JWKSetCache {
    /// The snapshot of epoch `seenEpoch` lacks a token's key: answers what to do about it.
    ///
    /// Begins a fetch where the interval allows, or sees to it that one begins when the interval is over. Takes the cache's
    /// lock: only tokens whose key is not at hand come here. A bad signature must not, for it says nothing about the keys.
    /// - Parameters:
    ///   - hash: of `kid` as the token has it, decoded. Nil where the snapshot is unusable, empty or too old: then no
    ///     fetch is begun, and the answer is never `unknown`.
    ///   - waitingSince: When the request came in; it bounds the wait however often the request asks again.
    ///   - mayWait: False where the caller has no place for one more request that waits for an unknown key.
    package func missingKey(
        _ hash: UInt64?,
        seenEpoch: UInt64,
        waitingSince: MonotonicInstant,
        mayWait: Bool = true,
        now: MonotonicInstant
    ) -> MissingKeyAnswer {
        let (answer, begins, arms) = storage.withLock { storage -> (MissingKeyAnswer, Bool, Bool) in
            if published.epoch != seenEpoch { return (.lookAgain, false, false) }
            let wasWanted = storage.machine.isRefetchWanted
            let result = storage.machine.missingKey(hash: hash, since: waitingSince, mayWait: mayWait, at: now)
            // A request that waits is counted when it has its answer, however often it asks.
            if case .wait = result.answer {} else if hash != nil { storage.counters.unknownKeyIDs += 1 }
            if result.begins { storage.counters.fetchesForUnknownKeyIDs += 1 }
            return (result.answer, result.begins, storage.machine.isRefetchWanted && !wasWanted)
        }
        if begins { run(.unknownKeyID) }
        if arms { arm() }
        return answer
    }

    /// Whether a fetch is under way.
    public var isFetching: Bool { storage.withLock { $0.machine.isFetching } }

    /// A hash with the process's random key, so that no client can aim at an entry.
    package static func hash(_ keyID: Span<UInt8>) -> UInt64 {
        var hasher = Hasher()
        unsafe keyID.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        return UInt64(truncatingIfNeeded: hasher.finalize())
    }
}

/// What to do about a token whose key is not at hand: its key ID is not in the key set, or there are no usable keys.
package enum MissingKeyAnswer: Sendable, Equatable {
    /// The key set has changed since it was looked at: take the new snapshot and look again.
    case lookAgain
    /// A fetch that may bring the key is under way or will be: park the request, ask again at each update, and at the
    /// latest at this moment, which never lies past the request's own wait.
    case wait(until: MonotonicInstant)
    /// A source was asked, gave a set, and does not have it: 401 `unknown_key`.
    case unknown
    /// There are no usable keys, or the sources fail: 503 `keys_unavailable`.
    case unavailable(retryAfterSeconds: Int)
    /// Too many requests wait, or this one has waited its time, though the sources answer: 429 `key_checks_exhausted`.
    case exhausted(retryAfterSeconds: Int)
}
