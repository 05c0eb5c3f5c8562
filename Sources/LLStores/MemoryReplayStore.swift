internal import LLHTTP

/// Remembers used nonces, tokens and proofs in this process's own memory, for a single replica.
///
/// Nonces issued before its start are refused. Tokens issued before are accepted, because every start would otherwise
/// log people out. When the store is full, nothing is accepted until entries expire.
package final class MemoryReplayStore: Sendable {
    package let capacity: Int
    package let revocations: Revocations
    private let observe: @Sendable (ReplayStoreEvent) -> Void
    private let state: Locked<UseMemory>

    /// Times are those of ``UseMemory``. `observe` is called on the threads that use the store; it must not wait.
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
        state = Locked(UseMemory(capacity: capacity, now: now, steady: steady))
    }

    /// The number of entries that must be remembered now.
    package var count: Int { count(now: WallClock.unixMilliseconds(), steady: MonotonicClock.now().milliseconds) }

    func count(now: UInt64, steady: UInt64) -> Int { state.withLock { $0.count(now, steady) } }

    package func nonceDate(now: UInt64) -> UInt64 { state.withLock { $0.nonceDate(now) } }

    package func remember(
        _ question: ReplayLookup,
        now: UInt64,
        steady: UInt64 = MonotonicClock.now().milliseconds
    ) -> ReplayVerdict {
        let (verdict, event) = state.withLock { $0.remember(question, now, steady) }
        if let event { observe(event) }
        return verdict
    }
}

/// The used entries of one process, and every decision about them. All times are in milliseconds; `now` is the wall clock
/// since 1970, and `steady` the monotonic clock.
///
/// The rule for clocks: an entry is forgotten once both clocks are past its end. One is the wall clock, the other the
/// wall clock at the start plus the time since by the monotonic clock. A wall clock that is set ahead therefore forgets
/// nothing, and one that is set back delays forgetting. A full store goes by the wall clock alone, so that a clock that
/// was right to jump costs room only. An entry whose end is no later than a forgotten one's may have been forgotten as
/// well, so it is refused.
struct UseMemory {
    /// The width of a bucket of entries that are forgotten together: 8 s, so that a day's nonces lie in ten thousand
    /// buckets.
    private static let bucketWidth: UInt64 = 8_192

    private let capacity: Int
    private let start: MemoryStart
    private var known: Set<ReplayKey> = []
    /// The entries by the end of their bucket.
    private var buckets: [UInt64: [ReplayKey]] = [:]
    private var firstBucket = UInt64.max
    /// The wall clock at the start less the monotonic clock.
    private var offset: Int64
    /// The end of the last forgotten bucket.
    private var forgottenUntil: UInt64 = 0
    /// The latest date that this store gave a nonce.
    private var latestDate: UInt64 = 0
    private var quota: ProofQuota
    /// The time, by the monotonic clock, of the last report that the clock was set back.
    private var reportedAt: UInt64?

    init(capacity: Int, now: UInt64, steady: UInt64) {
        self.capacity = capacity
        start = MemoryStart(completeSince: now &+ ReplayLimits.clockMargin, isAfterLoss: false)
        offset = Int64(clamping: now) - Int64(clamping: steady)
        quota = ProofQuota(room: Self.roomForProofs(capacity))
    }

    /// A device can make any number of proofs, so a quarter of the room stays for nonces and tokens.
    private static func roomForProofs(_ capacity: Int) -> Int { capacity - capacity / 4 }

    /// The time by which entries are forgotten.
    private func time(_ now: UInt64, _ steady: UInt64) -> UInt64 {
        min(now, UInt64(max(0, Int64(clamping: steady) + offset)))
    }

    func count(_ now: UInt64, _ steady: UInt64) -> Int {
        let time = time(now, steady)
        guard firstBucket <= time else { return known.count }
        return buckets.reduce(0) { $1.key > time ? $0 + $1.value.count : $0 }
    }

    mutating func nonceDate(_ now: UInt64) -> UInt64 {
        let date = start.nonceDate(now)
        latestDate = max(latestDate, date)
        return date
    }

    mutating func remember(
        _ question: ReplayLookup,
        _ now: UInt64,
        _ steady: UInt64
    ) -> (verdict: ReplayVerdict, event: ReplayStoreEvent?) {
        forget(at: time(now, steady))
        let answers = question.entries.map { answer($0, now) }
        let verdict = question.verdict(of: answers)
        if let index = answers.firstIndex(of: .unavailable), let end = doubt(question.entries[index], now),
            reportedAt.map({ steady - min($0, steady) >= ReplayLimits.reportPause }) ?? true
        {
            reportedAt = steady
            return (verdict, .clockSetBack(until: end))
        }
        guard verdict == .accepted else { return (verdict, nil) }
        let room = (question.has(.proof) ? Self.roomForProofs(capacity) : capacity) - question.entries.count
        if known.count > room, time(now, steady) < now {
            offset = Int64(clamping: now) - Int64(clamping: steady)
            forget(at: now)
        }
        guard known.count <= room else { return (.unavailable, nil) }
        if let proof = question.counted(at: steady, now: now),
            let seconds = quota.take(proof.owners, until: proof.end, now: steady)
        {
            return (.tooMany(seconds), nil)
        }
        for entry in question.entries {
            let end = (entry.keepUntil / Self.bucketWidth + 1) &* Self.bucketWidth
            known.insert(entry.key)
            buckets[end, default: []].append(entry.key)
            firstBucket = min(firstBucket, end)
        }
        return (.accepted, nil)
    }

