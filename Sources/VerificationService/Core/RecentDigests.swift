internal import Bytes
package import OpenSSL

/// The digests that were used last, each with a value, at most `capacity` of them: beyond that, the one whose use is
/// longest ago goes.
///
/// It is an exact LRU, so a digest is lost only after `capacity` others were used since: no flood of others can push it
/// out earlier. Each operation takes constant time: which digests share a bucket depends on a secret, so that nobody can
/// choose those that do. Memory is taken as it fills: 44 bytes and the value for each digest, and 2 to 4 for its bucket.
package struct RecentDigests<Value: Sendable>: Sendable {
    /// A digest's place; good until another digest is added.
    package typealias Place = Int

    private struct Entry {
        var digest: Words
        var value: Value
        /// The neighbours in the order of use, and the next entry of the same bucket.
        var newer = UInt32.max
        var older = UInt32.max
        var nextInBucket = UInt32.max
    }

    /// The 32 bytes of a digest.
    private struct Words: Equatable {
        let first, second, third, fourth: UInt64

        init(_ digest: SHA256Digest) {
            let bytes = digest.bytes.span
            first = bytes.word(at: 0)
            second = bytes.word(at: 8)
            third = bytes.word(at: 16)
            fourth = bytes.word(at: 24)
        }
    }

    /// No entry.
    private static var none: UInt32 { .max }
    /// How much is allocated at first.
    private static var leastAllocation: Int { 64 }

    /// The most digests that are kept.
    package let capacity: Int
    private var entries: [Entry] = []
    /// The first entry of each bucket; their number is a power of two.
    private var buckets: [UInt32] = []
    /// An odd number, with which a digest is multiplied: the highest bits of the product are its bucket. Any two digests
    /// share one with little more than the likelihood of chance (Dietzfelbinger's multiply-shift hashing).
    private let secret = UInt64.random(in: .min ... .max) | 1
    private var newest = UInt32.max
    private var oldest = UInt32.max

    /// - Parameter capacity: below 2³²; with zero or less nothing is kept.
    package init(capacity: Int) { self.capacity = min(max(0, capacity), Int(UInt32.max) - 1) }

    /// How many digests there are.
    package var count: Int { entries.count }

    /// The bytes allocated for them.
    package var allocatedBytes: Int {
        entries.capacity * MemoryLayout<Entry>.stride + buckets.capacity * MemoryLayout<UInt32>.stride
    }

    /// Where a digest is, and the value it came with; nil where it is not among those kept. All its 32 bytes are compared.
    package func find(_ digest: SHA256Digest) -> (place: Place, value: Value)? {
        guard !buckets.isEmpty else { return nil }
        let words = Words(digest)
        var index = buckets[bucket(of: words)]
        while index != Self.none {
            if entries[Int(index)].digest == words { return (Int(index), entries[Int(index)].value) }
            index = entries[Int(index)].nextInBucket
        }
        return nil
    }

    /// The digest at this place is the one used last.
    package mutating func use(_ place: Place) {
        guard newest != UInt32(truncatingIfNeeded: place), entries.indices.contains(place) else { return }
        unlink(place)
        linkAsNewest(place)
    }

    /// Adds a digest that is not there as the one used last.
    package mutating func add(_ digest: SHA256Digest, _ value: Value) {
        guard capacity > 0 else { return }
        let words = Words(digest)
        let place: Int
        if entries.count < capacity {
            growIfNeeded()
            place = entries.count
            entries.append(Entry(digest: words, value: value))
        } else {
            place = Int(oldest)
            unlink(place)
            removeFromBucket(place)
            entries[place].digest = words
            entries[place].value = value
        }
        putIntoBucket(place)
        linkAsNewest(place)
    }

    // MARK: The order of use

    private mutating func linkAsNewest(_ place: Int) {
        let index = UInt32(truncatingIfNeeded: place)
        entries[place].newer = Self.none
        entries[place].older = newest
        if newest != Self.none { entries[Int(newest)].newer = index }
        newest = index
        if oldest == Self.none { oldest = index }
    }

    private mutating func unlink(_ place: Int) {
        let (newer, older) = (entries[place].newer, entries[place].older)
        if newer == Self.none { newest = older } else { entries[Int(newer)].older = older }
        if older == Self.none { oldest = newer } else { entries[Int(older)].newer = newer }
    }

    // MARK: The buckets

    private func bucket(of words: Words) -> Int {
        // There is at least one bucket wherever this is asked.
        Int(truncatingIfNeeded: (words.first &* secret) >> (64 - buckets.count.trailingZeroBitCount))
    }

    private mutating func putIntoBucket(_ place: Int) {
        let bucket = bucket(of: entries[place].digest)
        entries[place].nextInBucket = buckets[bucket]
        buckets[bucket] = UInt32(truncatingIfNeeded: place)
    }

    private mutating func removeFromBucket(_ place: Int) {
        let bucket = bucket(of: entries[place].digest)
        let (index, next) = (UInt32(truncatingIfNeeded: place), entries[place].nextInBucket)
        guard buckets[bucket] != index else { return buckets[bucket] = next }
        var before = Int(buckets[bucket])
        while entries[before].nextInBucket != index { before = Int(entries[before].nextInBucket) }
        entries[before].nextInBucket = next
    }

    /// Doubles the memory when it is full, up to what ``capacity`` needs.
    private mutating func growIfNeeded() {
        guard entries.count == entries.capacity || buckets.isEmpty else { return }
        let wanted = min(capacity, max(Self.leastAllocation, 2 * entries.count))
        entries.reserveCapacity(wanted)
        // One to two digests for each bucket.
        var bucketCount = 1
        while 2 * bucketCount <= wanted { bucketCount *= 2 }
        guard bucketCount > buckets.count else { return }
        buckets = Array(repeating: Self.none, count: bucketCount)
        for place in entries.indices { putIntoBucket(place) }
    }
}
