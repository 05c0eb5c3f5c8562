internal import Bytes
package import OpenSSL

/// The digests that were used last, each with a value, at most `capacity` of them: beyond that, the one whose use is
/// longest ago goes.
///
/// It is an exact LRU, so a digest is lost only after `capacity` others were used since: no flood of others can push it
/// out earlier. Each operation takes constant time: which digests share a bucket depends on a secret, so that nobody can
/// choose those that do. Memory is taken as it fills: 44 bytes and the value for each digest, and 2 to 4 for its bucket.
/// What an addition reads lies apart, 20 bytes for each digest, so that it stays in a processor's cache.
package struct RecentDigests<Value: Sendable>: Sendable {
    /// A digest's place; good until another digest is added.
    package typealias Place = Int

    /// What is read to find a digest and to keep the order.
    private struct Link {
        /// The digest's first four bytes.
        var start: UInt32
        /// The neighbours in the order of use, and the next entry of the same bucket.
        var newer = UInt32.max
        var older = UInt32.max
        var nextInBucket = UInt32.max
    }

    /// What is read only where the start is right.
    private struct Entry {
        var rest: Rest
        var value: Value
    }

    /// The other 28 bytes of a digest.
    private struct Rest: Equatable {
        let second, third, fourth: UInt64
        let endOfFirst: UInt32
    }

    /// No entry.
    private static var none: UInt32 { .max }
    /// How much is allocated at first.
    private static var leastAllocation: Int { 64 }

    /// The most digests that are kept.
    package let capacity: Int
    private var links: [Link] = []
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
        entries.capacity * MemoryLayout<Entry>.stride + links.capacity * MemoryLayout<Link>.stride
            + buckets.capacity * MemoryLayout<UInt32>.stride
    }

    /// Where a digest is, and the value it came with; nil where it is not among those kept. All its 32 bytes are compared.
    package func find(_ digest: SHA256Digest) -> (place: Place, value: Value)? {
        guard !buckets.isEmpty else { return nil }
        let (start, rest) = Self.parts(of: digest)
        var index = buckets[bucket(of: start)]
        while index != Self.none {
            let place = Int(index)
            if links[place].start == start, entries[place].rest == rest { return (place, entries[place].value) }
            index = links[place].nextInBucket
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
        let (start, rest) = Self.parts(of: digest)
        let place: Int
        if entries.count < capacity {
            growIfNeeded()
            place = entries.count
            links.append(Link(start: start))
            entries.append(Entry(rest: rest, value: value))
        } else {
            place = Int(oldest)
            put(links[place].nextInBucket, inPlaceOf: oldest, bucket: bucket(of: links[place].start))
            unlink(place)
            links[place] = Link(start: start)
            entries[place] = Entry(rest: rest, value: value)
        }
        put(UInt32(truncatingIfNeeded: place), inPlaceOf: Self.none, bucket: bucket(of: start))
        linkAsNewest(place)
    }

    private static func parts(of digest: SHA256Digest) -> (start: UInt32, rest: Rest) {
        let bytes = digest.bytes.span
        let first = bytes.word(at: 0)
        let rest = Rest(
            second: bytes.word(at: 8),
            third: bytes.word(at: 16),
            fourth: bytes.word(at: 24),
            endOfFirst: UInt32(truncatingIfNeeded: first >> 32)
        )
        return (UInt32(truncatingIfNeeded: first), rest)
    }

    // MARK: The order of use

    private mutating func linkAsNewest(_ place: Int) {
        let index = UInt32(truncatingIfNeeded: place)
        links[place].newer = Self.none
        links[place].older = newest
        if newest != Self.none { links[Int(newest)].newer = index }
        newest = index
        if oldest == Self.none { oldest = index }
    }

    private mutating func unlink(_ place: Int) {
        let (newer, older) = (links[place].newer, links[place].older)
        if newer == Self.none { newest = older } else { links[Int(newer)].older = older }
        if older == Self.none { oldest = newer } else { links[Int(older)].newer = newer }
    }

    // MARK: The buckets

    private func bucket(of start: UInt32) -> Int {
        // There is at least one bucket wherever this is asked.
        Int(truncatingIfNeeded: (UInt64(start) &* secret) >> (64 - buckets.count.trailingZeroBitCount))
    }

    /// Puts an entry in the place of another one of its bucket, or of the bucket's end: a search that found nothing has just
    /// gone there, and what goes first mostly stands first.
    private mutating func put(_ index: UInt32, inPlaceOf other: UInt32, bucket: Int) {
        guard buckets[bucket] != other else { return buckets[bucket] = index }
        var last = Int(buckets[bucket])
        while links[last].nextInBucket != other { last = Int(links[last].nextInBucket) }
        links[last].nextInBucket = index
    }

    /// Doubles the memory when it is full, up to what ``capacity`` needs.
    private mutating func growIfNeeded() {
        guard entries.count == min(entries.capacity, links.capacity) || buckets.isEmpty else { return }
        let wanted = min(capacity, max(Self.leastAllocation, 2 * entries.count))
        links.reserveCapacity(wanted)
        entries.reserveCapacity(wanted)
        // One to two digests for each bucket.
        var bucketCount = 1
        while 2 * bucketCount <= wanted { bucketCount *= 2 }
        guard bucketCount > buckets.count else { return }
        buckets = Array(repeating: Self.none, count: bucketCount)
        for place in entries.indices {
            links[place].nextInBucket = Self.none
            put(UInt32(truncatingIfNeeded: place), inPlaceOf: Self.none, bucket: bucket(of: links[place].start))
        }
    }
}
