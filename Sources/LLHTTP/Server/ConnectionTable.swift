/// The origin of a connection. A site with IPv6 has at least a /64 to itself (RFC 6177), so one client could use each of
/// its addresses in turn: the /64 counts as one peer.
package struct Peer: Hashable, Sendable {
    private let bits: UInt64
    private let isIPv6: Bool

    package init(_ address: SocketAddress) {
        isIPv6 = address.isIPv6
        bits = address.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// The connections of one worker in numbered slots, with the list, the peer and the deadline of each. A served request
/// costs a few stores. A search goes through all slots, some 20 µs for 10,000; only connections that must make room, TLS
/// handshakes that wait and deadlines cause one.
struct ConnectionTable: ~Copyable {
    enum List: Int, CaseIterable {
        /// `busy` have a request or an answer in progress. `silent` have not begun their TLS handshake. `waiting` have
        /// begun it and wait until earlier ones are done. Handshakes of a peer with more connections than its share are
        /// in lists of their own.
        case none, idle, busy, parked, silent, waiting, overShareWaiting, handshaking, overShareHandshaking
    }

    private struct Slot {
        var connection: Connection?
        var list = List.none
        /// The number of moves before the connection came into its list.
        var order: UInt64 = 0
        var peer: Peer?
        var deadline = MonotonicInstant.never
    }

    private var slots: [Slot] = []
    private var free: [Int] = []
    private var moves: UInt64 = 0
    private var listCounts = [Int](repeating: 0, count: List.allCases.count)
    private var peerCounts: [Peer: Int] = [:]
    /// The moment of the next call of ``takeDue(at:)``. No deadline is earlier.
    private(set) var nextDeadline = MonotonicInstant.never

    var count: Int { slots.count - free.count }

    func count(of list: List) -> Int { listCounts[list.rawValue] }

    mutating func insert(_ connection: Connection, from peer: Peer?) {
        let slot = free.popLast() ?? slots.count
        if slot == slots.count { slots.append(Slot()) }
        slots[slot] = Slot(connection: connection, peer: peer)
        connection.slot = slot
        listCounts[List.none.rawValue] += 1
        if let peer { peerCounts[peer, default: 0] += 1 }
    }

    /// Removes a connection; tags made for it find nothing from now on.
    mutating func remove(_ connection: Connection) {
        let slot = connection.slot
        guard self.connection(at: slot) === connection else { return }
        listCounts[slots[slot].list.rawValue] -= 1
        if let peer = slots[slot].peer {
            let left = (peerCounts[peer] ?? 1) - 1
            peerCounts[peer] = left > 0 ? left : nil
        }
        slots[slot] = Slot()
        free.append(slot)
        connection.slot = -1
    }

    /// The event queue's tag for a connection: its slot, and as many bits of its number as fit beside it.
    func tag(of connection: Connection) -> UInt64 {
        connection.id << 32 | UInt64(UInt32(truncatingIfNeeded: connection.slot))
    }

    /// The connection that a tag was made for; nil if it has been removed.
    func find(tag: UInt64) -> Connection? {
        guard let connection = connection(at: Int(tag & 0xFFFF_FFFF)), connection.id & 0xFFFF_FFFF == tag >> 32 else {
            return nil
        }
        return connection
    }

    func connection(at slot: Int) -> Connection? {
        slot >= 0 && slot < slots.count ? slots[slot].connection : nil
    }

    /// The connection that has been longest in a list, or in any; with `peer` of that peer's alone.
    func oldest(in list: List? = nil, from peer: Peer? = nil) -> Connection? {
        if let list, count(of: list) == 0 { return nil }
        var oldest: (order: UInt64, slot: Int)?
        for slot in slots.indices where slots[slot].connection != nil {
            if let list, slots[slot].list != list { continue }
            if let peer, slots[slot].peer != peer { continue }
            let order = slots[slot].order
            if oldest.map({ order < $0.order }) ?? true { oldest = (order, slot) }
        }
        return oldest.flatMap { connection(at: $0.slot) }
    }

    func all() -> [Connection] { slots.compactMap(\.connection) }

    mutating func move(_ connection: Connection, to list: List) {
        let slot = connection.slot
        guard slot >= 0 else { return }
        listCounts[slots[slot].list.rawValue] -= 1
        listCounts[list.rawValue] += 1
        moves += 1
        slots[slot].list = list
        slots[slot].order = moves
    }

    /// Makes the connection come up at its deadline alone.
    mutating func schedule(_ connection: Connection) {
        guard connection.slot >= 0 else { return }
        let deadline = connection.deadline
        slots[connection.slot].deadline = deadline
        nextDeadline = min(nextDeadline, deadline)
    }

    /// The due connections, which come up no more.
    mutating func takeDue(at now: MonotonicInstant) -> [Connection] {
        guard nextDeadline <= now else { return [] }
        let due = slots.indices.filter { slots[$0].deadline <= now }
        for slot in due { slots[slot].deadline = .never }
        nextDeadline = slots.lazy.map(\.deadline).min() ?? .never
        return due.compactMap { slots[$0].connection }
    }

    func list(for connection: Connection) -> List {
        if connection.isWriting { return .busy }
        switch connection.phase {
        case .idle: return connection.hasPartialInput ? .busy : .idle
        // A lingering connection may be closed at any time.
        case .lingering: return .idle
        case .head, .body, .discarding: return .busy
        case .parked: return .parked
        case .closing, .ended: return .none
        case .silent: return .silent
        case .waiting, .handshaking: return list(of: connection)
        }
    }

    /// Of two connections of one list the lower one came into it first.
    func order(of connection: Connection) -> UInt64 { slots[connection.slot].order }

    func list(of connection: Connection) -> List { connection.slot >= 0 ? slots[connection.slot].list : .none }

    func greatestPeer() -> (peer: Peer, count: Int)? {
        peerCounts.max { $0.value < $1.value }.map { ($0.key, $0.value) }
    }

    func isFrom(_ peer: Peer, _ connection: Connection) -> Bool {
        connection.slot >= 0 && slots[connection.slot].peer == peer
    }

    /// The number of connections from the same peer as this one; 0 if it counts for no peer.
    func countOfPeer(_ connection: Connection) -> Int {
        guard connection.slot >= 0, let peer = slots[connection.slot].peer else { return 0 }
        return peerCounts[peer] ?? 0
    }
}
