internal import Bytes
package import LimitedLogin
package import OpenSSL

/// The tokens whose signatures were found good before, so that the same token again costs no RSA operation and is not
/// decoded again. One for each worker.
///
/// What is remembered are facts that do not age: these bytes are signed by a key of this set, and say this. SHA-256 of the
/// whole token is compared, and with a set of keys that differs in anything all is forgotten. Everything else about a token
/// is judged anew each time, and no failure is kept.
///
/// A token enters only once it was accepted, so that neither forged nor expired ones take anybody's place.
package final class SignatureMemory {
    package private(set) var tokens: RecentDigests
    /// The keys under which the signatures of `tokens` are good.
    private var keys: VerificationKeys?
    private let sha256: SHA256?
    private let metrics: ServiceMetrics?

    /// 10,000: as many people as use one worker within minutes, in a megabyte.
    package static let defaultCapacity = 10_000
    /// The most that can be configured. 1,000,000 entries take some 100 MB for each worker.
    package static let greatestCapacity = 1_000_000

    /// - Parameter capacity: the most tokens remembered; zero for none.
    package init(capacity: Int, metrics: ServiceMetrics? = nil) {
        self.metrics = metrics
        sha256 = capacity > 0 ? try? SHA256() : nil
        tokens = RecentDigests(capacity: capacity)
    }

    /// Judges a token as the verifier does, but for what is remembered of it; remembers it where it is accepted.
    /// - Parameters:
    ///   - question: what the token must be; what it does not ask to be told may be missing in the claims.
    ///   - workspace: what the ranges of the claims point into.
    package func judge(
        _ token: Span<UInt8>,
        _ question: TokenQuestion,
        verifier: TokenVerifier,
        keys: VerificationKeys,
        now: NumericDate,
        workspace: inout VerificationWorkspace
    ) throws(Refusal) -> VerifiedClaims {
        var name: SHA256Digest?
        var place: RecentDigests.Place?
        if let sha256, token.count <= VerificationLimits.tokenByteCount,
            let stop = token.lastOffset(of: UInt8(ascii: ".")),
            let digest = sha256.digest(of: token, markingStart: stop)
        {
            forgetOthers(than: keys)
            let found = tokens.find(digest)
            metrics?.countSignature(isRemembered: found != nil)
            if let found, let reading = found.value,
                let claims = verifier.accept(
                    reading,
                    of: token.extracting(0..<stop),
                    question,
                    now: now,
                    workspace: &workspace
                )
            {
                tokens.use(found.place)
                return claims
            }
            (name, place) = (digest, found?.place)
        }
        let claims = try verifier.judge(
            token,
            question,
            keys: keys,
            isSigned: place != nil,
            digest: name != nil && place == nil ? sha256?.digestOfStart() : nil,
            now: now,
            workspace: &workspace
        )
        if let place {
            tokens.use(place)
        } else if let name {
            tokens.add(name, TokenReading(claims, of: token))
        }
        return claims
    }

    /// Forgets all that is remembered under other keys than these.
    private func forgetOthers(than keys: VerificationKeys) {
        guard keys !== self.keys else { return }
        if self.keys?.areSame(as: keys) != true { tokens = RecentDigests(capacity: tokens.capacity) }
        self.keys = keys
    }
}

/// The digests that were used last, each with a value, at most `capacity` of them: beyond that, the one whose use is
/// longest ago goes.
///
/// It is an exact LRU, so a digest is lost only after `capacity` others were used since: no flood of others can push it
/// out earlier. Each operation takes constant time: which digests share a bucket depends on a secret, so that nobody can
/// choose those that do. Memory is taken as it fills: 44 bytes and the value for each digest, and 2 to 4 for its bucket.
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
