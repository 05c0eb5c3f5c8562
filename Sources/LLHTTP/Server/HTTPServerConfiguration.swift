package struct HTTPServerConfiguration: Sendable {
    /// The addresses to listen on; port 0 lets the system choose (see ``HTTPServer/localAddresses``).
    package var addresses: [ListenAddress]
    /// The permissions of Unix sockets among them.
    package var socketMode = UnixSocketMode.standard
    /// The number of workers, at least 1; nil: one for each processor this process may use.
    package var workerCount: Int?
    package var limits = HTTPServerLimits()
    /// The TLS settings of the listeners; nil: they speak plain HTTP.
    package var tls: Published<TLSContext>?

    package var plannedWorkers: Int { max(1, workerCount ?? ProcessLimits.processorCount()) }

    package init(addresses: [ListenAddress], workerCount: Int? = nil) {
        self.addresses = addresses
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

    package init() {}

    /// Cuts ``handshakes`` to seven eighths of a worker's share of the memory, so that handshakes wait before any is
    /// closed for memory. The least is 4, so that a quarter of them is one.
    mutating func fitHandshakes(into memoryShare: Int) {
        handshakes = min(handshakes, max(memoryShare / 8 * 7 / Connection.handshakeBytes, 4))
    }

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
