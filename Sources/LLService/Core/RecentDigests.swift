internal import LLBytes
package import LLCrypto
package import LimitedLogin

/// The most recently used digests, each with a value. When `capacity` is exceeded, the least recently used digest is
/// removed.
///
/// The LRU order is exact: a digest is removed only after `capacity` others were used since, so that a flood cannot
/// remove it earlier. Each operation takes constant time. A random secret decides which digests share a bucket, so that
/// a client cannot choose digests that collide. Memory grows with the number of digests, ``bytesPerEntry`` each.
package struct RecentDigests: Sendable {
    /// Nil for a token that does not fit into ``CachedClaims``.
    package typealias Value = CachedClaims?
    /// The position of a digest; valid until another digest is added.
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

    /// The memory of a digest with its value, in bytes. Its bucket takes 2 to 4 of them.
    package static var bytesPerEntry: Int { MemoryLayout<Entry>.stride + MemoryLayout<UInt32>.stride }

    /// The greatest number of digests.
    package let capacity: Int
    private var entries: [Entry] = []
    /// The first entry of each bucket; their number is a power of two.
    private var buckets: [UInt32] = []
    /// A random odd number. The highest bits of its product with a digest are the bucket's index. Two digests collide
    /// hardly more often than by chance (Dietzfelbinger's multiply-shift hashing).
    private let secret = UInt64.random(in: .min ... .max) | 1
    private var newest = UInt32.max
    private var oldest = UInt32.max

    /// - Parameter capacity: Below 2³²; zero or less keeps nothing.
    package init(capacity: Int) { self.capacity = min(max(0, capacity), Int(UInt32.max) - 1) }

    package var count: Int { entries.count }

    package var allocatedBytes: Int {
        entries.capacity * MemoryLayout<Entry>.stride + buckets.capacity * MemoryLayout<UInt32>.stride
    }

    /// The position of a digest and its value; nil if it is not kept. All 32 bytes are compared.
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

    /// Digests are no secrets, so this comparison need not take constant time.
    private static func areEqual(_ left: SHA256Digest, _ right: SHA256Digest) -> Bool {
        let (left, right) = (left.bytes.span, right.bytes.span)
        return left.word(at: 0) == right.word(at: 0) && left.word(at: 8) == right.word(at: 8)
            && left.word(at: 16) == right.word(at: 16) && left.word(at: 24) == right.word(at: 24)
    }

    /// Marks the digest at this position as the most recently used.
    package mutating func use(_ place: Place) {
        guard newest != UInt32(truncatingIfNeeded: place), entries.indices.contains(place) else { return }
        unlink(place)
        linkAsNewest(place)
    }

    /// Adds a digest that is not kept yet, as the most recently used.
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
        // Every caller makes sure that there is at least one bucket.
        let product = digest.bytes.span.word(at: 0) &* secret
        return Int(truncatingIfNeeded: product >> (64 - buckets.count.trailingZeroBitCount))
    }

    /// Replaces an entry in a bucket's chain, or the end of the chain, by another entry. A failed search has just
    /// visited this chain, and the least recently used entry is mostly its first.
    private mutating func put(_ index: UInt32, inPlaceOf other: UInt32, bucket: Int) {
        guard buckets[bucket] != other else { return buckets[bucket] = index }
        var last = Int(buckets[bucket])
        while entries[last].nextInBucket != other { last = Int(entries[last].nextInBucket) }
        entries[last].nextInBucket = index
    }

    /// Doubles the memory when it is full, up to the need of ``capacity``.
    private mutating func growIfNeeded() {
        guard entries.count == entries.capacity || buckets.isEmpty else { return }
        let wanted = min(capacity, max(Self.leastAllocation, 2 * entries.count))
        entries.reserveCapacity(wanted)
        // Each bucket has one to two digests on average.
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
