internal import CLLSystem
internal import Dispatch
internal import Synchronization

/// An HTTP/1.1 server: one worker for each processor, each with its own listeners, epoll set and handler. The first worker
/// accepts the connections of a Unix socket and distributes them.
package final class HTTPServer: Sendable {
    package let configuration: HTTPServerConfiguration
    private let makeHandler: @Sendable (Int) -> any HTTPRequestHandler
    private let addresses = Locked<[ListenAddress]>([])
    private let workers = DispatchGroup()
    private let stopHasBegun = Atomic<Bool>(false)
    /// All workers, as other threads see them; empty before the start.
    let handles = Locked<[WorkerHandle]>([])
    let openConnections = Atomic<Int>(0)
    let cutOff = Atomic<Int>(0)
    /// Source of connection numbers, for all servers of the process: they identify requests.
    static let nextConnectionID = Atomic<UInt64>(1)

    /// - Parameter makeHandler: Makes the handler of the worker with the given number, on that worker's queue.
    package init(
        configuration: HTTPServerConfiguration,
        makeHandler: @escaping @Sendable (Int) -> any HTTPRequestHandler
    ) {
        var configuration = configuration
        let most = configuration.tls == nil ? .max : configuration.limits.secureConnections
        configuration.limits.connections = min(configuration.limits.connections, most)
        self.configuration = configuration
        self.makeHandler = makeHandler
    }

    /// Binds, listens and starts the workers; returns once connections are accepted. A server starts once. After an error
    /// nothing is left open, and it may be started again.
    package func start() throws(SocketError) {
        let listening = try ListenerSet(configuration, workerCount: configuration.plannedWorkers)
        var handles: [WorkerHandle] = []
        do throws(SocketError) {
            for listeners in listening.listeners { handles.append(try WorkerHandle(listeners)) }
        } catch {
            for listener in listening.listeners.joined() { listener.close() }
            for handle in handles { platform_close(handle.poll) }
            throw error
        }
        self.handles.withLock { $0 = handles }
        addresses.withLock { $0 = listening.addresses }
        for (index, handle) in handles.enumerated() {
            // A queue of its own for each worker, which keeps one of Dispatch's threads until the worker ends.
            DispatchQueue(label: "http-worker-\(index)").async(group: workers) { [self] in
                var worker = Worker(handle, index, of: self, handler: makeHandler(index))
                worker.run()
            }
        }
    }

    /// The bound addresses, with the ports the system chose; empty before ``start()``.
    package var localAddresses: [ListenAddress] { addresses.withLock { $0 } }

    /// The number of workers; 0 before ``start()``.
    package var workerCount: Int { handles.withLock { $0.count } }

    /// Makes every worker visit its parked requests; may be called on any thread.
    package func wakeParked() {
        for handle in handles.withLock({ $0 }) { handle.send(.wakeParked) }
    }

    /// True once ``stop(drainDelay:grace:)`` was called.
    package var isDraining: Bool { stopHasBegun.load(ordering: .acquiring) }

    /// Stops in order: draining at once, listeners closed after `drainDelay` with their queues emptied, then requests
    /// under way get `grace` to end. Returns when every worker has ended.
    /// - Returns: The number of connections that were cut off within a request.
    @discardableResult
    package func stop(drainDelay: Duration, grace: Duration) -> Int {
        beginStop(drainDelay: drainDelay, grace: grace)
        waitUntilEnded()
        return cutOffRequests
    }

    /// Does the same as ``stop(drainDelay:grace:)``, without waiting for the end. The first call sets the time at which
    /// the listeners close; the last call sets the end of the grace.
    package func beginStop(drainDelay: Duration, grace: Duration) {
        let listenersCloseAt = MonotonicClock.now() + drainDelay
        stopHasBegun.store(true, ordering: .releasing)
        let stop = WorkerTask.stop(listenersCloseAt: listenersCloseAt, cutOffAt: listenersCloseAt + grace)
        for handle in handles.withLock({ $0 }) { handle.send(stop) }
    }

    /// The number of connections cut off within a request, known once the server has ended.
    package var cutOffRequests: Int { cutOff.load(ordering: .relaxed) }

    package func waitUntilEnded() { workers.wait() }

    /// The number of a worker with a loop that has not run for longer than `limit`; nil if all run.
    package func stuckWorker(at now: MonotonicInstant, within limit: Duration) -> Int? {
        // Stopped workers end one after the other, so a silent worker is not a fault.
        if isDraining { return nil }
        return handles.withLock { $0 }.firstIndex { handle in
            !handle.isRunning(at: now, within: limit)
        }
    }

    package var counters: HTTPServerCounters {
        var sum = HTTPServerCounters()
        for handle in handles.withLock({ $0 }) { handle.counters.withLock { sum.add($0) } }
        return sum
    }
}

