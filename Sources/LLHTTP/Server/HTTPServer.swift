internal import CLLSystem
internal import Dispatch
internal import Synchronization

/// An HTTP/1.1 server: one worker for each processor, each with its own listener, epoll set and handler. The first worker
/// accepts the connections of a Unix socket and distributes them.
package final class HTTPServer: Sendable {
    package let configuration: HTTPServerConfiguration
    private let makeHandler: @Sendable (Int) -> any HTTPRequestHandler
    private let address = Locked<ListenAddress?>(nil)
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
        let count = max(1, configuration.workerCount ?? ProcessLimits.processorCount())
        var listeners: [Listener] = []
        var handles: [WorkerHandle] = []
        let address: ListenAddress
        do throws(SocketError) {
            address = try bind(count, &listeners)
            for index in 0..<count {
                handles.append(try WorkerHandle(index < listeners.count ? listeners[index] : nil))
            }
        } catch {
            for listener in listeners { listener.close() }
            for handle in handles { platform_close(handle.poll) }
            throw error
        }
        self.handles.withLock { $0 = handles }
        self.address.withLock { $0 = address }
        for (index, handle) in handles.enumerated() {
            // A queue of its own for each worker, which keeps one of Dispatch's threads until the worker ends.
            DispatchQueue(label: "http-worker-\(index)").async(group: workers) { [self] in
                var worker = Worker(handle, of: self, handler: makeHandler(index))
                worker.run()
            }
        }
    }

    /// Makes a listener on the port for each worker, with a queue of its own, or one on a Unix socket for the first worker.
    /// - Returns: The address, with the port that the system chose.
    private func bind(_ count: Int, _ listeners: inout [Listener]) throws(SocketError) -> ListenAddress {
        let backlog = configuration.limits.backlog
        switch configuration.address {
        case .unix(let path):
            listeners = [try Listener(on: path, mode: configuration.socketMode, backlog: backlog)]
            return configuration.address
        case .network(let address):
            var bound = address
            // SO_REUSEPORT would also share the port with another process of the same user, without an error.
            let claim = address.port == 0 ? -1 : try Socket.claim(on: address).release()
            defer { if claim >= 0 { platform_close(claim) } }
            for _ in 0..<count {
                let socket = try Socket.listener(on: bound, backlog: backlog, sharesPort: true)
                // Accepted sockets inherit the option, which saves one call per accept.
                socket.setNoDelay()
                bound = try socket.localAddress()
                listeners.append(Listener(descriptor: socket.release()))
            }
            return .network(bound)
        }
    }

    /// The bound address, with the port that the system chose; nil before ``start()``.
    package var localAddress: ListenAddress? { address.withLock { $0 } }

    /// 0 before ``start()``.
    package var workerCount: Int { handles.withLock { $0.count } }

    /// Makes every worker visit its parked requests; may be called on any thread.
    package func wakeParked() {
        for handle in handles.withLock({ $0 }) { handle.send(.wakeParked) }
    }

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

    /// Does the same without waiting for the end. The first call sets the time at which the listeners close, the last one
    /// the end of the grace.
    package func beginStop(drainDelay: Duration, grace: Duration) {
        let listenerClosesAt = MonotonicClock.now() + drainDelay
        stopHasBegun.store(true, ordering: .releasing)
        let stop = WorkerTask.stop(listenerClosesAt: listenerClosesAt, cutOffAt: listenerClosesAt + grace)
        for handle in handles.withLock({ $0 }) { handle.send(stop) }
    }

    /// Known once the server has ended.
    package var cutOffRequests: Int { cutOff.load(ordering: .relaxed) }

    package func waitUntilEnded() { workers.wait() }

    /// The number of a worker with a loop that has not run for longer than `limit`; nil if all run.
    package func stuckWorker(at now: MonotonicInstant, within limit: Duration) -> Int? {
        // Stopped workers end one after the other, so a silent worker is not a fault.
        isDraining ? nil : handles.withLock { $0 }.firstIndex { !$0.isRunning(at: now, within: limit) }
    }

    package var counters: HTTPServerCounters {
        var sum = HTTPServerCounters()
        for handle in handles.withLock({ $0 }) { handle.counters.withLock { sum.add($0) } }
        return sum
    }
}

/// Each worker publishes its counts at the end of a turn, and when a connection closes.
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

/// The cases are the metric's labels.
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

package struct HTTPServerConfiguration: Sendable {
    /// The address to listen on; port 0 lets the system choose (see ``HTTPServer/localAddress``).
    package var address: ListenAddress
    /// The permissions of a Unix socket.
    package var socketMode = UnixSocketMode.standard
    /// The number of workers, at least 1; nil: one for each processor this process may use.
    package var workerCount: Int?
    package var limits = HTTPServerLimits()
    /// Nil: the listener speaks plain HTTP.
    package var tls: Published<TLSContext>?

    package init(address: ListenAddress, workerCount: Int? = nil) {
        self.address = address
        self.workerCount = workerCount
    }
}

