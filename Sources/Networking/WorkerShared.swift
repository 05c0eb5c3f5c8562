internal import Synchronization

/// What the workers of a server and its other threads share: commands to the workers, and counts from them. Nothing
/// here is touched while a request is served, save the connection count when one opens or closes.
final class WorkerShared: Sendable {
    /// Connections open on all workers.
    let openConnections = Atomic<Int>(0)
    /// Source of connection numbers.
    let nextConnectionID = Atomic<UInt64>(1)
    /// Workers still running.
    let runningWorkers = Atomic<Int>(0)
    /// Requests cut off by stopping.
    let cutOffRequests = Atomic<Int>(0)
    let isDraining = Atomic<Bool>(false)
    /// When the listeners close, and when what is left is cut off; in nanoseconds of the monotonic clock.
    let listenersCloseAt = Atomic<UInt64>(.max)
    let cutOffAt = Atomic<UInt64>(.max)
    let isStoppingNow = Atomic<Bool>(false)
}

/// One worker as other threads see it.
final class WorkerHandle: Sendable {
    /// An event descriptor that wakes the worker; it lives as long as this value.
    let wakeDescriptor: Int32
    /// Set where the worker must visit its parked requests.
    let mustWakeParked = Atomic<Bool>(false)
    let counters = WorkerCounters()
    private let system: SystemCalls

    init(wakeDescriptor: Int32, system: SystemCalls) {
        self.wakeDescriptor = wakeDescriptor
        self.system = system
    }

    /// Makes the worker's wait end at once.
    func signal() {
        system.signal(wakeDescriptor)
    }

    deinit {
        system.close(wakeDescriptor)
    }
}

/// The counts of one worker: written by it alone once a turn, read by any thread.
final class WorkerCounters: Sendable {
    private let accepted = Atomic<UInt64>(0)
    private let requests = Atomic<UInt64>(0)
    private let overloaded = Atomic<UInt64>(0)
    private let open = Atomic<Int>(0)
    private let idle = Atomic<Int>(0)
    private let parked = Atomic<Int>(0)
    private let closed: [ClosedCount]

    /// A box, since an atomic cannot stand in an array by itself.
    private final class ClosedCount: Sendable {
        let value = Atomic<UInt64>(0)
    }

    init() {
        closed = ConnectionCloseCause.allCases.map { _ in ClosedCount() }
    }

    /// One writer, so plain stores do.
    func publish(_ counters: HTTPServerCounters) {
        accepted.store(counters.accepted, ordering: .relaxed)
        requests.store(counters.requests, ordering: .relaxed)
        overloaded.store(counters.overloaded, ordering: .relaxed)
        open.store(counters.open, ordering: .relaxed)
        idle.store(counters.idle, ordering: .relaxed)
        parked.store(counters.parked, ordering: .relaxed)
    }

    func didClose(_ cause: ConnectionCloseCause) {
        let count = closed[Int(cause.rawValue)]
        count.value.store(count.value.load(ordering: .relaxed) + 1, ordering: .relaxed)
    }

    func add(to sum: inout HTTPServerCounters) {
        sum.accepted += accepted.load(ordering: .relaxed)
        sum.requests += requests.load(ordering: .relaxed)
        sum.overloaded += overloaded.load(ordering: .relaxed)
        sum.open += open.load(ordering: .relaxed)
        sum.idle += idle.load(ordering: .relaxed)
        sum.parked += parked.load(ordering: .relaxed)
        for index in closed.indices {
            sum.closed[index] += closed[index].value.load(ordering: .relaxed)
        }
    }
}
