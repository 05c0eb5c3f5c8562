internal import CLLSystem
internal import Synchronization

/// One serial queue of a server: its listener, its epoll set, its connections. It shares nothing while requests are served.
struct Worker: ~Copyable {
    /// No connection has these tags: no table has that many slots.
    static let (wakeTag, listenerTag) = (UInt64.max, UInt64.max - 1)
    static let eventCapacity = 256

    let limits: HTTPServerLimits
    let server: HTTPServer
    let handle: WorkerHandle
    var host: ConnectionHost
    var receiveBuffer: [UInt8]
    /// Nil once it is closed, and for the workers that take connections of a Unix socket from the first.
    var listener: Listener?
    var table = ConnectionTable()
    var tls: Published<TLSContext>.Copy?
    /// The connections that continue once others were served: with whole requests that wait, decrypted bytes, or a parked
    /// request to visit.
    var continuing: [Connection] = []
    var acceptPausedUntil = MonotonicInstant.never
    var now: MonotonicInstant {
        get { host.now }
        set { host.now = newValue }
    }
    /// The moment at which the current events were reported.
    var polledAt: MonotonicInstant
    private var events = [platform_event](repeating: platform_event(), count: Worker.eventCapacity)
    private var drainedAt: MonotonicInstant
    var isDraining: Bool { host.isDraining }
    var listenerClosesAt = MonotonicInstant.never
    var cutOffAt = MonotonicInstant.never
    var listenerIsRefusing = false
    let workerCount: Int
    /// The memory that this worker's connections may hold, in bytes.
    let memoryShare: Int
    /// The greatest number of connections, and the least memory that they held, since memory was last returned to the
    /// system.
    var peakCount = 0
    var releasedBytes = 0

    init(_ handle: WorkerHandle, of server: HTTPServer, handler: any HTTPRequestHandler) {
        listener = handle.listener
        self.handle = handle
        var limits = server.configuration.limits
        workerCount = max(server.handles.withLock { $0.count }, 1)
        memoryShare = limits.connectionBytes / workerCount
        // Seven eighths of the share, so that handshakes wait before one is closed for memory; 4, so that a quarter is one.
        limits.handshakes = min(limits.handshakes, max(memoryShare / 8 * 7 / Connection.handshakeBytes, 4))
        self.limits = limits
        self.server = server
        tls = server.configuration.tls.map { Published.Copy($0) }
        host = ConnectionHost(limits: limits, handler: handler, now: MonotonicClock.now())
        receiveBuffer = [UInt8](repeating: 0, count: max(limits.receiveBytes, 1))
        handler.attach { handle.send(.wake($0)) }
        polledAt = host.now
        drainedAt = host.now
    }

    mutating func run() {
        while takeCommands() {
            runOnce()
        }
        closeEverything()
    }

    private mutating func runOnce() {
        let before = now
        let wait = timeout()
        // The array has room for this number of events.
        let count = Int(unsafe platform_epoll_wait(handle.poll, &events, Int32(Self.eventCapacity), wait))
        now = MonotonicClock.now()
        polledAt = now
        host.unixSeconds = WallClock.unixSeconds()
        // These events came after the last poll that reported all there were; after a real wait they came just now.
        let waited = now.nanoseconds(since: before) > 200_000
        host.waitingSince = waited && count < Self.eventCapacity ? now : drainedAt
        if count < Self.eventCapacity { drainedAt = now }
        for position in 0..<min(max(count, 0), events.count) {
            handle(events[position])
            keepToShare()
        }
        continueQueued()
        handleDeadlines()
        if handshakesWait { beginWaitingHandshakes() }
        host.endTurn()
        publish()
        releaseMemory()
    }

    private mutating func handle(_ event: platform_event) {
        if event.tag == Self.wakeTag {
            handle.wake.clear()
            handle.answerCheck()
        } else if event.tag == Self.listenerTag {
            acceptConnections()
        } else if let connection = table.find(tag: event.tag) {
            now = MonotonicClock.now()
            handle(connection, event.events)
        }
    }

    /// Milliseconds until the next due time; -1 if there is none, so that an idle server sleeps.
    private func timeout() -> Int32 {
        if !continuing.isEmpty { return 0 }
        let next = min(
            table.nextDeadline,
            handshakesWait ? nextHandshakeTurn() : .never,
            min(acceptPausedUntil, listenerClosesAt, cutOffAt, host.handler.willWait(at: now))
        )
        return BlockingWait.milliseconds(from: now, until: next)
    }

    /// Continues with the first of the queued connections. 16: other requests then wait about a millisecond for them.
    private mutating func continueQueued() {
        let turn = Array(continuing.prefix(16))
        continuing.removeFirst(turn.count)
        for connection in turn where connection.slot >= 0 {
            connection.isQueued = false
            if connection.phase == .parked {
                wake(connection)
            } else if !receivePendingTLS(connection) {
                connection.resume(&host)
                flush(connection)
            }
            keepToShare()
        }
    }

