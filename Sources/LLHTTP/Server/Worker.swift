internal import CLLSystem
internal import Synchronization

/// One serial queue of a server: its listeners, its epoll set, its connections. It shares nothing while requests are served.
struct Worker: ~Copyable {
    static let wakeTag = UInt64.max
    /// Tags from this one on are listeners, counted down from ``wakeTag``; no slab has that many slots.
    static let firstListenerTag = UInt64.max - 1_000
    static let eventCapacity = 256
    /// Memory is freed after half of at least this many connections have closed: 128. Each of the few that stay may
    /// hold a page.
    private static let releaseThreshold = 128

    let limits: HTTPServerLimits
    let server: HTTPServer
    let handle: WorkerHandle
    var host: ConnectionHost
    var receiveBuffer: [UInt8]
    var listeners: [Listener]
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
    var listenersCloseAt = MonotonicInstant.never
    var cutOffAt = MonotonicInstant.never
    var listenersAreRefusing = false
    let workerCount: Int
    /// The memory that this worker's connections may hold, in bytes.
    let memoryShare: Int
    /// The greatest number of connections since memory was last returned to the system.
    private var peakCount = 0
    /// The least memory that the connections held since memory was last returned to the system.
    private var releasedBytes = 0

    init(_ handle: WorkerHandle, _ index: Int, of server: HTTPServer, handler: any HTTPRequestHandler) {
        listeners = handle.listeners
        self.handle = handle
        var limits = server.configuration.limits
        workerCount = max(server.handles.withLock { $0.count }, 1)
        memoryShare = limits.connectionBytes / workerCount
        limits.fitHandshakes(into: memoryShare)
        self.limits = limits
        self.server = server
        tls = server.configuration.tls.map { Published.Copy($0) }
        host = ConnectionHost(limits: limits, worker: index, handler: handler, now: MonotonicClock.now())
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
        let count = Int(SystemCalls.wait(handle.poll, &events, timeoutMilliseconds: timeout()))
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

    /// Returns memory to the system after half of many connections have closed. It does the same each time the connections
    /// hold a sixteenth of the share more, because growing buffers leave holes.
    private mutating func releaseMemory() {
        peakCount = max(peakCount, table.count)
        releasedBytes = min(releasedBytes, host.counters.heldBytes)
        let halfIsGone = peakCount >= Self.releaseThreshold && table.count < peakCount / 2
        guard halfIsGone || host.counters.heldBytes > releasedBytes + memoryShare / 16 else { return }
        peakCount = table.count
        releasedBytes = host.counters.heldBytes
        platform_release_memory()
    }

    private mutating func handle(_ event: platform_event) {
        if event.tag == Self.wakeTag {
            handle.wake.clear()
            handle.answerCheck()
        } else if event.tag >= Self.firstListenerTag {
            let position = Int(event.tag - Self.firstListenerTag)
            if position < listeners.count { acceptConnections(listeners[position], atMost: limits.acceptsPerWake) }
        } else if let connection = table.find(tag: event.tag) {
            now = MonotonicClock.now()
            handle(connection, event.events)
        }
    }

    /// Milliseconds until the next due time, rounded up; -1 if there is none, so that an idle server sleeps.
    private func timeout() -> Int32 {
        if !continuing.isEmpty { return 0 }
        let next = min(
            table.nextDeadline,
            handshakesWait ? nextHandshakeTurn() : .never,
            min(acceptPausedUntil, listenersCloseAt, cutOffAt, host.handler.willWait(at: now))
        )
        if next == .never { return -1 }
        let left = next.nanoseconds(since: now)
        return Int32(min(left / 1_000_000 + 1, 86_400_000))
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
        while let connection = table.popDue(now: now) {
            if connection.deadline <= now {
                connection.deadlinePassed(&host)
                flush(connection)
                keepToShare()
            } else {
                table.schedule(connection)
            }
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
}

extension Worker {
    /// The time for which a listener that refuses new connections stays open for TCP handshakes already begun.
    private static let handshakeWaitNanoseconds: UInt64 = 50_000_000

    /// Performs the tasks from other threads, and advances the stop.
    /// - Returns: False once the worker is done.
    mutating func takeCommands() -> Bool {
        let tasks = handle.takeTasks()
        for task in tasks {
            switch task {
            case .wakeParked:
                // All lists are searched: a parked request behind unsent output counts as busy.
                for connection in table.all() where connection.phase == .parked { queue(connection) }
            case .wake(let request):
                let connection = table.connection(at: request.slot)
                if let connection, connection.request == request { wake(connection) }
            case .serve(let descriptor): admit(descriptor, from: nil)
            case .makeRoom(let peer): makeRoomElsewhere(for: peer)
            case .stop(let closeAt, let cutOffAt):
                if !isDraining { listenersCloseAt = closeAt }
                self.cutOffAt = cutOffAt
                host.isDraining = true
            }
        }
        // The next wait may be long.
        if !tasks.isEmpty { publish() }
        if !isDraining { return true }
        now = MonotonicClock.now()
        if now >= listenersCloseAt {
            if listenersAreRefusing { closeListeners() } else { refuseNewConnections() }
        }
        if now >= cutOffAt { return false }
        return listenersCloseAt != .never || table.count > 0 || !handle.endTasks()
    }

    /// The drain delay is over: no new connection from now on, and idle ones close after a last moment.
    private mutating func refuseNewConnections() {
        listenersAreRefusing = true
        for listener in listeners {
            SystemCalls.refuseNewConnections(listener.descriptor, file: listener.file)
            guard listener.file != nil else { continue }
            // The listener refuses new connections; those already queued are served.
            acceptQueue(of: listener)
            _ = platform_epoll_remove(handle.poll, listener.descriptor)
        }
        let haveHandshakes = listeners.contains { $0.file == nil }
        listenersCloseAt = haveHandshakes ? now.adding(nanoseconds: Self.handshakeWaitNanoseconds) : now
        for connection in table.all() {
            connection.beginDrain(host)
            table.schedule(connection)
        }
    }

    /// The system has completed the connections in the accept queue, so their clients expect an answer and get one.
    private mutating func closeListeners() {
        for listener in listeners {
            acceptQueue(of: listener)
            _ = platform_epoll_remove(handle.poll, listener.descriptor)
            listener.close()
        }
        listeners.removeAll()
        listenersCloseAt = .never
        acceptPausedUntil = .never
    }

    private mutating func acceptQueue(of listener: Listener) {
        while acceptConnections(listener, atMost: limits.acceptsPerWake) {}
    }

    mutating func closeEverything() {
        var cutOff = 0
        for connection in table.all() {
            if ![.idle, .lingering].contains(connection.phase), !connection.isHandshaking { cutOff += 1 }
            close(connection, .stopped)
        }
        server.cutOff.wrappingAdd(cutOff, ordering: .relaxed)
        while !handle.endTasks() {
            for case .serve(let descriptor) in handle.takeTasks() { platform_close(descriptor) }
        }
        for listener in listeners { listener.close() }
        listeners.removeAll()
        platform_close(handle.poll)
        publish()
    }
}

enum WorkerTask {
    case wakeParked
    /// Visit this request, if it is still parked.
    case wake(ParkedRequest)
    /// Serve a connection that the first worker has accepted.
    case serve(Int32)
    /// Close a connection of the largest peer for one that another worker has admitted from this peer.
    case makeRoom(Peer?)
    case stop(listenersCloseAt: MonotonicInstant, cutOffAt: MonotonicInstant)
}

final class WorkerHandle: Sendable {
    let wake: WakeSignal
    /// The worker's own resources, made before its loop begins: an epoll set, and bound sockets that are in it.
    let poll: Int32
    let listeners: [Listener]
    /// The time of the check that the worker has not answered yet, in nanoseconds of the monotonic clock; 0 for none.
    private let checkedAt = Atomic<UInt64>(0)
    /// The tasks that the worker has not taken yet; nil once it ends.
    private let tasks = Locked<[WorkerTask]?>([])
    /// The worker's connections, with those that it has not taken yet.
    let load = Atomic<Int>(0)
    let hasPeerOverShare = Atomic<Bool>(false)
    let counters = Locked(HTTPServerCounters())

    init(_ listeners: [Listener]) throws(SocketError) {
        poll = platform_epoll_create()
        guard poll >= 0 else { throw SocketError(.createPoll, errorNumber: -poll) }
        wake = WakeSignal()
        if let failure = wake.error ?? Worker.register(poll, wake: wake.descriptor, listeners: listeners) {
            platform_close(poll)
            throw failure
        }
        self.listeners = listeners
    }

    /// False if the worker has not answered a check for longer than `limit`. Each check wakes the worker, and a later
    /// check sees the answer.
    func isRunning(at now: MonotonicInstant, within limit: Duration) -> Bool {
        let checked = checkedAt.load(ordering: .acquiring)
        guard checked == 0 else { return now <= MonotonicInstant(nanoseconds: checked) + limit }
        checkedAt.store(max(now.nanoseconds, 1), ordering: .releasing)
        wake.set()
        return true
    }

    func answerCheck() { checkedAt.store(0, ordering: .releasing) }

    /// - Returns: False if the worker takes no more tasks, or if `most` wait already.
    @discardableResult
    func send(_ task: WorkerTask, unless most: Int = .max) -> Bool {
        let isTaken = tasks.withLock { tasks in
            guard let count = tasks?.count, count < most else { return false }
            tasks?.append(task)
            return true
        }
        if isTaken { wake.set() }
        return isTaken
    }

    func takeTasks() -> [WorkerTask] {
        tasks.withLock { tasks in
            guard let taken = tasks else { return [] }
            tasks = []
            return taken
        }
    }

    /// Takes no more tasks.
    /// - Returns: False if one waits.
    func endTasks() -> Bool {
        tasks.withLock { tasks in
            if tasks?.isEmpty == true { tasks = nil }
            return tasks == nil
        }
    }
}
