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
    package var heldBytes: Int {
        var held = Self.ownBytes + pendingOutput.capacity
        held += buffer?.content.heldBytes ?? 0
        guard let tls else { return held }
        if isHandshaking { return held + Self.handshakeBytes }
        held += Self.sessionBytes
        if tls.holdsPartialInput { held += Self.recordBytes }
        // The answer to a key update (RFC 8446 section 4.6.3) also needs a record if the socket does not take it.
        if isWriting || tlsInterest == .outputSpace { held += Self.recordBytes }
        return held
    }

    /// The connection itself, with its entries in the worker's tables: 1 KiB.
    static let ownBytes = 1_024
    /// OpenSSL's memory within a handshake: 46 KiB, and after it 11 KiB; measured with OpenSSL 3.0. A client cannot
    /// make its handshake larger: ``TLSContext`` bounds its messages.
    static let handshakeBytes = 46 * 1_024
    private static let sessionBytes = 11 * 1_024
    /// An incomplete record, in either direction: 16 KiB and its framing (RFC 8446 section 5.1).
    private static let recordBytes = 17 * 1_024

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
        // Beyond half of the share, large parked requests are closed like fresh ones, which leaves room for all others.
        let parkedAreMany = parkedBytes > memoryShare / 2
        var order: [(group: UInt64, size: Int, position: Int, slot: Int)] = []
        for connection in all.joined() {
            var rank = connection.memoryRank(limits, at: polledAt)
            if rank == .parked, parkedAreMany { rank = .fresh }
            let isOverShare = largest.map { table.isFrom($0, connection) } ?? false
            let group = (isOverShare ? 0 : 8) + rank.rawValue
            order.append((group, -connection.accountedBytes, order.count, connection.slot))
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
