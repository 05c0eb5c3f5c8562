package import Sockets

/// Which connections of one worker come from which peer address: looked at when connections open and close, and when
/// there are too many, never while a request is served. It has an entry for each connection and each address with one.
package struct PeerTable: ~Copyable {
    /// Where a connection comes from. A site with IPv6 has at least a /64 to itself (RFC 6177), so one client could take
    /// each of its addresses in turn: the /64 counts as one peer.
    package struct Peer: Hashable, Sendable {
        private let bits: UInt64
        private let isIPv6: Bool

        package init(_ address: SocketAddress) {
            isIPv6 = address.isIPv6
            bits = address.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        }
    }

    private static let none: Int32 = -1

    private var entries: [Peer: Int32] = [:]
    private var peers: [Peer?] = []
    private var counts: [Int32] = []
    private var free: [Int32] = []
    /// For each entry its connections, oldest first: a list through their slots.
    private var first: [Int32] = []
    private var last: [Int32] = []
    /// For each slot its entry, and its neighbours in that list.
    private var entryOfSlot: [Int32] = []
    private var next: [Int32] = []
    private var previous: [Int32] = []

    package init() {}

    /// The connection in `slot` comes from `peer`.
    package mutating func add(_ slot: Int, from peer: Peer) {
        while entryOfSlot.count <= slot {
            entryOfSlot.append(Self.none)
            next.append(Self.none)
            previous.append(Self.none)
        }
        let entry = entries[peer] ?? makeEntry(peer)
        let end = last[Int(entry)]
        entryOfSlot[slot] = entry
        previous[slot] = end
        next[slot] = Self.none
        if end == Self.none {
            first[Int(entry)] = Int32(truncatingIfNeeded: slot)
        } else {
            next[Int(end)] = Int32(truncatingIfNeeded: slot)
        }
        last[Int(entry)] = Int32(truncatingIfNeeded: slot)
        counts[Int(entry)] += 1
    }

    private mutating func makeEntry(_ peer: Peer) -> Int32 {
        if let entry = free.popLast() {
            peers[Int(entry)] = peer
            entries[peer] = entry
            return entry
        }
        let entry = Int32(truncatingIfNeeded: peers.count)
        peers.append(peer)
        counts.append(0)
        first.append(Self.none)
        last.append(Self.none)
        entries[peer] = entry
        return entry
    }

    /// The connection in `slot` ends; nothing happens where it was never added.
    package mutating func remove(_ slot: Int) {
        guard slot >= 0, slot < entryOfSlot.count, entryOfSlot[slot] != Self.none else { return }
        let entry = Int(entryOfSlot[slot])
        let before = previous[slot]
        let after = next[slot]
        if before == Self.none { first[entry] = after } else { next[Int(before)] = after }
        if after == Self.none { last[entry] = before } else { previous[Int(after)] = before }
        entryOfSlot[slot] = Self.none
        counts[entry] -= 1
        guard counts[entry] == 0, let peer = peers[entry] else { return }
        entries[peer] = nil
        peers[entry] = nil
        free.append(Int32(truncatingIfNeeded: entry))
    }

    /// The peer with the most connections, and how many they are; nil where there is none. A look at every peer: some
    /// microseconds for 10,000.
    package func greatest() -> (peer: Peer, count: Int)? {
        var most: Int32 = 0
        var found = 0
        for entry in counts.indices where counts[entry] > most {
            most = counts[entry]
            found = entry
        }
        return most == 0 ? nil : peers[found].map { ($0, Int(most)) }
    }

    /// Whether the connection in `slot` comes from `peer`.
    package func isFrom(_ peer: Peer, _ slot: Int) -> Bool {
        slot >= 0 && slot < entryOfSlot.count && entryOfSlot[slot] != Self.none && entryOfSlot[slot] == entries[peer]
    }

    /// How many connections the peer has from which the one in `slot` comes; 0 where that one is not counted.
    package func countOfPeer(_ slot: Int) -> Int {
        guard slot >= 0, slot < entryOfSlot.count, entryOfSlot[slot] != Self.none else { return 0 }
        return Int(counts[Int(entryOfSlot[slot])])
    }

    /// The slots of a peer's connections, oldest first, at most so many.
    package func slots(of peer: Peer, atMost most: Int) -> [Int] {
        guard let entry = entries[peer] else { return [] }
        var result: [Int] = []
        var slot = first[Int(entry)]
        while slot != Self.none, result.count < most {
            result.append(Int(slot))
            slot = next[Int(slot)]
        }
        return result
    }
}
