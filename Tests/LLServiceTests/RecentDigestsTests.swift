import LLCrypto
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

    /// The same table as a plain list: slow, but clearly correct.
    private struct Model {
        let capacity: Int
        var digests: [Int] = []

        mutating func use(_ number: Int) -> Bool {
            if let index = digests.firstIndex(of: number) {
                digests.append(digests.remove(at: index))
                return true
            }
            if capacity > 0, digests.count == capacity { digests.removeFirst() }
            if capacity > 0 { digests.append(number) }
            return false
        }
    }

    /// Uses a digest as the callers of the table do.
    private static func use(_ digest: SHA256Digest, _ table: inout RecentDigests) -> Bool {
        guard let place = table.find(digest)?.place else {
            table.add(digest, nil)
            return false
        }
        table.use(place)
        return true
    }

    @Test("The table knows exactly the digests used last, in any order", arguments: [0, 1, 2, 3, 63, 64, 65, 200])
    func model(capacity: Int) throws {
        var table = RecentDigests(capacity: capacity)
        var model = Model(capacity: capacity)
        var random = SystemRandomNumberGenerator()
        let digests = try (0..<300).map(Self.digest)
        for step in 0..<6_000 {
            // Two thirds of the lookups choose among few digests, the others among all.
            let number = Int.random(in: 0..<(step % 3 == 0 ? 300 : max(1, min(300, capacity + 2))), using: &random)
            #expect(Self.use(digests[number], &table) == model.use(number), "step \(step)")
            #expect(table.count == model.digests.count)
        }
        for number in digests.indices {
            #expect((table.find(digests[number]) != nil) == model.digests.contains(number))
        }
    }

    @Test("Digests in one bucket, or with only one different word, are told apart")
    func collisions() throws {
        var table = RecentDigests(capacity: 100)
        var all: [SHA256Digest] = []
        for word in 0..<4 {
            for value in 0..<10 as Range<UInt8> {
                var digest = SHA256Digest(bytes: InlineArray(repeating: 7))
                // Digests with the same first word share a bucket.
                digest.bytes[8 * word + 7] = 100 + value
                all.append(digest)
            }
        }
        for (number, digest) in all.enumerated() {
            #expect(table.find(digest) == nil)
            table.add(digest, nil)
            #expect(table.count == number + 1)
        }
        for digest in all { #expect(table.find(digest) != nil) }
        var small = RecentDigests(capacity: 3)
        for digest in all + all { _ = Self.use(digest, &small) }
        #expect(all.filter { small.find($0) != nil }.map(\.hexadecimal) == all.suffix(3).map(\.hexadecimal))
    }

    @Test("A flood never pushes out a digest that is used once in every capacity - 1 lookups")
    func flood() throws {
        let capacity = 500
        var table = RecentDigests(capacity: capacity)
        let regulars = try (0..<10).map(Self.digest)
        for regular in regulars { table.add(regular, nil) }
        for number in 0..<20_000 {
            // There are ten regular digests. Between two uses of one come 490 others and nine other regular ones.
            if number % 49 == 0 {
                #expect(Self.use(regulars[number / 49 % 10], &table), "after \(number)")
            }
            #expect(!Self.use(try Self.digest(1_000 + number), &table))
        }
        #expect(table.count == capacity)
    }

    @Test("10,000 entries take at most a megabyte, an empty table takes nothing, and memory grows with the entries")
    func memory() throws {
        var table = RecentDigests(capacity: VerifiedSignatureCache.defaultCapacity)
        #expect(table.allocatedBytes == 0)
        table.add(try Self.digest(0), nil)
        #expect(table.allocatedBytes < 10_000)
        for number in 1..<1_000 { table.add(try Self.digest(number), nil) }
        #expect(table.allocatedBytes < 150_000)
        for number in 1_000..<25_000 { table.add(try Self.digest(number), nil) }
        #expect(table.count == VerifiedSignatureCache.defaultCapacity)
        print("signatures: \(table.allocatedBytes) bytes for \(table.count) entries")
        #expect(table.allocatedBytes <= 1_000_000)
        #expect(table.allocatedBytes <= table.count * RecentDigests.bytesPerEntry + 64)
    }

    @Test("All workers together stay within their memory budget, however many tokens come", arguments: [1, 8, 64])
    func budget(workers: Int) throws {
        let capacity = VerifiedSignatureCache.capacity(wanted: 10_000, workers: workers, memory: 64 * 1_048_576)
        #expect(capacity == 10_000 || capacity < 10_000 && workers > 1)
        var table = RecentDigests(capacity: capacity)
        for number in 0..<11_000 { table.add(try Self.digest(number), nil) }
        // The allocator rounds up a little.
        #expect(table.allocatedBytes * workers <= 4 * 1_048_576 * 102 / 100)
        #expect(table.count == capacity && capacity >= 500)
    }
}
