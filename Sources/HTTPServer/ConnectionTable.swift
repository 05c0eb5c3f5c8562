/// The connections of one worker: a slab with generation tags, and the lists of those that wait for the same thing,
/// each in the order of entering it.
struct ConnectionTable: ~Copyable {
    /// The lists; a connection is in one at most.
    enum List: UInt8 {
        /// `busy` have a request or an answer under way, `silent` have not begun their TLS handshake, and `waiting` have,
        /// but wait for their turn.
        case none, idle, busy, parked, silent, waiting, handshaking

        static let count = 7
    }

    private static let noSlot: Int32 = -1

    private var connections: [Connection?] = []
    private var generations: [UInt32] = []
    private var free: [Int32] = []
    private var lists: [List] = []
    private var next: [Int32] = []
    private var previous: [Int32] = []
    private var first = [Int32](repeating: noSlot, count: List.count)
    private var last = [Int32](repeating: noSlot, count: List.count)
    private var counts = [Int](repeating: 0, count: List.count)

    /// Connections in the table.
    private(set) var count = 0

    /// Connections in a list.
    func count(of list: List) -> Int { counts[Int(list.rawValue)] }

    /// Puts a connection into a slot of its own.
    mutating func insert(_ connection: Connection) {
        if let slot = free.popLast() {
            connection.slot = Int(slot)
            connections[Int(slot)] = connection
        } else {
            connection.slot = connections.count
            connections.append(connection)
            generations.append(0)
            lists.append(.none)
            next.append(Self.noSlot)
            previous.append(Self.noSlot)
        }
        count += 1
    }

    /// Takes a connection out; tags made for it find nothing from now on.
    mutating func remove(_ connection: Connection) {
        let slot = connection.slot
        guard slot >= 0, slot < connections.count, connections[slot] === connection else { return }
        move(connection, to: .none)
        connections[slot] = nil
        generations[slot] &+= 1
        free.append(Int32(truncatingIfNeeded: slot))
        connection.slot = -1
        count -= 1
    }

    /// What the event queue keeps for a connection: slot and generation.
    func tag(of connection: Connection) -> UInt64 {
        UInt64(generations[connection.slot]) << 32 | UInt64(UInt32(truncatingIfNeeded: connection.slot))
    }

    /// The connection a tag was made for; nil where it is gone.
    func find(tag: UInt64) -> Connection? {
        let slot = Int(tag & 0xFFFF_FFFF)
        guard slot < connections.count, generations[slot] == UInt32(tag >> 32) else { return nil }
        return connections[slot]
    }

    /// The connection in a slot.
    func connection(at slot: Int) -> Connection? {
        slot >= 0 && slot < connections.count ? connections[slot] : nil
    }

    /// The one that has been in a list longest.
    func oldest(in list: List) -> Connection? {
        connection(at: Int(first[Int(list.rawValue)]))
    }

    /// Every connection of a list, for a walk during which lists change.
    func all(in list: List) -> [Connection] {
        var result: [Connection] = []
        var slot = first[Int(list.rawValue)]
        while let connection = connection(at: Int(slot)) {
            result.append(connection)
            slot = next[Int(slot)]
        }
        return result
    }

    /// Every connection there is.
    func all() -> [Connection] { connections.compactMap { $0 } }

    /// Puts the connection at the end of a list; with `.none`, only takes it out of the one it is in.
    mutating func move(_ connection: Connection, to list: List) {
        let slot = connection.slot
        let old = lists[slot]
        if old != .none {
            let before = previous[slot]
            let after = next[slot]
            let index = Int(old.rawValue)
            if before == Self.noSlot { first[index] = after } else { next[Int(before)] = after }
            if after == Self.noSlot { last[index] = before } else { previous[Int(after)] = before }
            counts[index] -= 1
        }
        lists[slot] = list
        if list == .none { return }
        let index = Int(list.rawValue)
        let end = last[index]
        previous[slot] = end
        next[slot] = Self.noSlot
        if end == Self.noSlot {
            first[index] = Int32(truncatingIfNeeded: slot)
        } else {
            next[Int(end)] = Int32(truncatingIfNeeded: slot)
        }
        last[index] = Int32(truncatingIfNeeded: slot)
        counts[index] += 1
    }

    /// The list a connection is in.
    func list(of connection: Connection) -> List { lists[connection.slot] }
}
