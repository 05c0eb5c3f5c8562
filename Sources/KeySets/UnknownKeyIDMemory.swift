internal import Sockets

/// Remembers which key IDs the sources were asked for, in a table of fixed size.
///
/// Whoever sends tokens chooses their key IDs: so an entry holds a keyed 64-bit hash, never the text, and the table
/// never grows. Four entries share a bucket; the oldest gives way. A forgotten entry costs at most one refetch of the
/// budget, never a wrong answer about a key.
struct UnknownKeyIDMemory: Sendable {
    struct Entry: Sendable {
        var hash: UInt64 = 0
        /// When the key ID was first asked for.
        var askedAt = MonotonicInstant(nanoseconds: 0)
        /// Number of the fetch that answers for it; 0 marks an empty entry, for fetches count from 1.
        var fetch: UInt64 = 0
        /// Whether that fetch was under way already, so that its answer may be older than the question.
        var joined = false
    }

    private static let bucketSize = 4
    private let capacity: Int
    // Made with the first unknown key ID: most processes never see one.
    private var entries: [Entry] = []

    init(capacity: Int) {
        self.capacity = max(Self.bucketSize, capacity / Self.bucketSize * Self.bucketSize)
    }

    /// Entries in memory, at most the capacity.
    var count: Int { entries.reduce(0) { $0 + ($1.fetch == 0 ? 0 : 1) } }

    func entry(for hash: UInt64) -> Entry? {
        guard !entries.isEmpty else { return nil }
        for index in bucket(of: hash) where entries[index].hash == hash && entries[index].fetch != 0 {
            return entries[index]
        }
        return nil
    }

    mutating func store(_ entry: Entry) {
        if entries.isEmpty { entries = [Entry](repeating: Entry(), count: capacity) }
        var slot = bucket(of: entry.hash).lowerBound
        for index in bucket(of: entry.hash) {
            if entries[index].fetch != 0, entries[index].hash == entry.hash {
                slot = index
                break
            }
            if entries[index].askedAt < entries[slot].askedAt { slot = index }
        }
        entries[slot] = entry
    }

    mutating func removeAll() { entries = [] }

    // `entries` holds `capacity` entries, a multiple of the bucket size, whenever this is used.
    private func bucket(of hash: UInt64) -> Range<Int> {
        let first = Int(hash % UInt64(capacity / Self.bucketSize)) * Self.bucketSize
        return first..<(first + Self.bucketSize)
    }
}
