import LLJOSE
import LimitedLogin
import Testing

@testable import LLService

@Suite("The table of recent digests")
struct RecentDigestsTests {
    /// Digests with random words: clients cannot choose them.
    private static func digest(_ number: Int) throws -> SHA256Digest {
        let bytes = Array("\(number)".utf8)
        return try SHA256.digest(of: bytes.span)
    }

    /// Uses a digest as the callers of the table do; returns whether it was kept.
    private static func use(_ digest: SHA256Digest, _ table: inout RecentDigests) -> Bool {
        let isKept = table.find(digest) != nil
        table.use(digest, nil)
        return isKept
    }

    @Test("The digests used last are kept, and never more than the capacity", arguments: [0, 1, 2, 3, 63, 64, 65, 200])
    func model(capacity: Int) throws {
        var table = RecentDigests(capacity: capacity)
        var used: [Int] = []
        var random = SystemRandomNumberGenerator()
        let digests = try (0..<300).map(Self.digest)
        for step in 0..<6_000 {
            // Two thirds of the lookups choose among few digests, the others among all.
            let number = Int.random(in: 0..<(step % 3 == 0 ? 300 : max(1, min(300, capacity + 2))), using: &random)
            // The position among the digests in the order of their last use, the latest first.
            let age = used.firstIndex(of: number)
            let isKept = Self.use(digests[number], &table)
            if let age, age < capacity / 2 { #expect(isKept, "step \(step)") }
            if age ?? .max >= capacity { #expect(!isKept, "step \(step)") }
            if let age { used.remove(at: age) }
            used.insert(number, at: 0)
            #expect(table.count <= capacity)
        }
    }
}
