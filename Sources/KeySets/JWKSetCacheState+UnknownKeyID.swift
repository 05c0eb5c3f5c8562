internal import Sockets

extension JWKSetCacheState {
    /// A token's key is not at hand; answers what to do about it and whether a fetch is thereby begun.
    ///
    /// `hash` stands for the key ID, and is nil where there are no usable keys at all: then the question is only whether
    /// a fetch is worth waiting for. `since` is when the request began to wait, which bounds its wait however often it
    /// asks again.
    mutating func missingKey(
        hash: UInt64?,
        since: MonotonicInstant,
        at now: MonotonicInstant
    ) -> (answer: MissingKeyAnswer, begins: Bool) {
        if let hash, isAnswered(since: since, at: now) || isKnownToBeUnknown(hash, at: now) { return (.unknown, false) }
        switch fetch {
        case .backingOff(let until):
            return (.unavailable(retryAfterSeconds: Self.seconds(from: now, to: until)), false)
        case .underWay(let began):
            if let hash { join(hash, isOlder: began < since) }
            return (wait(since: since, at: now), false)
        case .idle:
            guard let hash, !isStopped else { return (.unavailable(retryAfterSeconds: 1), false) }
            // The sources were not asked about this key ID, so it may not be called unknown.
            guard budget.take(at: now), begin(at: now) else {
                return (.unavailable(retryAfterSeconds: Self.seconds(from: now, to: budget.nextAt)), false)
            }
            memory.store(.init(hash: hash, fetch: fetchNumber))
            return (wait(since: since, at: now), true)
        }
    }

    /// The good fetch that has just ended no longer has this key: its tokens are rejected for a moment without another
    /// fetch. Then the sources are asked again: an edge of the issuer's may have answered with the previous set.
    mutating func keyHasLeft(hash: UInt64) {
        memory.store(.init(hash: hash, fetch: fetchNumber, hasLeft: true))
    }

    private func wait(since: MonotonicInstant, at now: MonotonicInstant) -> MissingKeyAnswer {
        let deadline = since + limits.waitForFetch
        return now < deadline && !isStopped ? .wait(until: deadline) : .unavailable(retryAfterSeconds: 1)
    }

    /// Whether a good fetch has just ended that was begun while this request waited: no request causes or joins another,
    /// so that a burst of any size costs one. The answer of an earlier fetch may be older than the key.
    private func isAnswered(since: MonotonicInstant, at now: MonotonicInstant) -> Bool {
        lastGoodFetch > 0 && since <= lastGoodFetchBeganAt && since < lastGoodFetchEndedAt
            && now < lastGoodFetchEndedAt + limits.joinedNegativeLifetime
    }

    /// Whether a good fetch has answered for this key ID, lately enough to be believed.
    private func isKnownToBeUnknown(_ hash: UInt64, at now: MonotonicInstant) -> Bool {
        // No fetch has answered for it yet; or the set has changed since, so that all is open again.
        guard let entry = memory.entry(for: hash), lastGoodFetch >= entry.fetch, entry.fetch >= setChangedByFetch else {
            return false
        }
        // That a key has left is borne out by the next fetch without it.
        let isBorneOut = !entry.hasLeft || lastGoodFetch > entry.fetch
        return now < lastGoodFetchEndedAt + (isBorneOut ? limits.negativeLifetime : limits.joinedNegativeLifetime)
    }

    /// Remembers that the key ID was asked about. The fetch under way answers for it unless that is older than the
    /// request; then the next fetch does.
    private mutating func join(_ hash: UInt64, isOlder: Bool) {
        // One that was asked about before stands as it was asked first: the fetch under way is younger than that.
        if let entry = memory.entry(for: hash), entry.fetch >= setChangedByFetch { return }
        memory.store(.init(hash: hash, fetch: isOlder ? fetchNumber + 1 : fetchNumber))
    }

    /// Whole seconds, at least 1: the value of `Retry-After`.
    private static func seconds(from now: MonotonicInstant, to later: MonotonicInstant) -> Int {
        let nanoseconds = later.nanoseconds(since: now)
        return max(1, Int(clamping: nanoseconds / 1_000_000_000 + (nanoseconds % 1_000_000_000 == 0 ? 0 : 1)))
    }
}

/// Remembers which key IDs the sources were asked for, in a table of fixed size.
///
/// The sender of a token chooses its key ID: so an entry holds a keyed 64-bit hash, never the text, and the table
/// never grows. Four entries share a bucket; the one of the oldest fetch gives way. A forgotten entry costs at most one
/// refetch of the budget, never a wrong answer about a key.
struct UnknownKeyIDMemory: Sendable {
    struct Entry: Sendable {
        var hash: UInt64 = 0
        /// Number of the fetch that answers for it; 0 marks an empty entry, for fetches count from 1.
        var fetch: UInt64 = 0
        /// Whether that fetch was the first one without it.
        var hasLeft = false
    }

    private static let bucketSize = 4
    private let capacity: Int
    // Made with the first unknown key ID: most processes never see one.
    private(set) var entries: [Entry] = []

    init(capacity: Int) { self.capacity = max(Self.bucketSize, capacity / Self.bucketSize * Self.bucketSize) }

    func entry(for hash: UInt64) -> Entry? { place(of: hash).map { entries[$0] } }

    mutating func store(_ entry: Entry) {
        if entries.isEmpty { entries = [Entry](repeating: Entry(), count: capacity) }
        let oldest = bucket(of: entry.hash).min { entries[$0].fetch < entries[$1].fetch }
        guard let place = place(of: entry.hash) ?? oldest else { return }
        entries[place] = entry
    }

    private func place(of hash: UInt64) -> Int? {
        entries.isEmpty ? nil : bucket(of: hash).first { entries[$0].hash == hash && entries[$0].fetch != 0 }
    }

    // `entries` holds `capacity` entries, a multiple of the bucket size, whenever this is used.
    private func bucket(of hash: UInt64) -> Range<Int> {
        let first = Int(hash % UInt64(capacity / Self.bucketSize)) * Self.bucketSize
        return first..<(first + Self.bucketSize)
    }
}

/// How many refetches unknown key IDs may cause: a burst, then one per interval (the generic cell rate algorithm, which
/// needs one moment of memory and no timer).
struct RefetchBudget: Sendable {
    private let interval: UInt64
    private let tolerance: UInt64
    // The moment at which the whole burst is earned again.
    private var fullAgainAt = MonotonicInstant(nanoseconds: 0)

    init(burst: Int, interval: Duration) {
        self.interval = interval.wholeNanoseconds
        let (tolerance, overflow) = self.interval.multipliedReportingOverflow(by: UInt64(max(burst, 1) - 1))
        self.tolerance = overflow ? .max : tolerance
    }

    /// When the next refetch may be taken; in the past if one is left.
    var nextAt: MonotonicInstant {
        MonotonicInstant(nanoseconds: fullAgainAt.nanoseconds - min(tolerance, fullAgainAt.nanoseconds))
    }

    mutating func take(at now: MonotonicInstant) -> Bool {
        guard now >= nextAt else { return false }
        fullAgainAt = max(fullAgainAt, now).adding(nanoseconds: interval)
        return true
    }
}