    private mutating func handleDeadlines() {
        if now >= acceptPausedUntil { resumeAccepting() }
        for connection in table.takeDue(at: now) where connection.slot >= 0 {
            guard connection.deadline <= now else {
                table.schedule(connection)
                continue
            }
            // Bytes may have come since the poll. One more read saves a request that a long turn would end here.
            if [.idle, .head, .body].contains(connection.phase) {
                now = MonotonicClock.now()
                handle(connection, PLATFORM_READABLE)
                keepToShare()
            }
            guard connection.slot >= 0, connection.deadline <= now else { continue }
            connection.deadlinePassed(&host)
            flush(connection)
            keepToShare()
        }
    }

    private var handshakesWait: Bool { table.count(of: .waiting) + table.count(of: .overShareWaiting) > 0 }

    mutating func publish() {
        host.counters.open = table.count
        host.counters.idle = table.count(of: .idle)
        host.counters.parked = table.count(of: .parked)
        let counters = host.counters
        handle.counters.withLock { $0 = counters }
    }

    /// Called after each step that may make a connection hold more: one turn can fill thousands of them.
    mutating func keepToShare() {
        if host.counters.heldBytes > memoryShare { freeMemory() }
    }

    private mutating func handle(_ connection: Connection, _ events: Int) {
        if connection.tls != nil || connection.isHandshaking, handleTLS(connection) { return }
        let isGone = events & PLATFORM_GONE != 0
        switch connection.interest {
        case .input:
            // Buffered bytes go first; epoll is level-triggered and will report again.
            if !connection.isQueued || isGone { receive(connection) }
        case _ where isGone: close(connection, .disconnected)
        case .outputSpace: if events & PLATFORM_WRITABLE != 0 { resumeSending(connection) }
        case .hangUp, .nothing:
            if events & PLATFORM_READ_HANG_UP == 0 { return }
            // The client may have ended only its own direction: it still gets its answer.
            connection.inputEnded()
            if connection.phase == .parked, host.handler.didHangUp(connection.request) {
                connection.visit(.expired, &host)
            }
            flush(connection)
        }
    }

    mutating func wake(_ connection: Connection) {
        now = MonotonicClock.now()
        connection.wake(&host)
        flush(connection)
        keepToShare()
    }

    mutating func receive(_ connection: Connection) {
        let room = connection.room(limits)
        if room == 0 { return close(connection, .memory) }
        var storage: [UInt8] = []
        swap(&storage, &receiveBuffer)
        defer { swap(&storage, &receiveBuffer) }
        let received =
            connection.tls == nil
            ? Socket.receive(connection.descriptor, into: &storage, atMost: room)
            : receiveTLS(connection, into: &storage, atMost: room)
        switch received {
        case .bytes(let count):
            connection.received(storage.span.extracting(0..<count), by: &host)
            flush(connection)
        case .closed:
            connection.inputEnded()
            flush(connection)
        case .wantRead, .wantWrite:
            guard connection.tls != nil else { return }
            receivedPartOfRecord(connection)
            updateInterest(connection)
        case .failed(let number):
            // A reset of a lingering connection does not change its close cause.
            close(connection, connection.phase == .lingering ? connection.closeCause : Self.closeCause(of: number))
        }
    }

    /// Sends the output of an event, then does the connection's next step.
    mutating func flush(_ connection: Connection) {
        if connection.phase == .ended {
            host.output.removeAll(keepingCapacity: true)
            host.sharedOutput = nil
        } else if !host.output.isEmpty {
            guard sendOutput(connection) else { return }
        }
        perform(connection)
    }

    /// - Returns: False if the connection was closed.
    private mutating func sendOutput(_ connection: Connection) -> Bool {
        defer {
            host.sharedOutput = nil
            if host.output.capacity > 4 * limits.outputBytes { host.output = [] }
            host.output.removeAll(keepingCapacity: true)
        }
        var sent = 0
        if !connection.isWriting {
            guard let count = send(connection, host.output) else { return false }
            if count == host.output.count, host.sharedOutput == nil { return true }
            sent = count
            connection.outputBlocked(sent: sent, host)
        }
        if sent < host.output.count { connection.pending.append(PendingOutput(bytes: Array(host.output[sent...]))) }
        if let shared = host.sharedOutput { connection.pending.append(PendingOutput(bytes: shared, isShared: true)) }
        if connection.pending.first?.isShared == true { return sendPending(connection) }
        // Bytes that the socket did not take are kept, within the bound of one connection.
        let kept = connection.pending.reduce(0) { $0 + ($1.isShared ? 0 : $1.bytes.count - $1.offset) }
        guard kept <= limits.waitingAnswerBytes else {
            close(connection, .memory)
            return false
        }
        host.account(connection)
        return true
    }

