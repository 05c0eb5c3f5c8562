internal import LLHTTP

/// Remembers used nonces, tokens and proofs in this process's own memory, for a single replica.
///
/// It has no memory of the time before its start. Nonces issued before are refused. Tokens issued before are accepted,
/// because every start would otherwise log people out. The store is bounded: when it is full it reports so, and nothing
/// is accepted until entries expire. Its only lock is held for a look-up and an insertion, and only by requests that
/// use the store.
///
/// The rule for clocks: an entry is forgotten once both clocks are past its end. One is the wall clock, the other the
/// wall clock at the start plus the time since by the monotonic clock. A wall clock that is set ahead therefore forgets
/// nothing, and one that is set back delays forgetting. A full store goes by the wall clock alone, so that a clock that
/// was right to jump costs room only. An entry whose end is no later than a forgotten one's may have been forgotten as
/// well, so it is refused.
package final class MemoryReplayStore: Sendable {
    /// The width in milliseconds of a bucket of entries that are forgotten together: 8 s, so that a day's nonces lie in
    /// ten thousand buckets.
    private static let bucketWidth: UInt64 = 8_192

    private struct State {
        var known: Set<ReplayKey> = []
        /// The entries by the end of their bucket. At that time they need not be remembered any longer.
        var buckets: [UInt64: [ReplayKey]] = [:]
        var firstBucket = UInt64.max
        /// The wall clock at the start less the monotonic clock, in milliseconds.
        var offset: Int64
        /// The end of the last forgotten bucket.
        var forgottenUntil: UInt64 = 0
        /// The latest date that this store gave a nonce.
        var latestDate: UInt64 = 0
        var quota: ProofQuota
        /// The time, by the monotonic clock, of the last report that the clock was set back.
        var reportedAt: UInt64?

        /// The time by which entries are forgotten.
        func time(_ now: UInt64, _ steady: UInt64) -> UInt64 { min(now, UInt64(max(0, Int64(steady) + offset))) }
    }

    package let capacity: Int
    /// Nonces issued since this moment are known. Milliseconds since 1970.
    package let completeSince: UInt64
    package let revocations: Revocations
    private let observe: @Sendable (ReplayStoreEvent) -> Void
    private let state: Locked<State>

    /// - Parameters:
    ///   - now: the present in milliseconds since 1970. Entries from before may have been used.
    ///   - steady: the same moment in milliseconds of the monotonic clock.
    ///   - observe: called on the threads that use the store; it must not wait.
    package init(
        capacity: Int = ReplayLimits.defaultCapacity,
        now: UInt64,
        steady: UInt64 = MonotonicClock.now().milliseconds,
        revocations: Revocations? = nil,
        observe: @escaping @Sendable (ReplayStoreEvent) -> Void = { _ in }
    ) {
        self.capacity = capacity
        self.revocations = revocations ?? Revocations(observe: observe)
        self.observe = observe
        completeSince = now &+ ReplayLimits.clockMargin
        let quota = ProofQuota(limit: Self.roomForProofs(capacity) / 8)
        state = Locked(State(offset: Int64(clamping: now) - Int64(clamping: steady), quota: quota))
    }

    /// A device can make any number of proofs, so a quarter of the room stays for the nonces and tokens of the
    /// backends.
    private static func roomForProofs(_ capacity: Int) -> Int { capacity - capacity / 4 }

    /// The number of entries that must be remembered now.
    package var count: Int {
        count(now: WallClock.unixMilliseconds(), steady: MonotonicClock.now().milliseconds)
    }

    /// The number of entries that must be remembered at this moment. Counting forgets no entry.
    func count(now: UInt64, steady: UInt64) -> Int {
        state.withLock { state in
            let time = state.time(now, steady)
            guard state.firstBucket <= time else { return state.known.count }
            return state.buckets.reduce(0) { $1.key > time ? $0 + $1.value.count : $0 }
        }
    }

    /// The date of a nonce that is issued now: the present, or the start of the memory if that is later.
    package func nonceDate(now: UInt64) -> UInt64 {
        let date = max(now, completeSince)
        state.withLock { $0.latestDate = max($0.latestDate, date) }
        return date
    }

    /// Remembers the entries of a question unless one of them cannot be accepted. It returns at once.
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - steady: milliseconds of the monotonic clock.
    package func remember(
        _ question: ReplayLookup,
        now: UInt64,
        steady: UInt64 = MonotonicClock.now().milliseconds
    ) -> ReplayVerdict {
        var event: ReplayStoreEvent?
        let verdict = state.withLock { state in
            forget(&state, at: state.time(now, steady))
            let verdict = question.verdict(of: answers(question, now, steady, &state, &event))
            guard verdict == .accepted else { return verdict }
            let room = (question.has(.proof) ? Self.roomForProofs(capacity) : capacity) - question.entries.count
            if state.known.count > room, state.time(now, steady) < now {
                state.offset = Int64(clamping: now) - Int64(clamping: steady)
                forget(&state, at: now)
            }
            guard state.known.count <= room else { return .unavailable }
            if let proof = question.counted(at: steady, now: now),
                let seconds = state.quota.take(proof.owner, until: proof.end, now: steady)
            {
                return .tooMany(seconds)
            }
            for entry in question.entries { insert(entry, &state) }
            return .accepted
        }
        if let event { observe(event) }
        return verdict
    }

    private func answers(
        _ question: ReplayLookup,
        _ now: UInt64,
        _ steady: UInt64,
        _ state: inout State,
        _ event: inout ReplayStoreEvent?
    ) -> [ReplayAnswer] {
        let areKnown = question.areIssuedSince(nonceSince: completeSince, tokenSince: 0)
        return zip(question.entries, areKnown).map { entry, isKnown in
            if state.known.contains(entry.key) { return .seen }
            if !isKnown { return .olderThanStore }
            guard let end = doubt(entry, now, state) else { return .first }
            // The entry is too old by this clock as well.
            if entry.keepUntil <= now { return .olderThanStore }
            if state.reportedAt.map({ steady - min($0, steady) >= ReplayLimits.reportPause }) ?? true {
                state.reportedAt = steady
                event = .clockSetBack(until: end)
            }
            return .unavailable
        }
    }

    /// The time until which an earlier use of an entry cannot be excluded, because the clock was ahead and is set back;
    /// nil if the store knows.
    private func doubt(_ entry: ReplayEntry, _ now: UInt64, _ state: State) -> UInt64? {
        if entry.keepUntil <= state.forgottenUntil { return state.forgottenUntil }
        // This store gives no nonce a future date. Such a nonce comes from a process with a clock that was ahead, and
        // the memory of that process is lost.
        let latest = max(now, state.latestDate, completeSince) + ReplayLimits.clockMargin
        return entry.kind == .nonce && entry.issuedAt > latest ? entry.issuedAt : nil
    }

    private func insert(_ entry: ReplayEntry, _ state: inout State) {
        let end = (entry.keepUntil / Self.bucketWidth + 1) &* Self.bucketWidth
        state.known.insert(entry.key)
        state.buckets[end, default: []].append(entry.key)
        state.firstBucket = min(state.firstBucket, end)
    }

    private func forget(_ state: inout State, at time: UInt64) {
        guard state.firstBucket <= time else { return }
        for end in state.buckets.keys.filter({ $0 <= time }) {
            for key in state.buckets.removeValue(forKey: end) ?? [] { state.known.remove(key) }
            state.forgottenUntil = max(state.forgottenUntil, end)
        }
        state.firstBucket = state.buckets.keys.min() ?? .max
    }
}