/// The listeners of each worker: one on each TCP port, with its own queue; the first worker has those on Unix sockets.
struct ListenerSet {
    private(set) var listeners: [[Listener]]
    private(set) var addresses: [ListenAddress] = []

    /// Binds everything, or nothing.
    init(_ configuration: HTTPServerConfiguration, workerCount: Int) throws(SocketError) {
        listeners = Array(repeating: [], count: workerCount)
        let backlog = configuration.limits.backlog
        do throws(SocketError) {
            for address in configuration.addresses {
                switch address {
                case .network(let address): try add(address, backlog: backlog)
                case .unix(let path): try add(path, mode: configuration.socketMode, backlog: backlog)
                }
            }
        } catch {
            for listener in listeners.joined() { listener.close() }
            throw error
        }
    }

    private mutating func add(_ address: SocketAddress, backlog: Int32) throws(SocketError) {
        var bound = address
        // SO_REUSEPORT would also share the port with another process of the same user, without an error.
        let claim = address.port == 0 ? -1 : try Socket.claim(on: address).release()
        defer { if claim >= 0 { platform_close(claim) } }
        for worker in listeners.indices {
            let socket = try Socket.listener(on: bound, backlog: backlog, sharesPort: true)
            // Accepted sockets inherit the option, which saves one call per accept.
            socket.setNoDelay()
            if worker == 0 { bound = try socket.localAddress() }
            listeners[worker].append(Listener(descriptor: socket.release(), file: nil))
        }
        addresses.append(.network(bound))
    }

    private mutating func add(_ path: UnixSocketPath, mode: UnixSocketMode, backlog: Int32) throws(SocketError) {
        listeners[0].append(try Listener(on: path, mode: mode, backlog: backlog))
        addresses.append(.unix(path))
    }
}

struct Listener: Sendable {
    /// The worker closes it.
    let descriptor: Int32
    /// The file of a Unix socket: its connections are for all workers. Nil for a port, where each worker has its own queue
    /// (`SO_REUSEPORT`).
    let file: UnixSocketFile?

    /// Closes the socket. The file is removed first: no other process takes the path while a socket listens.
    func close() {
        file?.remove()
        platform_close(descriptor)
    }
}

/// Counts of a server, summed over its workers. Each worker publishes its own at the end of a turn, and when a connection
/// closes.
package struct HTTPServerCounters: Equatable, Sendable {
    package var accepted: UInt64 = 0
    /// Requests with a response encoded since the start.
    package var requests: UInt64 = 0
    package var open = 0
    package var idle = 0
    package var parked = 0
    /// Connections with a request or response under way.
    package var active: Int { max(0, open - idle - parked) }
    package var heldBytes = 0
    /// Requests refused for overload since the start, and pauses for want of descriptors.
    package var overloaded: UInt64 = 0
    package var closed: [ConnectionCloseCause: UInt64] = [:]

    package func closed(_ cause: ConnectionCloseCause) -> UInt64 { closed[cause] ?? 0 }

    mutating func add(_ other: HTTPServerCounters) {
        accepted += other.accepted
        requests += other.requests
        open += other.open
        idle += other.idle
        parked += other.parked
        heldBytes += other.heldBytes
        overloaded += other.overloaded
        closed.merge(other.closed, uniquingKeysWith: +)
    }
}

/// The reason why a connection ended. The cases are the metric's labels.
package enum ConnectionCloseCause: String, CaseIterable, Sendable {
    /// The client closed between requests.
    case client
    /// A response said `Connection: close`.
    case finished
    /// The client went away within a request or response.
    case disconnected
    /// No byte came between requests for too long.
    case idle
    /// Head or body did not arrive in time.
    case requestTimeout = "request_timeout"
    /// The client did not read its response.
    case writeStalled = "write_stalled"
    /// The TLS handshake failed or took too long.
    case handshake = "tls_handshake"
    case refused
    /// Closed to make room for a new connection, or refused at the limit.
    case limit
    /// The connection exceeded the memory of one connection, or was closed because all connections together did.
    case memory
    /// Closed to make room: its peer address had the most connections.
    case peer = "peer_limit"
    case stopped
    case failed
}
