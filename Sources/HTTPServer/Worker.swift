internal import OpenSSL
internal import Sockets
internal import Synchronization

/// What a worker is given before its loop begins: an epoll set, and bound sockets that stand in it.
struct WorkerDescriptors: Sendable {
    let handle: WorkerHandle
    let poll: Int32
    let listeners: [Listener]
}

/// One thread of a server: its listeners, its epoll set, its connections. It shares nothing while requests are served.
///
/// A value, for the reason ``ConnectionEngine`` is one.
struct Worker: ~Copyable {
    static let wakeTag = UInt64.max
    /// Tags from here on are listeners, counted down from ``wakeTag``; no slab has so many slots.
    static let firstListenerTag = UInt64.max - 1_000
    static let eventCapacity = 256
    /// Connections whose going is worth a look at the memory they leave: 128. Each of the few that stay may hold a page.
    private static let crowd = 128

    let limits: HTTPServerLimits
    let shared: WorkerShared
    let handle: WorkerHandle
    let system: SystemCalls
    var engine: ConnectionEngine
    /// Where bytes are received, for one event at a time.
    var receiveBuffer: RequestBuffer
    let poll: Int32
    var listeners: [Listener]
    var table = ConnectionTable()
    var peers = PeerTable()
    var wheel: TimerWheel
    /// The TLS settings in force; nil where the listeners speak plain HTTP.
    var tls: Published<TLSContext>.Copy?
    var resumeQueue: [Connection] = []
    var spareDescriptor: Int32
    var acceptPausedUntil = MonotonicInstant.never
    var acceptedCount: UInt64 = 0
    var now: MonotonicInstant
    /// When the events now handled were reported.
    var polledAt: MonotonicInstant
    private var events: ReadyEvents
    private var drainedAt: MonotonicInstant
    var isDraining = false
    var listenersCloseAt = MonotonicInstant.never
    var cutOffAt = MonotonicInstant.never
    var listenersAreRefusing = false
    /// What this worker's connections may take in memory, in bytes.
    let memoryShare: Int
    /// The most connections since memory was last given back.
    private var peakCount = 0
    /// The least that the connections held since memory last went back to the system.
    private var releasedBytes = 0

    /// - Parameter descriptors: They become the worker's own.
    init(
        _ descriptors: WorkerDescriptors,
        _ index: WorkerIndex,
        _ configuration: HTTPServerConfiguration,
        _ shared: WorkerShared,
        _ system: SystemCalls,
        handler: any HTTPRequestHandler
    ) {
        poll = descriptors.poll
        listeners = descriptors.listeners
        handle = descriptors.handle
        var limits = configuration.limits
        memoryShare = limits.connectionBytes / max(shared.runningWorkers.load(ordering: .relaxed), 1)
        limits.fitHandshakes(into: memoryShare)
        self.limits = limits
        self.shared = shared
        self.system = system
        tls = configuration.tls.map { Published.Copy($0) }
        engine = ConnectionEngine(limits: limits, worker: index, handler: handler)
        receiveBuffer = RequestBuffer(limits: limits.http, capacity: max(limits.receiveBytes, 1))
        handler.attach(RequestWaker(handle))
        now = MonotonicClock.now()
        polledAt = now
        drainedAt = now
        wheel = TimerWheel(now: now)
        spareDescriptor = system.makeSpareDescriptor()
        events = ReadyEvents(capacity: Self.eventCapacity)
    }

    /// Serves until stopped, then closes everything that is the worker's own.
    mutating func run() {
        while takeCommands() {
            turn()
        }
        closeEverything()
    }

    /// Waits for events and handles them, then everything that is due.
    private mutating func turn() {
        let before = now
        let count = Int(system.wait(poll, &events, timeoutMilliseconds: timeout()))
        now = MonotonicClock.now()
        polledAt = now
        engine.unixSeconds = WallClock.unixSeconds()
        // These events came after the last poll that reported all there were; after a real wait they came just now.
        let waited = now.nanoseconds(since: before) > 200_000
        engine.waitingSince = waited && count < Self.eventCapacity ? now : drainedAt
        if count < Self.eventCapacity { drainedAt = now }
        if count > 0 {
            for position in 0..<min(count, events.capacity) {
                handle(events[position])
                keepToShare()
            }
        }
        resumeQueued()
        handleDeadlines()
        beginWaitingHandshakes()
        engine.endTurn()
        publish()
        releaseMemory()
    }

