internal import Sockets
internal import Synchronization

/// What the workers of a server and its other threads share: commands to the workers, and counts from them. Nothing
/// here is touched while a request is served, save the connection count when one opens or closes.
final class WorkerShared: Sendable {
    /// Connections open on all workers.
    let openConnections = Atomic<Int>(0)
    /// Source of connection numbers, for all servers of the process: requests are named by them.
    static let nextConnectionID = Atomic<UInt64>(1)
    /// Workers still running.
    let runningWorkers = Atomic<Int>(0)
    /// All workers, as the other threads see them; empty before the start.
    let handles = Locked<[WorkerHandle]>([])
    /// Requests cut off by stopping.
    let cutOffRequests = Atomic<Int>(0)
    let isDraining = Atomic<Bool>(false)
    /// When the listeners close, and when what is left is cut off; in nanoseconds of the monotonic clock.
    let listenersCloseAt = Atomic<UInt64>(.max)
    let cutOffAt = Atomic<UInt64>(.max)
    let isStoppingNow = Atomic<Bool>(false)
}

/// What other threads ask of a worker.
struct WorkerCommand: OptionSet {
    let rawValue: UInt8

    static let wakeParked = WorkerCommand(rawValue: 1)
    static let wakeRequests = WorkerCommand(rawValue: 2)
    static let returnToLine = WorkerCommand(rawValue: 4)
}

/// One worker as other threads see it.
final class WorkerHandle: Sendable {
    /// Wakes the worker.
    let wake: WakeSignal
    /// What the worker must do besides serving, as bits of ``WorkerCommand``; nearly always 0.
    private let commands = Atomic<UInt8>(0)
    /// The parked requests to be visited again by themselves.
    private let requestsToWake = Locked<[ParkedRequest]>([])
    let counters = WorkerCounters()
    /// The worker leaves a queue that all share to the others for a moment.
    let isOutOfLine = Atomic<Bool>(false)

    init(wake: WakeSignal) { self.wake = wake }

    /// Has the worker visit all its parked requests.
    func wakeParked() { give(.wakeParked) }

    /// Has the worker visit this request again, if it is still parked then.
    func wake(_ request: ParkedRequest) {
        requestsToWake.withLock { $0.append(request) }
        give(.wakeRequests)
    }

    /// Has the worker take connections from a shared queue again.
    func callBack() { give(.returnToLine) }

    private func give(_ command: WorkerCommand) {
        commands.bitwiseOr(command.rawValue, ordering: .acquiringAndReleasing)
        wake.give()
    }

    /// Takes the pending commands; one relaxed load where there are none.
    func takeCommands() -> WorkerCommand {
        guard commands.load(ordering: .relaxed) != 0 else { return [] }
        return WorkerCommand(rawValue: commands.exchange(0, ordering: .acquiringAndReleasing))
    }

    /// The requests to be visited again, in the order they were named.
    func takeRequestsToWake() -> [ParkedRequest] {
        requestsToWake.withLock { requests in
            defer { requests = [] }
            return requests
        }
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
    private let heldBytes = Atomic<Int>(0)
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
        heldBytes.store(counters.heldBytes, ordering: .relaxed)
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
        sum.heldBytes += heldBytes.load(ordering: .relaxed)
        for index in closed.indices {
            sum.closed[index] += closed[index].value.load(ordering: .relaxed)
        }
    }
}
