import LLTestSupport
import Testing

@testable import LLStores

@Suite("The number of remembered proofs of one key")
struct ProofQuotaTests {
    private static let now: UInt64 = 1_000_000_000
    /// The time at which a proof made now is forgotten.
    private static let end = now + 360_000

    private static func owners(_ key: UInt64, _ person: UInt64? = nil) -> [ReplayKey] {
        [ReplayKey(high: key, low: 9)] + (person.map { [ReplayKey(high: $0, low: 8)] } ?? [])
    }

    @Test("A key has 1,024 places apart from other keys, and a returned place is free again")
    func places() {
        var quota = ProofQuota()
        for _ in 0..<1_024 { #expect(quota.take(Self.owners(1), until: Self.end, now: Self.now) == nil) }
        let seconds = quota.take(Self.owners(1), until: Self.end, now: Self.now)
        #expect(seconds.map { (360...394).contains($0) } == true)
        #expect(quota.take(Self.owners(2), until: Self.end, now: Self.now) == nil)
        quota.giveBack(Self.owners(1), until: Self.end)
        #expect(quota.take(Self.owners(1), until: Self.end, now: Self.now) == nil)
        #expect(quota.take(Self.owners(1), until: Self.end, now: Self.now) != nil)
        // Returning more places than were taken has no effect.
        for _ in 0..<10 { quota.giveBack(Self.owners(2), until: Self.end) }
        for _ in 0..<1_024 { #expect(quota.take(Self.owners(2), until: Self.end, now: Self.now) == nil) }
        #expect(quota.take(Self.owners(2), until: Self.end, now: Self.now) != nil)
    }

    @Test(
        "A person has 4,096 places over all keys, at most a quarter of all; others keep theirs, and a refusal takes none",
        arguments: [(.max, 4_096), (7_500, 1_875)]
    )
    func persons(room: Int, share: Int) {
        var quota = ProofQuota(room: room)
        var accepted = 0
        for number in 0..<100_000 {
            let isTaken = quota.take(Self.owners(UInt64(number % 100), 1), until: Self.end, now: Self.now) == nil
            if isTaken { accepted += 1 }
            guard number.isMultiple(of: 1_000) else { continue }
            let other = UInt64(1_000 + number)
            #expect(quota.take(Self.owners(other, other), until: Self.end, now: Self.now) == nil)
        }
        #expect(accepted == share)
        let seconds = quota.take(Self.owners(100, 1), until: Self.end, now: Self.now) ?? 0
        #expect((360...394).contains(seconds))
        let later = Self.now + UInt64(seconds) * 1_000
        #expect(quota.take(Self.owners(100, 1), until: later + 1, now: later) == nil)
        quota.giveBack(Self.owners(100, 1), until: later + 1)
    }

    @Test("A place is free again when its proof is forgotten, and not before", arguments: [1, 16, 1_024])
    func time(limit: Int) throws {
        var quota = ProofQuota(room: limit * 8)
        for _ in 0..<limit { #expect(quota.take(Self.owners(1), until: Self.end, now: Self.now) == nil) }
        let refusal = quota.take(Self.owners(1), until: Self.end, now: Self.now)
        let wait = try #require(refusal)
        #expect(quota.take(Self.owners(1), until: Self.end, now: Self.end - 1) != nil)
        // All places are free after the returned waiting time.
        let later = Self.now + UInt64(wait) * 1_000
        for _ in 0..<limit { #expect(quota.take(Self.owners(1), until: later + 360_000, now: later) == nil) }
        #expect(quota.take(Self.owners(1), until: later + 360_000, now: later) != nil)
    }

    @Test("No count is lost and nothing overflows, whether the proofs end in the past or a day ahead")
    func ends() {
        var quota = ProofQuota()
        for number in 0..<1_024 {
            let end: UInt64 = [0, Self.now - 1, Self.now, Self.now + 86_400_000][number % 4]
            #expect(quota.take(Self.owners(1), until: end, now: Self.now) == nil)
        }
        #expect(quota.take(Self.owners(1), until: Self.end, now: Self.now) != nil)
        quota.giveBack(Self.owners(3), until: .max)
    }

    @Test("200,000 keys take bounded room, and the key with the most proofs is not forgotten")
    func manyKeys() {
        var quota = ProofQuota()
        for _ in 0..<1_024 { _ = quota.take(Self.owners(1), until: Self.end, now: Self.now) }
        for number: UInt64 in 2..<200_002 {
            #expect(quota.take(Self.owners(number), until: Self.end, now: Self.now) == nil)
        }
        #expect(quota.tallies.count <= ProofQuota.ownerLimit)
        #expect(quota.take(Self.owners(1), until: Self.end, now: Self.now) != nil)
    }
}
