internal import LLBytes
package import LLCrypto
package import LimitedLogin

/// The digests that were used last, each with a value, at most `capacity` of them: beyond that, the one whose use is
/// longest ago goes.
///
/// It is an exact LRU, so a digest is lost only after `capacity` others were used since: no flood of others can push it
/// out earlier. Each operation takes constant time: which digests share a bucket depends on a secret, so that nobody can
/// choose those that do. Memory is taken as it fills, ``bytesPerEntry`` for each digest.
package struct RecentDigests: Sendable {
    /// Nil for a token that ``TokenReading`` has no room for.
    package typealias Value = TokenReading?
    /// A digest's place; good until another digest is added.
    package typealias Place = Int

    private struct Entry {
        let digest: SHA256Digest
        let value: Value
        /// The neighbours in the order of use, and the next entry of the same bucket.
        var newer = UInt32.max
        var older = UInt32.max
        var nextInBucket = UInt32.max
    }

    private static var none: UInt32 { .max }
    private static var leastAllocation: Int { 64 }

    /// The memory of a digest with its value, in bytes; for its bucket 2 to 4 of them.
    package static var bytesPerEntry: Int { MemoryLayout<Entry>.stride + MemoryLayout<UInt32>.stride }

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

    package var count: Int { entries.count }

    package var allocatedBytes: Int {
        entries.capacity * MemoryLayout<Entry>.stride + buckets.capacity * MemoryLayout<UInt32>.stride
    }

    /// Where a digest is, and the value it came with; nil where it is not among those kept. All its 32 bytes are compared.
    package func find(_ digest: SHA256Digest) -> (place: Place, value: Value)? {
        guard !buckets.isEmpty else { return nil }
        var index = buckets[bucket(of: digest)]
        while index != Self.none {
            let place = Int(index)
            if Self.areEqual(entries[place].digest, digest) { return (place, entries[place].value) }
            index = entries[place].nextInBucket
        }
        return nil
    }

    /// In no constant time: digests are no secrets.
    private static func areEqual(_ left: SHA256Digest, _ right: SHA256Digest) -> Bool {
        let (left, right) = (left.bytes.span, right.bytes.span)
        return left.word(at: 0) == right.word(at: 0) && left.word(at: 8) == right.word(at: 8)
            && left.word(at: 16) == right.word(at: 16) && left.word(at: 24) == right.word(at: 24)
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
        let place: Int
        if entries.count < capacity {
            growIfNeeded()
            place = entries.count
            entries.append(Entry(digest: digest, value: value))
        } else {
            place = Int(oldest)
            put(entries[place].nextInBucket, inPlaceOf: oldest, bucket: bucket(of: entries[place].digest))
            unlink(place)
            entries[place] = Entry(digest: digest, value: value)
        }
        put(UInt32(truncatingIfNeeded: place), inPlaceOf: Self.none, bucket: bucket(of: digest))
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

    private func bucket(of digest: SHA256Digest) -> Int {
        // There is at least one bucket wherever this is asked.
        let product = digest.bytes.span.word(at: 0) &* secret
        return Int(truncatingIfNeeded: product >> (64 - buckets.count.trailingZeroBitCount))
    }

    /// Puts an entry in the place of another one of its bucket, or of the bucket's end: a search that found nothing has just
    /// gone there, and what goes first mostly stands first.
    private mutating func put(_ index: UInt32, inPlaceOf other: UInt32, bucket: Int) {
        guard buckets[bucket] != other else { return buckets[bucket] = index }
        var last = Int(buckets[bucket])
        while entries[last].nextInBucket != other { last = Int(entries[last].nextInBucket) }
        entries[last].nextInBucket = index
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
        for place in entries.indices {
            entries[place].nextInBucket = Self.none
            put(UInt32(truncatingIfNeeded: place), inPlaceOf: Self.none, bucket: bucket(of: entries[place].digest))
        }
    }
}
