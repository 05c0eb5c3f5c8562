package import LLSockets

/// The peer address of each connection of one worker. It is used when connections open and close, and when there are
/// too many, but never while a request is served. It has an entry for each connection and for each address with a
/// connection.
package struct PeerTable: ~Copyable {
    /// The origin of a connection. A site with IPv6 has at least a /64 to itself (RFC 6177), so one client could use
    /// each of its addresses in turn: the /64 counts as one peer.
    package struct Peer: Hashable, Sendable {
        private let bits: UInt64
        private let isIPv6: Bool

        package init(_ address: SocketAddress) {
            isIPv6 = address.isIPv6
            bits = address.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        }
    }

    private var entries: [Peer: Int] = [:]
    private var peers: [Peer?] = []
    private var free: [Int] = []
    /// The slots of each entry's connections.
    private var slots = IndexLists(listCount: 0)

    package init() {}

    /// The connection in `slot` comes from `peer`.
    package mutating func add(_ slot: Int, from peer: Peer) {
        slots.append(slot, to: entries[peer] ?? makeEntry(peer))
    }

    private mutating func makeEntry(_ peer: Peer) -> Int {
        let entry = free.popLast() ?? slots.makeList()
        if entry == peers.count { peers.append(peer) } else { peers[entry] = peer }
        entries[peer] = entry
        return entry
    }

    /// The connection in `slot` has ended; does nothing if it was never added.
    package mutating func remove(_ slot: Int) {
        guard let entry = slots.list(of: slot) else { return }
        slots.remove(slot)
        guard slots.count(of: entry) == 0, let peer = peers[entry] else { return }
        entries[peer] = nil
        peers[entry] = nil
        free.append(entry)
    }

    /// The peer with the most connections, and their number; nil if there is none. It examines every peer: some
    /// microseconds for 10,000.
    package func greatest() -> (peer: Peer, count: Int)? {
        var most = 0
        var found = 0
        for entry in peers.indices where slots.count(of: entry) > most {
            most = slots.count(of: entry)
            found = entry
        }
        return most == 0 ? nil : peers[found].map { ($0, most) }
    }

    /// True if the connection in `slot` comes from `peer`.
    package func isFrom(_ peer: Peer, _ slot: Int) -> Bool {
        slots.list(of: slot).map { $0 == entries[peer] } ?? false
    }

    /// The number of connections from the same peer as the one in `slot`; 0 if that one is not counted.
    package func countOfPeer(_ slot: Int) -> Int { slots.list(of: slot).map { slots.count(of: $0) } ?? 0 }

    /// The slots of a peer's connections, oldest first, at most `most` of them.
    package func slots(of peer: Peer, atMost most: Int) -> [Int] {
        entries[peer].map { slots.numbers(of: $0, atMost: most) } ?? []
    }
}
