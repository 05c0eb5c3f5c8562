internal import Dispatch
package import LLBytes
public import LLJOSE

extension JWKSetCache {
    /// The current keys, for a token with this key ID. The call waits for a fetch that may bring the key.
    ///
    /// It waits at most 6 s, or 2 s if there are no keys. The returned set may still lack the key: then no source has it, and the token is to be rejected.
    /// - Throws: ``JWKSetCacheError/unavailable(_:)`` if there are no usable keys, or if the key is unknown and the
    ///   sources fail, which is not the token's fault. It is also thrown if the task is cancelled while it waits.
    ///   ``JWKSetCacheError/exhausted(retryAfter:)`` if too many tasks wait already.
    public nonisolated(nonsending) func keySet(containing keyID: String) async throws(JWKSetCacheError) -> JWKSet {
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
            case .exhausted(let seconds): throw .exhausted(retryAfter: .seconds(seconds))
            }
            now = clock()
        }
    }

    /// Fetches now, and waits until that fetch, or the running one, has ended, or until the task is cancelled; returns
    /// the status after that.
    public func refresh() async -> JWKSetCacheStatus {
        refreshNow()
        await wait(until: .never) { $0.fetchUnderWay }
        return status
    }

    /// Ends waits at their deadlines: the cache's own queue is busy with the fetch.
    private static let waitQueue = DispatchQueue(label: "key-set-waits")

    private func unavailable(_ reason: String) -> JWKSetCacheError {
        storage.withLock { storage in
            if storage.machine.isStopped { return .unavailable("the cache was stopped") }
            // Fetches count from 1, and a start begins the first.
            if storage.machine.fetchNumber == 0 { return .unavailable("the cache was not started") }
            return .unavailable(storage.lastError ?? reason)
        }
    }

    /// Waits until the fetch of this number has ended; returns at once if there is none. It waits no longer than until
    /// `deadline`, the cache's stop, or the cancellation of the task.
    nonisolated(nonsending) func wait(
        until deadline: MonotonicInstant,
        for fetch: @Sendable (JWKSetCacheState) -> UInt64?
    ) async {
        let number = storage.withLock { storage in
            storage.nextWaiter += 1
            return storage.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let waits = storage.withLock { storage in
                    // A task cancelled before this line is detected here; one cancelled later finds its waiter in the
                    // list.
                    guard !Task.isCancelled, !storage.machine.isStopped, let fetch = fetch(storage.machine) else {
                        return false
                    }
                    storage.waiters[number] = (fetch, continuation)
                    return true
                }
                guard waits else { return continuation.resume() }
                guard deadline != .never else { return }
                let left = Int(clamping: deadline.nanoseconds(since: clock()))
                Self.waitQueue.asyncAfter(deadline: .now() + .nanoseconds(left)) { [weak self] in
                    self?.release(number)
                }
            }
        } onCancel: {
            release(number)
        }
    }

    /// Resumes a waiter, unless it was resumed before: only the call that removes it resumes it.
    private func release(_ number: UInt64) {
        storage.withLock { $0.waiters.removeValue(forKey: number) }?.task.resume()
    }

    /// The snapshot of epoch `seenEpoch` lacks a token's key: decides how to answer the request.
    /// It begins a fetch if the interval allows, or makes one begin when the interval is over. It takes the cache's
    /// lock: only tokens with a missing key come here. A bad signature must not, because it says nothing about the
    /// keys.
    /// - Parameters:
    ///   - hash: The hash of the token's decoded `kid`. Nil if the snapshot is unusable, empty or too old: then no
    ///     fetch is begun, and the answer is never `unknown`.
    ///   - waitingSince: The moment the request came in; it bounds the wait even if the request asks again.
    ///   - mayWait: False if the caller has no place for one more request that waits for an unknown key.
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
            // A waiting request is counted once, when it has its answer.
            if case .wait = result.answer {} else if hash != nil { storage.counters.unknownKeyIDs += 1 }
            return (result.answer, result.begins, storage.machine.isRefetchWanted && !wasWanted)
        }
        if begins { run(.unknownKeyID) }
        if arms { queue.async { self.arm() } }
        return answer
    }

    /// A hash with the process's random key, so that no client can choose the entry it uses.
    package static func hash(_ keyID: Span<UInt8>) -> UInt64 {
        var hasher = Hasher()
        unsafe keyID.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        return UInt64(truncatingIfNeeded: hasher.finalize())
    }
}

/// The decision about a token with a missing key: its key ID is not in the key set, or there are no usable keys.
package enum MissingKeyAnswer: Sendable, Equatable {
    /// The key set has changed since the check: take the new snapshot and check again.
    case lookAgain
    /// A fetch that may bring the key is running or will be. Park the request, and ask again at each update, and at the
    /// latest at this moment, which is never after the end of the request's own wait.
    case wait(until: MonotonicInstant)
    /// A source was asked and gave a set without the key: 401 `unknown_key`.
    case unknown
    /// There are no usable keys, or the sources fail: 503 `keys_unavailable`.
    case unavailable(retryAfterSeconds: Int)
    /// Too many requests wait, or this one has waited its full time, although the sources answer: 429
    /// `key_checks_exhausted`.
    case exhausted(retryAfterSeconds: Int)
}
