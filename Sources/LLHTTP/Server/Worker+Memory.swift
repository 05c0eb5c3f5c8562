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

extension ConnectionEngine {
    /// - Parameter now: The time up to which bytes have been read: the client is not charged for later ones.
    func memoryRank(of connection: Connection, _ now: MonotonicInstant) -> MemoryRank {
        let isSlow = isSlow(connection, now)
        let byAge = isSlow ? MemoryRank.slow : .fresh
        if connection.isWriting { return byAge }
        switch connection.phase {
        case .idle where connection.hasPartialInput: return byAge
        case .idle, .silent: return connection.requestsServed == 0 && !isSlow ? .fresh : .idle
        case .lingering, .closing, .ended: return .idle
        case .head, .body, .discarding, .waiting: return byAge
        case .handshaking: return connection.busySince + limits.slowHandshakeAge <= now ? .slow : .handshake
        case .parked: return .parked
        }
    }
}

extension Worker {
    /// The connections hold more than the worker's share: some are closed. Those of a peer over its share come before all
    /// others, so that one peer's many small connections close no other peer's single larger one. Then they go by rank,
    /// then the larger ones first; equal ones keep the order of their list.
    ///
    /// It ends when a sixteenth of the share is free. Each connection holds at least 1 KiB, so the walk through all of
    /// them then costs 16 steps for each KiB received.
    mutating func freeMemory() {
        let target = memoryShare - memoryShare / 16
        let largest = table.greatestPeer().flatMap { isOverShare($0.count) ? $0.peer : nil }
        let all = ConnectionTable.List.allCases.map { table.all(in: $0) }
        let parkedBytes = all[ConnectionTable.List.parked.rawValue].reduce(0) { $0 + $1.accountedBytes }
        let parkedAreMany = parkedBytes > memoryShare / limits.parkedShare
        var order: [(group: UInt64, size: Int, position: Int, slot: Int)] = []
        for connection in all.joined() {
            var rank = engine.memoryRank(of: connection, polledAt)
            if rank == .parked, parkedAreMany { rank = .fresh }
            let isOverShare = largest.map { table.isFrom($0, connection) } ?? false
            let group = (isOverShare ? 0 : 8) + rank.rawValue
            order.append((group, -connection.accountedBytes, order.count, connection.slot))
        }
        for (_, _, _, slot) in order.sorted(by: <) {
            if engine.heldBytes <= target { break }
            if let connection = table.connection(at: slot) { giveUp(connection) }
        }
    }

    /// Closes a connection for memory. A request that has begun is answered first, if the socket takes the answer at
    /// once.
    private mutating func giveUp(_ connection: Connection) {
        guard engine.giveUp(connection, now: now) else { return close(connection, .memory) }
        flush(connection)
        if connection.isWriting { close(connection, .memory) }
    }

    /// A part of a TLS record has come, and OpenSSL keeps a buffer for it: a request has begun.
    mutating func receivedPartOfRecord(_ connection: Connection) {
        engine.account(connection)
        guard connection.phase == .idle, connection.hasPartialInput, table.list(of: connection) != .busy else { return }
        connection.busySince = now
        table.move(connection, to: .busy)
    }
}
