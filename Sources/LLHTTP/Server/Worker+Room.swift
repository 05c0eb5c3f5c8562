internal import CLLSystem
internal import Synchronization

extension Worker {
    /// - Returns: False if the queue is empty or accepting must pause.
    @discardableResult
    mutating func acceptConnections() -> Bool {
        guard let listener else { return false }
        for _ in 0..<limits.acceptsPerWake {
            var address: SocketAddress?
            let result = Socket.accept(listener.descriptor, peer: &address)
            if result >= 0 {
                if listener.file != nil, assign(result) { continue }
                handle.load.wrappingAdd(1, ordering: .relaxed)
                admit(result, from: countedPeer(address))
                continue
            }
            switch -result {
            case EAGAIN: return false
            // The client disconnected before it was accepted, or a signal came: another connection may wait.
            case ECONNABORTED, EPROTO, EINTR: continue
            case EMFILE, ENFILE:
                if makeRoom(for: nil) { continue }
                host.counters.overloaded += 1
                fallthrough
            default:
                pauseAccepting()
                return false
            }
        }
        return true
    }

    /// Hands a connection of a Unix socket to the worker with the fewest connections. At most the reserve waits there, which
    /// the limit of connections does not count yet.
    /// - Returns: False if that is this worker, or if it takes no more.
    private func assign(_ descriptor: Int32) -> Bool {
        let handles = server.handles.withLock { $0 }
        let least = handles.min { $0.load.load(ordering: .relaxed) < $1.load.load(ordering: .relaxed) }
        guard let least, least !== handle, !isDraining,
            least.send(.serve(descriptor), unless: limits.reservedConnections)
        else { return false }
        least.load.wrappingAdd(1, ordering: .relaxed)
        return true
    }

    /// Keeps to the limit. Another connection makes room; otherwise the new one is held in the reserve for one answer
    /// (503, or that of a health check). Beyond the reserve it gets 503 and is closed.
    mutating func admit(_ descriptor: Int32, from peer: Peer?) {
        now = MonotonicClock.now()
        host.counters.accepted += 1
        let open = server.openConnections.wrappingAdd(1, ordering: .relaxed).newValue
        if open <= limits.connections || asksForRoom(for: peer, open) || makeRoom(for: peer) {
            add(descriptor, from: peer, isOverLimit: false)
        } else if open <= limits.connections + limits.reservedConnections {
            add(descriptor, from: peer, isOverLimit: true)
        } else {
            // No connection may wait here, so neither a request is read nor a TLS handshake made; only the bytes that
            // the socket takes at once are sent.
            if tls == nil { _ = Socket.send(descriptor, Self.fullAnswer) }
            platform_close(descriptor)
            didClose(.limit)
        }
    }

    mutating func didClose(_ cause: ConnectionCloseCause) {
        server.openConnections.wrappingSubtract(1, ordering: .relaxed)
        handle.load.wrappingSubtract(1, ordering: .relaxed)
        host.counters.closed[cause, default: 0] += 1
        publish()
    }

    /// RFC 9110 §15.6.4.
    private static let fullAnswer = Array(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8
    )

    /// Nil for a trusted peer, and for one without an address.
    private func countedPeer(_ address: SocketAddress?) -> Peer? {
        guard let address else { return nil }
        return limits.trustedPeers.contains { $0.contains(address) } ? nil : Peer(address)
    }

    /// Asks another worker to close a connection of its largest peer for a new one here: the system chooses the worker of
    /// each connection, so one peer's may all be on another one. The new connection is admitted meanwhile, within the
    /// reserve.
    private func asksForRoom(for peer: Peer?, _ open: Int) -> Bool {
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
    private mutating func makeRoom(for peer: Peer?) -> Bool {
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

    private mutating func pauseAccepting() {
        if acceptPausedUntil != .never { return }
        acceptPausedUntil = now + limits.acceptPause
        watchListener(false)
    }

    mutating func resumeAccepting() {
        acceptPausedUntil = .never
        // A Unix socket that refuses connections would be readable for ever.
        if !listenerIsRefusing { watchListener(true) }
    }

    private mutating func watchListener(_ isWatched: Bool) {
        guard let listener else { return }
        let events = isWatched ? PLATFORM_READABLE : 0
        let result = platform_epoll_modify(handle.poll, listener.descriptor, events, Self.listenerTag)
        // The worker tries again when the pause is over.
        if result < 0, isWatched { acceptPausedUntil = now + limits.acceptPause }
    }

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
            let isOverShare = largest.map { table.isFrom($0, connection) } ?? false
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
