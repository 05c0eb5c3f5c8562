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
        guard wait == nil else { return wait.map { Int($0 + 999) / 1_000 } }
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
