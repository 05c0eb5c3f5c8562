internal import LLSockets
internal import Synchronization

/// One serial queue of a server: its listeners, its epoll set, its connections. It shares nothing while requests are served.
///
/// It is a value for the same reason as ``ConnectionEngine``.
struct Worker: ~Copyable {
    static let wakeTag = UInt64.max
    /// Tags from this one on are listeners, counted down from ``wakeTag``; no slab has that many slots.
    static let firstListenerTag = UInt64.max - 1_000
    static let eventCapacity = 256
    /// Memory is freed after half of at least this many connections have closed: 128. Each of the few that stay may
    /// hold a page.
    private static let releaseThreshold = 128

    let limits: HTTPServerLimits
    let shared: WorkerShared
    let handle: WorkerHandle
    let system: SystemCalls
    var engine: ConnectionEngine
    /// The memory that receives bytes, for one event at a time.
    var receiveBuffer: [UInt8]
    let poll: Int32
    var listeners: [Listener]
    var table = ConnectionTable()
    var deadlines = DeadlineList()
    /// The current TLS settings; nil if the listeners speak plain HTTP.
    var tls: Published<TLSContext>.Copy?
    var resumeQueue: [Connection] = []
    var spareDescriptor: Int32
    var acceptPausedUntil = MonotonicInstant.never
    var acceptedCount: UInt64 = 0
    var now: MonotonicInstant
    /// The moment at which the current events were reported.
    var polledAt: MonotonicInstant
    private var events: ReadyEvents
    private var drainedAt: MonotonicInstant
    var isDraining = false
    var listenersCloseAt = MonotonicInstant.never
    var cutOffAt = MonotonicInstant.never
    var listenersAreRefusing = false
    /// The memory that this worker's connections may hold, in bytes.
    let memoryShare: Int
    /// The greatest number of connections since memory was last returned to the system.
    private var peakCount = 0
    /// The least memory that the connections held since memory was last returned to the system.
    private var releasedBytes = 0

    init(
        _ handle: WorkerHandle,
        _ index: Int,
        _ configuration: HTTPServerConfiguration,
        _ shared: WorkerShared,
        _ system: SystemCalls,
        handler: any HTTPRequestHandler
    ) {
        poll = handle.poll
        listeners = handle.listeners
        self.handle = handle
        var limits = configuration.limits
        memoryShare = limits.connectionBytes / max(shared.runningWorkers.load(ordering: .relaxed), 1)
        limits.fitHandshakes(into: memoryShare)
        self.limits = limits
        self.shared = shared
        self.system = system
        tls = configuration.tls.map { Published.Copy($0) }
        engine = ConnectionEngine(limits: limits, worker: index, handler: handler)
        receiveBuffer = [UInt8](repeating: 0, count: max(limits.receiveBytes, 1))
        handler.attach(RequestWaker(handle))
        now = MonotonicClock.now()
        polledAt = now
        drainedAt = now
        spareDescriptor = system.makeSpareDescriptor()
        events = ReadyEvents(capacity: Self.eventCapacity)
    }

    /// Serves until stopped, then closes everything that belongs to the worker.
    mutating func run() {
        while takeCommands() {
            runOnce()
        }
        closeEverything()
    }