    /// Sends as much of the waiting output as the socket takes.
    /// - Returns: False if the connection was closed.
    private mutating func sendPending(_ connection: Connection) -> Bool {
        var sent = 0
        while let next = connection.pending.first {
            guard let count = send(connection, next.bytes, from: next.offset) else { return false }
            sent += count
            connection.pending[0].offset += count
            guard next.offset + count == next.bytes.count else {
                connection.outputBlocked(sent: sent, host)
                return true
            }
            connection.pending.removeFirst()
            host.account(connection)
        }
        connection.outputSent(host)
        return true
    }

    mutating func resumeSending(_ connection: Connection) {
        if sendPending(connection) { perform(connection) }
    }

    /// - Returns: The number of bytes that the socket took; nil if the connection was closed because of an error.
    private mutating func send(_ connection: Connection, _ bytes: [UInt8], from offset: Int = 0) -> Int? {
        let sent =
            connection.tls == nil
            ? Socket.send(connection.descriptor, bytes, from: offset) : sendTLS(connection, bytes, from: offset)
        switch sent {
        case .bytes(let count): return count
        case .wantRead, .wantWrite: return 0
        case .closed: close(connection, .disconnected)
        case .failed(let number): close(connection, Self.closeCause(of: number))
        }
        return nil
    }

    private mutating func perform(_ connection: Connection) {
        switch connection.next(&host) {
        case .close(let cause): return close(connection, cause)
        case .shutdownWrite:
            endTLS(connection)
            if platform_shutdown_write(connection.descriptor) < 0 { return close(connection, connection.closeCause) }
        case .resume: queue(connection)
        case .wait: break
        }
        let list = table.list(for: connection)
        // A busy connection keeps its place from the moment it became busy, whatever events follow.
        if !(list == .busy || connection.isHandshaking) || table.list(of: connection) != list {
            table.move(connection, to: list)
        }
        table.schedule(connection)
        updateInterest(connection)
        if connection.tls != nil {
            host.account(connection)
            // Decrypted bytes in memory do not make the socket readable.
            if Self.hasReadableTLS(connection) { queue(connection) }
        }
    }

    mutating func queue(_ connection: Connection) {
        if connection.isQueued { return }
        connection.isQueued = true
        continuing.append(connection)
    }

    mutating func updateInterest(_ connection: Connection) {
        let events =
            switch connection.tlsInterest ?? connection.interest {
            case .input: PLATFORM_READABLE_OR_ENDED
            case .outputSpace: PLATFORM_WRITABLE
            case .hangUp: PLATFORM_READ_HANG_UP
            case .nothing: 0
            }
        if events == connection.registeredEvents { return }
        let result = platform_epoll_modify(handle.poll, connection.descriptor, events, table.tag(of: connection))
        if result < 0 { return close(connection, .failed) }
        connection.registeredEvents = events
    }

    mutating func add(_ descriptor: Int32, from peer: Peer?, isOverLimit: Bool) {
        let id = HTTPServer.nextConnectionID.wrappingAdd(1, ordering: .relaxed).oldValue
        let connection = Connection(id: id, descriptor: descriptor, isOverLimit: isOverLimit, host)
        table.insert(connection, from: peer)
        if isOverShare(table.countOfPeer(connection)) { handle.hasPeerOverShare.store(true, ordering: .relaxed) }
        let result = platform_epoll_add(handle.poll, descriptor, PLATFORM_READABLE_OR_ENDED, table.tag(of: connection))
        if result < 0 { return close(connection, .failed) }
        connection.registeredEvents = PLATFORM_READABLE_OR_ENDED
        if tls != nil {
            // It uses no TLS memory before the first byte of its handshake, and no handshake waits for it.
            connection.phase = .silent
            connection.phaseDeadline = now + limits.handshakeDeadline
        }
        connection.beginDrain(host)
        host.account(connection)
        perform(connection)
    }

    /// Closes the socket (which removes it from the epoll set) and drops the connection.
    mutating func close(_ connection: Connection, _ cause: ConnectionCloseCause) {
        guard connection.slot >= 0 else { return }
        if connection.phase == .parked { host.handler.didAbandon(connection.request) }
        connection.releaseBuffer(&host)
        table.remove(connection)
        endTLS(connection)
        platform_close(connection.descriptor)
        didClose(cause)
    }

    private static func closeCause(of errorNumber: Int32) -> ConnectionCloseCause {
        [ECONNRESET, EPIPE, ETIMEDOUT].contains(errorNumber) ? .disconnected : .failed
    }
}
