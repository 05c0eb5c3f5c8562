internal import Sockets
internal import Synchronization

/// What the workers of a server and its other threads share: commands to the workers, and counts from them. Nothing
/// here is touched while a request is served, save the connection count when one opens or closes.
final class WorkerShared: Sendable {
    /// Connections open on all workers.
    let openConnections = Atomic<Int>(0)
    /// Source of connection numbers, for all servers of the process: requests are named by them.
    static let nextConnectionID = Atomic<UInt64>(1)
    let runningWorkers = Atomic<Int>(0)
    /// All workers, as the other threads see them; empty before the start.
    let handles = Locked<[WorkerHandle]>([])
    /// Requests cut off by stopping.
    let cutOffRequests = Atomic<Int>(0)
    let isDraining = Atomic<Bool>(false)
    /// When the listeners close, and when what is left is cut off; in nanoseconds of the monotonic clock.
    let listenersCloseAt = Atomic<UInt64>(.max)
    let cutOffAt = Atomic<UInt64>(.max)
}

/// What other threads ask of a worker.
struct WorkerCommand: OptionSet {
    let rawValue: UInt8

    /// To visit all its parked requests.
    static let wakeParked = WorkerCommand(rawValue: 1)
    /// To visit some of them, by ``WorkerHandle/takeRequestsToWake()``.
    static let wakeRequests = WorkerCommand(rawValue: 2)
    /// To take connections from a shared queue again.
    static let returnToLine = WorkerCommand(rawValue: 4)
}

/// One worker as other threads see it.
final class WorkerHandle: Sendable {
    let wake: WakeSignal
    /// What the worker must do besides serving, as bits of ``WorkerCommand``; nearly always 0.
    private let commands = Atomic<UInt8>(0)
    /// The parked requests to be visited again by themselves.
    private let requestsToWake = Locked<[ParkedRequest]>([])
    let counters = WorkerCounters()
    /// The worker leaves a queue that all share to the others for a moment.
    let isOutOfLine = Atomic<Bool>(false)

    init(wake: WakeSignal) { self.wake = wake }

    /// Has the worker visit this request again, if it is still parked then.
    func wake(_ request: ParkedRequest) {
        requestsToWake.withLock { $0.append(request) }
        give(.wakeRequests)
    }

    func give(_ command: WorkerCommand) {
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
    let accepted = Atomic<UInt64>(0)
    let requests = Atomic<UInt64>(0)
    let overloaded = Atomic<UInt64>(0)
    let open = Atomic<Int>(0)
    let idle = Atomic<Int>(0)
    let parked = Atomic<Int>(0)
    let heldBytes = Atomic<Int>(0)
    private let closed = Locked<[ConnectionCloseCause: UInt64]>([:])

    /// A connection has been closed; the lock is the worker's own, but for the moment of being read.
    func didClose(_ cause: ConnectionCloseCause) { closed.withLock { $0[cause, default: 0] += 1 } }

    func add(to sum: inout HTTPServerCounters) {
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