    /// Waits for events and handles them, then handles all that is due.
    private mutating func runOnce() {
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

    /// Returns memory to the system after half of many connections have closed. It does the same each time the connections
    /// hold a sixteenth of the share more, because growing buffers leave holes.
    private mutating func releaseMemory() {
        peakCount = max(peakCount, table.count)
        releasedBytes = min(releasedBytes, engine.heldBytes)
        let halfIsGone = peakCount >= Self.releaseThreshold && table.count < peakCount / 2
        guard halfIsGone || engine.heldBytes > releasedBytes + memoryShare / 16 else { return }
        peakCount = table.count
        releasedBytes = engine.heldBytes
        system.releaseMemory()
    }

    private mutating func handle(_ event: (tag: UInt64, bits: UInt32)) {
        if event.tag == Self.wakeTag {
            handle.wake.clear()
            handle.answerCheck()
        } else if event.tag >= Self.firstListenerTag {
            let position = Int(event.tag - Self.firstListenerTag)
            if position < listeners.count { acceptReady(listeners[position]) }
        } else if let connection = table.find(tag: event.tag) {
            now = MonotonicClock.now()
            handle(connection, event.bits)
        }
    }

    /// Milliseconds until the next due time, rounded up; -1 if there is none, so that an idle server sleeps.
    private func timeout() -> Int32 {
        if !resumeQueue.isEmpty { return 0 }
        let next = min(
            deadlines.nextDeadline() ?? .never,
            nextHandshakeTurn(),
            min(acceptPausedUntil, listenersCloseAt, cutOffAt, engine.handler.willWait(at: now))
        )
        if next == .never { return -1 }
        let left = next.nanoseconds(since: now)
        return Int32(min(left / 1_000_000 + 1, 86_400_000))
    }

    /// Continues with pipelined requests of connections that used up their share of the last turn.
    private mutating func resumeQueued() {
        if resumeQueue.isEmpty { return }
        let queue = resumeQueue
        resumeQueue.removeAll(keepingCapacity: true)
        for connection in queue where connection.slot >= 0 {
            connection.isQueuedToResume = false
            if connection.tls == nil || !receivePendingTLS(connection) {
                engine.resume(connection, now: now)
                flush(connection)
            }
            keepToShare()
        }
    }

    private mutating func handleDeadlines() {
        if now >= acceptPausedUntil { resumeAccepting() }
        while let slot = deadlines.popDue(now: now) {
            guard let connection = table.connection(at: slot) else { continue }
            if connection.deadline <= now {
                engine.deadlinePassed(connection, now: now)
                flush(connection)
                keepToShare()
            } else {
                deadlines.schedule(slot, at: connection.deadline)
            }
        }
    }

    /// Only the worker writes the counts, so plain stores suffice.
    func publish() {
        handle.accepted.store(acceptedCount, ordering: .relaxed)
        handle.requests.store(engine.requestCount, ordering: .relaxed)
        handle.overloaded.store(engine.overloadedCount, ordering: .relaxed)
        handle.open.store(table.count, ordering: .relaxed)
        handle.idle.store(table.count(of: .idle), ordering: .relaxed)
        handle.parked.store(table.count(of: .parked), ordering: .relaxed)
        handle.heldBytes.store(engine.heldBytes, ordering: .relaxed)
    }

    /// Called after each step that may make a connection hold more: one turn can fill thousands of them.
    mutating func keepToShare() {
        if engine.heldBytes > memoryShare { freeMemory() }
    }
}

/// The state shared by the workers of a server and its other threads: commands to the workers, and counts from them. It
/// is not touched while a request is served, except for the connection count when one opens or closes.
final class WorkerShared: Sendable {
    let openConnections = Atomic<Int>(0)
    /// Source of connection numbers, for all servers of the process: they identify requests.
    static let nextConnectionID = Atomic<UInt64>(1)
    let runningWorkers = Atomic<Int>(0)
    /// All workers, as other threads see them; empty before the start.
    let handles = Locked<[WorkerHandle]>([])
    let cutOffRequests = Atomic<Int>(0)
    let isDraining = Atomic<Bool>(false)
    /// The moments at which the listeners close and at which open requests are cut off; in nanoseconds of the monotonic
    /// clock.
    let listenersCloseAt = Atomic<UInt64>(.max)
    let cutOffAt = Atomic<UInt64>(.max)
}

struct WorkerCommand: OptionSet {
    let rawValue: UInt8

