/// Counts the remembered proofs of each device key, so that one device cannot take the room of all others.
///
/// The counts of a key are kept by the step of time in which the proofs end. Times are milliseconds of a clock that is
/// never set back.
struct ProofQuota: Sendable {
    /// Most proofs of one key at a time: 1,024. A proof is remembered for six minutes, so this allows three a second.
    static let proofsOfOneKey = 1_024
    /// Most counted keys: 16,384, in about 2 MB. Beyond this the keys with the fewest proofs start again at zero.
    static let keyLimit = 16_384
    /// The length of a step: 33 s, in milliseconds.
    private static let step: UInt64 = 32_768
    /// The number of steps: they are longer than the eleven minutes for which a proof is remembered at most.
    private static let stepCount: UInt64 = 32

    private struct Tally {
        /// The number of proofs that end in each step, at the step's number modulo 32.
        private var counts = [UInt16](repeating: 0, count: Int(stepCount))
        /// The first step that has not ended.
        private var first: UInt64

        init(first: UInt64) { self.first = first }

        var total: Int { counts.reduce(0) { $0 + Int($1) } }
        var next: UInt64 { (first..<first + stepCount).first { self[$0] > 0 } ?? first }

        subscript(step: UInt64) -> UInt16 {
            get { counts[Int(step % stepCount)] }
            set { counts[Int(step % stepCount)] = newValue }
        }

        mutating func advance(to step: UInt64) {
            guard step > first else { return }
            for over in first..<min(step, first + stepCount) { self[over] = 0 }
            first = step
        }

        /// The step of a proof's end, within those that are counted.
        func step(of end: UInt64) -> UInt64 { min(max(end / ProofQuota.step, first), first + stepCount - 1) }

        func isOver(_ end: UInt64) -> Bool { end / ProofQuota.step < first }
    }

    let limit: Int
    private var tallies: [ReplayKey: Tally] = [:]

    /// - Parameter limit: the most proofs of one key, 1 to ``proofsOfOneKey``.
    init(limit: Int = proofsOfOneKey) { self.limit = min(max(limit, 1), Self.proofsOfOneKey) }

    /// Takes a place for a proof of this key until `end`.
    /// - Returns: nil if there was a free place; otherwise the number of seconds until there is one.
    mutating func take(_ key: ReplayKey, until end: UInt64, now: UInt64) -> Int? {
        let step = now / Self.step
        if tallies[key] == nil, tallies.count >= Self.keyLimit { makeRoom(step) }
        var tally = tallies[key] ?? Tally(first: step)
        tally.advance(to: step)
        let isFull = tally.total >= limit
        if !isFull { tally[tally.step(of: end)] += 1 }
        tallies[key] = tally
        return isFull ? Int((tally.next + 1) * Self.step - now + 999) / 1_000 : nil
    }

    /// Gives back a place that was taken until `end`.
    mutating func giveBack(_ key: ReplayKey, until end: UInt64) {
        guard var tally = tallies[key], !tally.isOver(end) else { return }
        let step = tally.step(of: end)
        guard tally[step] > 0 else { return }
        tally[step] -= 1
        tallies[key] = tally
    }

    /// Forgets at least half of the keys, those with the fewest proofs. A busy key therefore cannot hide among many
    /// others.
    private mutating func makeRoom(_ step: UInt64) {
        for key in Array(tallies.keys) { tallies[key]?.advance(to: step) }
        let totals = tallies.values.map(\.total).sorted()
        let middle = totals[totals.count / 2]
        tallies = tallies.filter { $0.value.total > middle }
    }

    var keyCount: Int { tallies.count }
}
