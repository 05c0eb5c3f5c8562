internal import LLSockets

/// Remembers used nonces, tokens and proofs in this process's own memory, for a single replica.
///
/// It has no memory of the time before its start. Nonces issued before are refused. Tokens issued before are accepted,
/// because every start would otherwise log people out. The store is bounded: when it is full it reports so, and nothing
/// is accepted until entries expire. Its only lock is held for a look-up and an insertion, and only by requests that
/// use the store.
package final class MemoryReplayStore: Sendable {
    /// The width in milliseconds of a bucket of entries that are forgotten together: 8 s, so that a day's nonces lie in
    /// ten thousand buckets.
    private static let bucketWidth: UInt64 = 8_192

    private struct Bucket {
        var keys: [ReplayKey] = []
        var latest = LatestTimes()
    }

    private struct State {
        var known: Set<ReplayKey> = []
        /// The entries by the end of their bucket. At that time they need not be remembered any longer.
        var buckets: [UInt64: Bucket] = [:]
        /// The end of the first bucket; the greatest number if there is none.
        var firstBucket = UInt64.max
        var clock: ForgettingClock
        /// The latest times of the forgotten entries.
        var forgotten = LatestTimes()
        /// The latest date that this store gave a nonce.
        var latestDate: UInt64 = 0
        var quota: ProofQuota
        /// The time, by the monotonic clock, of the last report that the clock was set back.
        var toldAt: UInt64?
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
        state = Locked(State(clock: ForgettingClock(now: now, steady: steady), quota: quota))
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
            var clock = state.clock
            clock.advance(now: now, steady: steady)
            guard state.firstBucket <= clock.time else { return state.known.count }
            return state.buckets.reduce(0) { $1.key > clock.time ? $0 + $1.value.keys.count : $0 }
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
            state.clock.advance(now: now, steady: steady)
            forget(&state)
            let answers = answers(question, now: now, steady: steady, &state, &event)
            let verdict = question.verdict(of: answers)
            guard verdict == .accepted else { return verdict }
            let room = question.has(.proof) ? Self.roomForProofs(capacity) : capacity
            if state.known.count + question.entries.count > room {
                // A full store accepts a clock that jumped ahead, so that it need not refuse new entries.
                state.clock.believe(now)
                forget(&state)
            }
            guard state.known.count + question.entries.count <= room else { return .unavailable }
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
        now: UInt64,
        steady: UInt64,
        _ state: inout State,
        _ event: inout ReplayStoreEvent?
    ) -> [ReplayAnswer] {
        let areKnown = question.areIssuedSince(nonceSince: completeSince, tokenSince: 0)
        return zip(question.entries, areKnown).map { entry, isKnown in
            if state.known.contains(entry.key) { return .seen }
            if !isKnown { return .olderThanStore }
            guard let end = doubt(entry, now: now, state) else { return .first }
            // The entry is too old by this clock as well.
            if entry.keepUntil <= now { return .olderThanStore }
            if state.toldAt.map({ steady - min($0, steady) >= ReplayLimits.tellingPause }) ?? true {
                state.toldAt = steady
                event = .clockSetBack(until: end)
            }
            return .unavailable
        }
    }

    /// The time until which an earlier use of an entry cannot be excluded, because the clock was ahead and is set back;
    /// nil if the store knows.
    private func doubt(_ entry: ReplayEntry, now: UInt64, _ state: State) -> UInt64? {
        let last = state.forgotten[entry.kind]
        if entry.bornAt <= last.bornAt, entry.keepUntil <= last.keepUntil { return last.keepUntil }
        // This store gives no nonce a future date. Such a nonce comes from a process with a clock that was ahead, and
        // the memory of that process is lost.
        let latest = max(now, state.latestDate, completeSince) + ReplayLimits.clockMargin
        return entry.kind == .nonce && entry.bornAt > latest ? entry.bornAt : nil
    }

    private func insert(_ entry: ReplayEntry, _ state: inout State) {
        let end = (entry.keepUntil / Self.bucketWidth + 1) &* Self.bucketWidth
        state.known.insert(entry.key)
        state.buckets[end, default: Bucket()].keys.append(entry.key)
        state.buckets[end, default: Bucket()].latest[entry.kind].include(entry.bornAt, entry.keepUntil)
        state.firstBucket = min(state.firstBucket, end)
    }

    private func forget(_ state: inout State) {
        guard state.firstBucket <= state.clock.time else { return }
        for end in state.buckets.keys.filter({ $0 <= state.clock.time }) {
            guard let bucket = state.buckets.removeValue(forKey: end) else { continue }
            for key in bucket.keys { state.known.remove(key) }
            state.forgotten.include(bucket.latest)
        }
        state.firstBucket = state.buckets.keys.min() ?? .max
    }
}

/// The latest birth and the latest end for each kind of entry, in milliseconds since 1970; 0 if there was none.
private struct LatestTimes {
    struct Times {
        var bornAt: UInt64 = 0
        var keepUntil: UInt64 = 0

        mutating func include(_ bornAt: UInt64, _ keepUntil: UInt64) {
            self.bornAt = max(self.bornAt, bornAt)
            self.keepUntil = max(self.keepUntil, keepUntil)
        }
    }

    private var nonces = Times()
    private var tokens = Times()
    private var proofs = Times()

    subscript(kind: ReplayKey.Kind) -> Times {
        get {
            switch kind {
            case .nonce: nonces
            case .proof: proofs
            case .token, .login: tokens
            }
        }
        set {
            switch kind {
            case .nonce: nonces = newValue
            case .proof: proofs = newValue
            case .token, .login: tokens = newValue
            }
        }
    }

    mutating func include(_ other: LatestTimes) {
        for kind in [ReplayKey.Kind.nonce, .token, .proof] {
            self[kind].include(other[kind].bornAt, other[kind].keepUntil)
        }
    }
}