    /// When half of a crowd has gone, its memory goes back to the system; so do the holes that buffers leave behind as
    /// they grow, each time the connections take a sixteenth of the share more.
    private mutating func releaseMemory() {
        peakCount = max(peakCount, table.count)
        releasedBytes = min(releasedBytes, engine.heldBytes)
        let halfIsGone = peakCount >= Self.crowd && table.count < peakCount / 2
        guard halfIsGone || engine.heldBytes > releasedBytes + memoryShare / 16 else { return }
        peakCount = table.count
        releasedBytes = engine.heldBytes
        system.releaseMemory()
    }

    private mutating func handle(_ event: (tag: UInt64, bits: UInt32)) {
        if event.tag == Self.wakeTag {
            handle.wake.take()
        } else if event.tag >= Self.firstListenerTag {
            let position = Int(event.tag - Self.firstListenerTag)
            if position < listeners.count { acceptReady(listeners[position]) }
        } else if let connection = table.find(tag: event.tag) {
            now = MonotonicClock.now()
            handle(connection, event.bits)
        }
    }

    /// Milliseconds until something is due, rounded up; -1 where nothing is, so that an idle server sleeps.
    private func timeout() -> Int32 {
        if !resumeQueue.isEmpty { return 0 }
        var next = min(wheel.nextDeadline() ?? .never, nextHandshakeTurn())
        next = min(next, acceptPausedUntil)
        next = min(next, listenersCloseAt, cutOffAt)
        if next == .never { return -1 }
        let left = next.nanoseconds(since: now)
        return Int32(min(left / 1_000_000 + 1, 86_400_000))
    }

    /// Pipelined requests whose connection used up its share of the last turn.
    private mutating func resumeQueued() {
        if resumeQueue.isEmpty { return }
        let queue = resumeQueue
        resumeQueue.removeAll(keepingCapacity: true)
        for connection in queue where connection.slot >= 0 {
            connection.isQueuedToResume = false
            if connection.tls == nil || !receivePendingTLS(connection) {
                engine.resume(connection, now: now)
                settle(connection)
            }
            keepToShare()
        }
    }

    private mutating func handleDeadlines() {
        if now >= acceptPausedUntil { resumeAccepting() }
        while let slot = wheel.popDue(now: now) {
            guard let connection = table.connection(at: slot) else { continue }
            if connection.deadline <= now {
                engine.deadlinePassed(connection, now: now)
                settle(connection)
                keepToShare()
            } else {
                wheel.schedule(slot, at: connection.deadline)
            }
        }
    }

    /// One writer, so plain stores do.
    func publish() {
        handle.counters.accepted.store(acceptedCount, ordering: .relaxed)
        handle.counters.requests.store(engine.requestCount, ordering: .relaxed)
        handle.counters.overloaded.store(engine.overloadedCount, ordering: .relaxed)
        handle.counters.open.store(table.count, ordering: .relaxed)
        handle.counters.idle.store(table.count(of: .idle), ordering: .relaxed)
        handle.counters.parked.store(table.count(of: .parked), ordering: .relaxed)
        handle.counters.heldBytes.store(engine.heldBytes, ordering: .relaxed)
    }
}

extension Worker {
    /// Called after whatever may make a connection hold more: one turn can fill thousands of them.
    mutating func keepToShare() {
        if engine.heldBytes > memoryShare { freeMemory() }
    }

    /// The connections hold more than the worker's share: those of a crowd from one peer address are closed first, then
    /// the largest, the oldest of equals first. A handshake is large for a moment, and their number is bounded: unless
    /// it is slow, it is closed last. It ends when a sixteenth of the share is free, so that not every byte that comes
    /// next costs a walk through all of them.
    private mutating func freeMemory() {
        let target = memoryShare - memoryShare / 16
        // One peer's many small connections must not close another's single larger one.
        let crowd = peers.greatest().flatMap { isCrowd($0.count) ? $0.peer : nil }
        var all: [(connection: Connection, inCrowd: Int, bytes: Int)] = []
        for connection in table.all() {
            let isOfCrowd = crowd.map { peers.isFrom($0, connection.slot) } ?? false
            let isBrief = connection.phase == .handshaking && !isSlow(connection)
            all.append((connection, isOfCrowd ? 1 : 0, isBrief ? 0 : connection.accountedBytes))
        }
        all.sort { ($1.inCrowd, $1.bytes, $0.connection.id) < ($0.inCrowd, $0.bytes, $1.connection.id) }
        for (connection, _, _) in all {
            if engine.heldBytes <= target { break }
            close(connection, .memory)
        }
    }
}
