/// Counts the remembered proofs of each device key, so that one device cannot take the room of all others.
///
/// The counts of a key are kept by the step of time in which the proofs end. Times are milliseconds of a clock that is
/// never set back.
struct ProofQuota: Sendable {
    /// Most proofs of one key at a time: 1,024. A proof is remembered for six minutes, so this allows three a second.
    static let proofsOfOneKey = 1_024
    /// Most counted keys: 16,384, in about 2 MB. Beyond this the keys with the fewest proofs start again at zero.
    static let keyLimit = 16_384
    /// The length of a step: 33 s, in milliseconds. 32 steps are longer than the eleven minutes for which a proof is
    /// remembered at most.
    private static let step: UInt64 = 32_768

    private struct Tally {
        /// The number of proofs that end in each step, at the step's number modulo 32.
        var counts = SIMD32<UInt16>()
        /// The first step that has not ended.
        var first: UInt64

        var total: Int { Int(counts.wrappedSum()) }

        mutating func advance(to step: UInt64) {
            if step - min(first, step) >= 32 {
                counts = SIMD32()
            } else {
                for over in first..<max(first, step) { counts[Self.lane(over)] = 0 }
            }
            first = max(first, step)
        }

        static func lane(_ step: UInt64) -> Int { Int(step & 31) }
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
        defer { tallies[key] = tally }
        guard tally.total < limit else {
            let next = (tally.first...tally.first + 31).first { tally.counts[Tally.lane($0)] > 0 } ?? tally.first
            return Int((next + 1) * Self.step - now + 999) / 1_000
        }
        tally.counts[Tally.lane(Self.stepOfEnd(end, tally.first))] += 1
        return nil
    }

    /// Gives back a place that was taken until `end`.
    mutating func giveBack(_ key: ReplayKey, until end: UInt64) {
        guard var tally = tallies[key], end / Self.step >= tally.first else { return }
        let lane = Tally.lane(Self.stepOfEnd(end, tally.first))
        guard tally.counts[lane] > 0 else { return }
        tally.counts[lane] -= 1
        tallies[key] = tally
    }

    private static func stepOfEnd(_ end: UInt64, _ first: UInt64) -> UInt64 { min(max(end / step, first), first + 31) }

    /// Forgets at least half of the keys, those with the fewest proofs. A busy key therefore cannot hide among many
    /// others.
    private mutating func makeRoom(_ step: UInt64) {
        for key in Array(tallies.keys) { tallies[key]?.advance(to: step) }
        let totals = tallies.values.map(\.total).sorted()
        let middle = totals[totals.count / 2]
        tallies = tallies.filter { $0.value.total > middle }
    }

    /// The number of counted keys.
    var keyCount: Int { tallies.count }
}