/// Every limit of the server beyond those of the grammar, with its default and the reason for it.
package struct HTTPServerLimits: Sendable, Equatable {
    package var http = HTTPLimits()
    /// TLS handshakes in progress on one worker: 256, since each holds up to 46 KiB; fewer if the worker's share of the
    /// memory is small. A connection counts once its first byte has come. Beyond the limit it waits until a handshake
    /// ends, or until one is older than ``slowHandshakeAge`` and is closed.
    package var handshakes = 256
    /// The part of ``handshakes`` for peers with more connections than their share (``peerShare``): three quarters.
    /// One peer's handshakes may all be slow, and then a quarter is left for all other peers.
    var overShareHandshakes: Int { handshakes - handshakes / 4 }
    /// A handshake older than this may be closed for a waiting one: 250 ms, two round trips for nearly every caller.
    package var slowHandshakeAge: Duration = .milliseconds(250)
    /// From the acceptance of a connection to the end of its TLS handshake: 5 s, absolute; then it is closed.
    package var handshakeDeadline: Duration = .seconds(5)
    /// From a request's first byte to the end of its head: 5 s, absolute, so that dripping bytes do not extend it; 408.
    package var headDeadline: Duration = .seconds(5)
    /// From the end of the head to the end of the body: 5 s, absolute; 408.
    package var bodyDeadline: Duration = .seconds(5)
    /// A write that makes no progress: 5 s; then the connection is closed.
    package var writeStall: Duration = .seconds(5)
    /// The progress that extends ``writeStall``: 4 KiB, so that a reader of single bytes does not hold a connection.
    package var writeProgressBytes = 4_096
    /// Between requests: 75 s, which must exceed the time that a balancer keeps an idle connection (AWS's: 60 s), else it
    /// sends a request into a connection that is just being closed.
    package var idleTimeout: Duration = .seconds(75)
    /// The greatest ``idleTimeout`` if clients show certificates: 240 s, so that an idle time and the last request
    /// still fit into ``verifiedConnectionAge``.
    package static let greatestVerifiedIdleTimeout: Duration = .seconds(240)
    /// Waiting for the peer's close after ours: 5 s and 256 KiB, so that the last answer is not lost to a reset.
    package var lingerTimeout: Duration = .seconds(5)
    package var lingerBytes = 262_144
    /// Requests on one connection: 10,000; the last is answered with `Connection: close`.
    package var requestsPerConnection = 10_000
    /// Age of a connection: 1 h; the next response carries `Connection: close`.
    package var connectionAge: Duration = .seconds(3_600)
    /// Connections of the whole server: 10,000; beyond it the oldest idle one is closed, else the new one gets 503.
    package var connections = 10_000
    /// The same if the listeners speak TLS: 4,000, since an idle connection then holds 12 KiB.
    package var secureConnections = 4_000
    /// When the server is at ``connections``, the peer address with the most connections makes room. If it has more
    /// than this share of them, 1/64, even one of its busy connections is closed for a connection from another address.
    package var peerShare = 64
    /// Peer addresses that stand for many clients, such as gateways. They never make room because of their number.
    package var trustedPeers: [AddressPrefix] = []
    /// The age of a connection with a client certificate: 5 min; then the client must show the certificate again. Its
    /// answers carry `Connection: close` as soon as the idle time and one more request might exceed this age.
    package var verifiedConnectionAge: Duration = .seconds(300)
    /// Connections held open beyond ``connections``, so that health checks are answered and other requests get 503: 64.
    package var reservedConnections = 64
    /// A connection with an incomplete request older than this may be closed for a new connection at the limit, or for
    /// memory before connections with newer requests: 1 s.
    package var slowRequestAge: Duration = .seconds(1)
    /// A request that has waited longer than this before the worker handles it is refused with 503: 100 ms, the time a
    /// caller notices.
    package var queueDelay: Duration = .milliseconds(100)
    /// Requests that one connection may send before other connections are served: 32.
    package var pipelineBudget = 32
    /// Response bytes gathered before they are sent: 32 KiB; parsing stops while they wait.
    package var outputBytes = 32_768
    /// Request bytes one connection holds: 96 KiB, above the greatest request that the grammar's limits allow. The
    /// worker receives no more while that many bytes wait. If none of them can be answered, the connection closes.
    package var requestBytes = 98_304
    /// Answer bytes that one connection holds for a client that does not read: 96 KiB, above the greatest answer
    /// together with those gathered before it. Beyond it the connection closes. Data shared among connections does not
    /// count.
    package var waitingAnswerBytes = 98_304
    /// The memory of all connections of the server: 32 MiB, half of the 64 MiB promised for the process. Each worker
    /// has an equal share. Beyond it connections are closed in the order of ``MemoryRank``.
    package var connectionBytes = 32 * 1_048_576
    /// The size of one receive: 16 KiB, more than any usual request.
    package var receiveBytes = 16_384
    /// Accepts per wake-up: 16, so that a flood of connections does not starve requests.
    package var acceptsPerWake = 16
    /// Pause of a listener when descriptors ran out: 100 ms.
    package var acceptPause: Duration = .milliseconds(100)
    /// Accept queue: 4,096; the system cuts it to `somaxconn`.
    package var backlog: Int32 = 4_096
    /// The time an idle connection waits, while the server stops, for a request already on its way: 500 ms.
    package var drainIdleWait: Duration = .milliseconds(500)
    /// The time for TCP handshakes that have begun before the listener closes: 50 ms, a round trip within
    /// a continent.
    package var drainHandshakeWait: Duration = .milliseconds(50)

    package init() {}

    /// Descriptors not used by the service's connections: 512, for connections to the administrative listener and those
    /// held beyond a limit (384), for calls to Facebook, the store and the backend, and for files.
    private static let otherDescriptors = 512
    /// Descriptors of one worker besides its connections: 8, for its epoll sets, listeners and wake-up signals.
    package static let workerDescriptors = 8

    /// Cuts ``connections``, so that descriptors are left for probes, calls and files, however many connections clients
    /// open. Each kind of connection gets at least a quarter of the `free` ones, which no other part needs.
    package mutating func leaveDescriptors(of descriptors: Int, workers: Int, free: Int) {
        let others = Self.otherDescriptors + Self.workerDescriptors * workers
        connections = min(connections, max(descriptors - others, free / 4))
        reservedConnections = min(reservedConnections, free / 4)
    }
}