    static let wakeParked = WorkerCommand(rawValue: 1)
    /// Visit some parked requests, those of ``WorkerHandle/takeRequestsToWake()``.
    static let wakeRequests = WorkerCommand(rawValue: 2)
    /// Take connections from a shared queue again.
    static let resumeForOthers = WorkerCommand(rawValue: 4)
    /// Close connections of the largest peer, for those of ``WorkerHandle/takeNewcomers()``.
    static let makeRoom = WorkerCommand(rawValue: 8)
}

/// One worker as other threads see it.
final class WorkerHandle: Sendable {
    let wake: WakeSignal
    /// The worker's own resources, made before its loop begins: an epoll set, and bound sockets that are in it.
    let poll: Int32
    let listeners: [Listener]
    /// The time of the check that the worker has not answered yet, in nanoseconds of the monotonic clock; 0 for none.
    private let checkedAt = Atomic<UInt64>(0)
    /// The worker's commands besides serving, as bits of ``WorkerCommand``; nearly always 0.
    private let commands = Atomic<UInt8>(0)
    /// The parked requests that are to be visited again one by one.
    private let requestsToWake = Locked<[ParkedRequest]>([])
    /// The peers of connections that other workers have admitted at the limit.
    private let newcomers = Locked<[Peer?]>([])
    /// True if one peer had more connections here than its share at the last check.
    let hasPeerOverShare = Atomic<Bool>(false)
    /// True while the worker leaves a shared queue to the other workers.
    let isPausedForOthers = Atomic<Bool>(false)

    // Counts, written by the worker alone once a turn, read by any thread.
    let accepted = Atomic<UInt64>(0)
    let requests = Atomic<UInt64>(0)
    let overloaded = Atomic<UInt64>(0)
    let open = Atomic<Int>(0)
    let idle = Atomic<Int>(0)
    let parked = Atomic<Int>(0)
    let heldBytes = Atomic<Int>(0)
    private let closed = Locked<[ConnectionCloseCause: UInt64]>([:])

    init(wake: WakeSignal, poll: Int32, listeners: [Listener]) {
        self.wake = wake
        self.poll = poll
        self.listeners = listeners
    }

    /// Makes the worker visit this request again, if it is still parked then.
    func wake(_ request: ParkedRequest) {
        requestsToWake.withLock { $0.append(request) }
        send(.wakeRequests)
    }

    /// Makes the worker close a connection of its largest peer for one that another worker admits.
    /// - Returns: False if `most` peers wait for that already.
    func makeRoom(for peer: Peer?, atMost most: Int) -> Bool {
        let isTaken = newcomers.withLock { newcomers in
            guard newcomers.count < most else { return false }
            newcomers.append(peer)
            return true
        }
        if isTaken { send(.makeRoom) }
        return isTaken
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

    func send(_ command: WorkerCommand) {
        commands.bitwiseOr(command.rawValue, ordering: .acquiringAndReleasing)
        wake.set()
    }

    /// Takes the pending commands; one relaxed load if there are none.
    func takeCommands() -> WorkerCommand {
        guard commands.load(ordering: .relaxed) != 0 else { return [] }
        return WorkerCommand(rawValue: commands.exchange(0, ordering: .acquiringAndReleasing))
    }

    /// The requests to be visited again, in the order of their wake calls.
    func takeRequestsToWake() -> [ParkedRequest] { requestsToWake.withLock { Self.takeAll(&$0) } }

    func takeNewcomers() -> [Peer?] { newcomers.withLock { Self.takeAll(&$0) } }

    private static func takeAll<Element>(_ list: inout [Element]) -> [Element] {
        defer { list = [] }
        return list
    }

    /// A connection has been closed. Only the worker takes the lock, except while the counts are read.
    func didClose(_ cause: ConnectionCloseCause) { closed.withLock { $0[cause, default: 0] += 1 } }

    func addCounts(to sum: inout HTTPServerCounters) {
        sum.accepted += accepted.load(ordering: .relaxed)
        sum.requests += requests.load(ordering: .relaxed)
        sum.overloaded += overloaded.load(ordering: .relaxed)
        sum.open += open.load(ordering: .relaxed)
        sum.idle += idle.load(ordering: .relaxed)
        sum.parked += parked.load(ordering: .relaxed)
        sum.heldBytes += heldBytes.load(ordering: .relaxed)
        sum.closed.merge(closed.withLock { $0 }, uniquingKeysWith: +)
    }
}
