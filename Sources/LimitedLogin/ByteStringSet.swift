internal import JOSE

/// A fixed set of byte strings that is asked with bytes: one hash and one comparison however many it holds,
/// and no allocation. The members are configured, so no attacker chooses what collides among them.
struct ByteStringSet: Sendable {
    /// All members, one after another.
    private var storage: [UInt8] = []
    /// For each slot the member's range in `storage`; an empty range marks a free slot.
    private var slots: [(start: UInt32, end: UInt32)]
    /// The number of slots less one; their number is a power of two.
    private let mask: UInt64

    /// The set of these strings; empty ones are left out, for an empty string is never a member.
    init(_ members: [String]) {
        var slotCount = 2
        // Half of the slots stay free, so that a search ends soon.
        while slotCount < members.count * 2 { slotCount *= 2 }
        slots = Array(repeating: (0, 0), count: slotCount)
        mask = UInt64(slotCount - 1)
        for member in members where !member.isEmpty { insert(Array(member.utf8)) }
    }

    /// Whether the bytes in `range` are a member.
    func contains(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        var slot = bytes.hash(of: range) & mask
        // Ends: at least half of the slots are free.
        while true {
            let (start, end) = slots[Int(slot)]
            if start == end { return false }
            if bytes.areEqual(range, to: storage.span.extracting(Int(start)..<Int(end))) { return true }
            slot = (slot + 1) & mask
        }
    }

    private mutating func insert(_ member: [UInt8]) {
        guard !contains(member.span, 0..<member.count), storage.count + member.count <= Int(UInt32.max) else { return }
        var slot = member.span.hash(of: 0..<member.count) & mask
        while slots[Int(slot)].start != slots[Int(slot)].end { slot = (slot + 1) & mask }
        // Fits 32 bits: checked above.
        slots[Int(slot)] = (UInt32(storage.count), UInt32(storage.count + member.count))
        storage += member
    }
}