    private func answer(_ entry: ReplayEntry, _ now: UInt64) -> ReplayAnswer {
        if known.contains(entry.key) { return .seen }
        if !start.knows(entry) { return .olderThanStore }
        if doubt(entry, now) == nil { return .first }
        // The entry may be too old by this clock as well.
        return entry.keepUntil <= now ? .olderThanStore : .unavailable
    }

    /// The time until which an earlier use of an entry cannot be excluded, because the clock was ahead and is set back;
    /// nil if the store knows.
    private func doubt(_ entry: ReplayEntry, _ now: UInt64) -> UInt64? {
        if entry.keepUntil <= forgottenUntil { return forgottenUntil }
        // This store gives no nonce a future date. Such a nonce comes from a process with a clock that was ahead, and
        // the memory of that process is lost.
        let latest = max(now, latestDate, start.completeSince) + ReplayLimits.clockMargin
        return entry.kind == .nonce && entry.issuedAt > latest ? entry.issuedAt : nil
    }

    private mutating func forget(at time: UInt64) {
        guard firstBucket <= time else { return }
        for end in buckets.keys.filter({ $0 <= time }) {
            for key in buckets.removeValue(forKey: end) ?? [] { known.remove(key) }
            forgottenUntil = max(forgottenUntil, end)
        }
        firstBucket = buckets.keys.min() ?? .max
    }
}

/// Counts the remembered proofs of each device key and of each person, so that neither takes the room of all others. A
/// client makes keys for free, so a limit for each key is not enough.
///
/// The proofs of an owner are counted by the step of time in which they end. Times are milliseconds of a clock that is
/// never set back.
struct ProofQuota: Sendable {
    /// Most proofs of one key at a time: 1,024. A proof is remembered for six minutes, so this allows three a second.
    static let proofsOfOneKey = 1_024
    /// Most proofs of one person within an app: 4,096, for four busy devices.
    static let proofsOfOnePerson = 4_096
    /// Most counted owners: 16,384, in about 3 MB. Beyond this those with the fewest proofs start again at zero.
    static let ownerLimit = 16_384
    /// The length of a step: 33 s, in milliseconds.
    private static let step: UInt64 = 32_768
    /// The longest time for which a proof is counted: 17 minutes, in milliseconds. It is remembered for eleven at most.
    static let longest: UInt64 = 1 << 20

    /// The most proofs of a key and of a person.
    private let limits: [Int]
    private(set) var tallies: [ReplayKey: [UInt64: Int]] = [:]

    /// - Parameter room: the places for proofs. A key takes at most an eighth of them, and a person a quarter.
    init(room: Int = .max) {
        limits = [min(max(room / 8, 1), Self.proofsOfOneKey), min(max(room / 4, 1), Self.proofsOfOnePerson)]
    }

    /// Takes a place of each owner for a proof until `end`.
    /// - Parameter owners: the device key, and then the person.
    /// - Returns: nil if all had a free place; otherwise none was taken, and this is the number of seconds until they have.
    mutating func take(_ owners: [ReplayKey], until end: UInt64, now: UInt64) -> Int? {
        let step = now / Self.step
        if tallies.count + owners.count > Self.ownerLimit { makeRoom(step) }
        var wait: UInt64?
        for (owner, limit) in zip(owners, limits) {
            let tally = (tallies[owner] ?? [:]).filter { $0.key >= step }
            tallies[owner] = tally
            guard tally.values.reduce(0, +) >= limit, let first = tally.keys.min() else { continue }
            wait = max(wait ?? 0, (first + 1) * Self.step - now)
        }
        if let wait { return Int(wait + 999) / 1_000 }
        for owner in owners { tallies[owner]?[max(end / Self.step, step), default: 0] += 1 }
        return nil
    }

    /// Gives back the places that were taken until `end`.
    mutating func giveBack(_ owners: [ReplayKey], until end: UInt64) {
        for owner in owners {
            guard let count = tallies[owner]?[end / Self.step] else { continue }
            tallies[owner]?[end / Self.step] = count > 1 ? count - 1 : nil
        }
    }

    /// Forgets at least half of the owners, those with the fewest proofs. A busy one therefore cannot hide among many
    /// others.
    private mutating func makeRoom(_ step: UInt64) {
        let totals = tallies.mapValues { tally in tally.reduce(0) { $1.key >= step ? $0 + $1.value : $0 } }
        let middle = totals.values.sorted()[totals.count / 2]
        tallies = tallies.filter { totals[$0.key] ?? 0 > middle }
    }
}
