/// Counts the remembered proofs of each device key, so that one device cannot take the room of all others.
///
/// The proofs of a key are counted by the step of time in which they end. Times are milliseconds of a clock that is
/// never set back.
struct ProofQuota: Sendable {
    /// Most proofs of one key at a time: 1,024. A proof is remembered for six minutes, so this allows three a second.
    static let proofsOfOneKey = 1_024
    /// Most counted keys: 16,384, in about 3 MB. Beyond this the keys with the fewest proofs start again at zero.
    static let keyLimit = 16_384
    /// The length of a step: 33 s, in milliseconds.
    private static let step: UInt64 = 32_768
    /// The longest time for which a proof is counted: 17 minutes, in milliseconds. It is remembered for eleven at most.
    static let longest: UInt64 = 1 << 20

    let limit: Int
    private var tallies: [ReplayKey: [UInt64: Int]] = [:]

    /// - Parameter limit: the most proofs of one key, 1 to ``proofsOfOneKey``.
    init(limit: Int = proofsOfOneKey) { self.limit = min(max(limit, 1), Self.proofsOfOneKey) }

    /// Takes a place for a proof of this key until `end`.
    /// - Returns: nil if there was a free place; otherwise the number of seconds until there is one.
    mutating func take(_ key: ReplayKey, until end: UInt64, now: UInt64) -> Int? {
        let step = now / Self.step
        if tallies[key] == nil, tallies.count >= Self.keyLimit { makeRoom(step) }
        var tally = (tallies[key] ?? [:]).filter { $0.key >= step }
        defer { tallies[key] = tally }
        guard tally.values.reduce(0, +) >= limit, let first = tally.keys.min() else {
            tally[max(end / Self.step, step), default: 0] += 1
            return nil
        }
        return Int((first + 1) * Self.step - now + 999) / 1_000
    }

    /// Gives back a place that was taken until `end`.
    mutating func giveBack(_ key: ReplayKey, until end: UInt64) {
        guard let count = tallies[key]?[end / Self.step] else { return }
        tallies[key]?[end / Self.step] = count > 1 ? count - 1 : nil
    }

    /// Forgets at least half of the keys, those with the fewest proofs. A busy key therefore cannot hide among many
    /// others.
    private mutating func makeRoom(_ step: UInt64) {
        let totals = tallies.mapValues { tally in tally.reduce(0) { $1.key >= step ? $0 + $1.value : $0 } }
        let middle = totals.values.sorted()[totals.count / 2]
        tallies = tallies.filter { totals[$0.key] ?? 0 > middle }
    }

    var keyCount: Int { tallies.count }
}
