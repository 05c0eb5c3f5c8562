internal import CLLSystem
internal import Synchronization

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
        /// The number of the move that brought the connection into its list.
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

    func peer(of connection: Connection) -> Peer? { connection.slot >= 0 ? slots[connection.slot].peer : nil }

    /// The number of connections from the same peer as this one; 0 if it counts for no peer.
    func countOfPeer(_ connection: Connection) -> Int { peer(of: connection).flatMap { peerCounts[$0] } ?? 0 }
}

extension Worker {
    /// Asks another worker to close a connection of its largest peer for a new one here: the system chooses the worker of
    /// each connection, so one peer's may all be on another one. The new connection is admitted meanwhile, within the
    /// reserve.
    func asksForRoom(for peer: Peer?, _ open: Int) -> Bool {
        guard open <= limits.connections + limits.reservedConnections, !isOverShare(table.greatestPeer()?.count ?? 0)
        else { return false }
        let others = server.handles.withLock { $0.filter { $0 !== handle } }
        guard let other = others.first(where: { $0.hasPeerOverShare.load(ordering: .relaxed) }) else { return false }
        return other.send(.makeRoom(peer), unless: limits.reservedConnections)
    }

    /// Another worker has admitted a connection of `peer`: one of the largest peer's is closed here, if there are too many
    /// in all.
    mutating func makeRoomElsewhere(for peer: Peer?) {
        now = MonotonicClock.now()
        guard server.openConnections.load(ordering: .relaxed) > limits.connections else { return }
        guard let greatest = table.greatestPeer(), isOverShare(greatest.count) else {
            return handle.hasPeerOverShare.store(false, ordering: .relaxed)
        }
        let isOwn = greatest.peer == peer
        if let victim = victim(of: greatest.peer, evenBusy: !isOwn) { close(victim, isOwn ? .limit : .peer) }
    }

    /// Closes one connection for a new one from `peer`: one of the peer with the most, or else one of any peer.
    /// - Returns: False if none may be closed.
    mutating func makeRoom(for peer: Peer?) -> Bool {
        if let greatest = table.greatestPeer(), greatest.count > 1 {
            let isOwn = greatest.peer == peer
            let isOverShare = isOverShare(greatest.count)
            if let victim = victim(of: greatest.peer, evenBusy: isOverShare && !isOwn) {
                close(victim, isOwn ? .limit : .peer)
                return true
            }
            // A further connection of a peer over its share closes no other peer's.
            if isOverShare, isOwn { return false }
        }
        guard let victim = victim() else { return false }
        close(victim, .limit)
        return true
    }

    /// The connection to close for another one, of `peer` alone if it is given: the oldest before its TLS handshake, else
    /// the oldest that is idle or too slow; with `evenBusy` the oldest, if there is none.
    private func victim(of peer: Peer? = nil, evenBusy: Bool = false) -> Connection? {
        let lists: [ConnectionTable.List] = [
            .silent, .idle, .busy, .overShareWaiting, .waiting, .overShareHandshaking, .handshaking,
        ]
        for list in lists {
            guard let oldest = table.oldest(in: list, from: peer) else { continue }
            if list == .silent || list == .idle || oldest.isSlow(limits, at: now) { return oldest }
        }
        return evenBusy ? table.oldest(from: peer) : nil
    }

    /// True if this number of one peer's connections is more than its share of them all.
    func isOverShare(_ count: Int) -> Bool { count > max(limits.connections / limits.peerShare / workerCount, 1) }

    /// Returns memory to the system after half of at least 128 connections have closed, since each of the few that stay may
    /// hold a page; also each time the connections hold a sixteenth of the share more, since growing buffers leave holes.
    mutating func releaseMemory() {
        peakCount = max(peakCount, table.count)
        releasedBytes = min(releasedBytes, host.counters.heldBytes)
        let halfIsGone = peakCount >= 128 && table.count < peakCount / 2
        guard halfIsGone || host.counters.heldBytes > releasedBytes + memoryShare / 16 else { return }
        peakCount = table.count
        releasedBytes = host.counters.heldBytes
        platform_release_memory()
    }

    /// The connections hold more than the worker's share: some are closed. Those of a peer over its share come before all
    /// others, so that one peer's many small connections close no other peer's single larger one. Then they go by rank,
    /// then the larger ones first; equal ones keep the order of their list.
    ///
    /// It ends when a sixteenth of the share is free. Each connection holds at least 1 KiB, so the walk through all of
    /// them then costs 16 steps for each KiB received.
    mutating func freeMemory() {
        let target = memoryShare - memoryShare / 16
        let largest = table.greatestPeer().flatMap { isOverShare($0.count) ? $0.peer : nil }
        let all = table.all()
        let parked = all.filter { table.list(of: $0) == .parked }
        // Beyond half of the share, large parked requests are closed like fresh ones, which leaves room for all others.
        let parkedAreMany = parked.reduce(0) { $0 + $1.accountedBytes } > memoryShare / 2
        let order = all.map { connection in
            var rank = connection.memoryRank(limits, at: polledAt)
            if rank == .parked, parkedAreMany { rank = .fresh }
            let isOverShare = largest != nil && table.peer(of: connection) == largest
            let group = (isOverShare ? 0 : 8) + rank.rawValue
            return (group, -connection.accountedBytes, table.order(of: connection), connection.slot)
        }
        for (_, _, _, slot) in order.sorted(by: <) {
            if host.counters.heldBytes <= target { break }
            if let connection = table.connection(at: slot) { giveUp(connection) }
        }
    }

    /// Closes a connection for memory. A request that has begun is answered first, if the socket takes the answer at
    /// once.
    private mutating func giveUp(_ connection: Connection) {
        guard connection.giveUp(&host) else { return close(connection, .memory) }
        flush(connection)
        if connection.isWriting { close(connection, .memory) }
    }

    /// A part of a TLS record has come, and OpenSSL keeps a buffer for it: a request has begun.
    mutating func receivedPartOfRecord(_ connection: Connection) {
        host.account(connection)
        guard connection.phase == .idle, connection.hasPartialInput, table.list(of: connection) != .busy else { return }
        connection.busySince = now
        table.move(connection, to: .busy)
    }
}

/// The order in which connections make room if all together hold too much: the least rank first.
enum MemoryRank: UInt64 {
    /// Between requests, after the last answer, or without a request for long: the client loses only the connection.
    case idle
    /// A request, an answer or a handshake that takes too long.
    case slow
    /// A request or an answer that began a moment ago, or a new connection before its first request.
    case fresh
    /// A handshake that began a moment ago. It is large for that moment, and ``HTTPServerLimits/handshakes`` bounds them all.
    case handshake
    /// A whole request that waits for its answer.
    case parked
}

extension Connection {
    /// - Parameter now: The time up to which bytes have been read: the client is not charged for later ones.
    func memoryRank(_ limits: HTTPServerLimits, at now: MonotonicInstant) -> MemoryRank {
        let isSlow = isSlow(limits, at: now)
        let byAge = isSlow ? MemoryRank.slow : .fresh
        if isWriting { return byAge }
        switch phase {
        case .idle where hasPartialInput: return byAge
        case .idle, .silent: return requestsServed == 0 && !isSlow ? .fresh : .idle
        case .lingering, .closing, .ended: return .idle
        case .head, .body, .discarding, .waiting: return byAge
        case .handshaking: return busySince + limits.slowHandshakeAge <= now ? .slow : .handshake
        case .parked: return .parked
        }
    }
}
