package import LLHTTP1
package import LLSockets

/// What an ``HTTPServer`` needs to know.
package struct HTTPServerConfiguration: Sendable {
    /// Where to listen; port 0 lets the system choose (see ``HTTPServer/localAddresses``).
    package var addresses: [ListenAddress]
    /// The permissions of Unix sockets among them.
    package var socketMode: UnixSocketMode
    /// Worker threads, at least 1; nil: one for each processor this process may use.
    package var workerCount: Int?
    package var limits: HTTPServerLimits
    /// The TLS settings of the listeners; nil: they speak plain HTTP.
    package var tls: Published<TLSContext>?

    /// How many workers it will have.
    package var plannedWorkers: Int { max(1, workerCount ?? ProcessLimits.processorCount()) }

    package init(
        addresses: [ListenAddress],
        socketMode: UnixSocketMode = .standard,
        workerCount: Int? = nil,
        limits: HTTPServerLimits = HTTPServerLimits(),
        tls: Published<TLSContext>? = nil
    ) {
        self.addresses = addresses
        self.socketMode = socketMode
        self.workerCount = workerCount
        self.limits = limits
        self.tls = tls
    }
}

/// Every limit of the server beyond the grammar's own, with its default and the reason for it.
package struct HTTPServerLimits: Sendable, Equatable {
    package var http = HTTPLimits()
    /// TLS handshakes under way on one worker: 256, since each holds up to 46 KiB; fewer where its share of the memory
    /// is small. A connection counts once its first byte has come; beyond the limit it waits until one ends, or is
    /// older than ``slowHandshakeAge`` and closed.
    package var handshakes = 256
    /// Those of them for peers with more connections than their share (``crowdShare``): three quarters, so that one peer's
    /// handshakes, which may all be slow, leave a quarter to everybody else's.
    var crowdHandshakes: Int { handshakes - handshakes / 4 }
    /// A handshake older than this may be closed for one that waits: 250 ms, two round trips of nearly every caller.
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
    /// The greatest ``idleTimeout`` where clients show certificates: 240 s, so that an idle time and the last request still fit
    /// into ``verifiedConnectionAge``.
    package static let greatestVerifiedIdleTimeout: Duration = .seconds(240)
    /// Waiting for the peer's close after ours: 5 s and 256 KiB, so that the last answer is not lost to a reset.
    package var lingerTimeout: Duration = .seconds(5)
    package var lingerBytes = 262_144
    /// Rest of a body nobody asked for: up to 64 KiB is read and dropped, beyond it the connection closes.
    package var discardedBodyBytes = 65_536
    /// Requests on one connection: 10,000; the last is answered with `Connection: close`.
    package var requestsPerConnection = 10_000
    /// Age of a connection: 1 h; the next response carries `Connection: close`.
    package var connectionAge: Duration = .seconds(3_600)
    /// Connections of the whole server: 10,000; beyond it the oldest idle one is closed, else the new one gets 503.
    package var connections = 10_000
    /// The same where the listeners speak TLS: 4,000, since a connection then holds 12 KiB when idle.
    package var secureConnections = 4_000
    /// When ``connections`` are there, the peer address with the most makes room. Where it has more than this share of them,
    /// 1/64, even a busy connection of it is closed for one from elsewhere.
    package var crowdShare = 64
    /// Of that peer's connections, so many are looked at, oldest first, for one that is idle or slow: 64.
    package var crowdLooks = 64
    /// Peer addresses that are no one client, such as gateways: they never make room for being many.
    package var trustedPeers: [AddressPrefix] = []
    /// Age of a connection whose client showed a certificate: 5 min, after which it must show it anew. Its answers say
    /// `Connection: close` as soon as the idle time and one more request might exceed it.
    package var verifiedConnectionAge: Duration = .seconds(300)
    /// Connections beyond ``connections``, held open so that health checks are answered and others told 503: 64.
    package var reservedConnections = 64
    /// A connection whose incomplete request is older than this may be closed for a new one at the limit, or for memory
    /// before a newer one is: 1 s.
    package var slowRequestAge: Duration = .seconds(1)
    /// Requests older than this when their turn comes are refused with 503: 100 ms, the time a caller notices.
    package var queueDelay: Duration = .milliseconds(100)
    /// Seconds in the Retry-After of a 503 for overload: 1.
    package var retryAfterSeconds = 1
    /// Requests of one connection before others have their turn: 32.
    package var pipelineBudget = 32
    /// Response bytes gathered before they are sent: 32 KiB; parsing stops while they wait.
    package var outputBytes = 32_768
    /// Request bytes one connection holds: 96 KiB, above the greatest request the grammar's limits let through; no more
    /// is received while so much waits, and where nothing of it can be answered the connection closes.
    package var requestBytes = 98_304
    /// Answer bytes that wait on one connection for a client that does not read: 96 KiB, above the greatest answer behind
    /// those that were gathered before it; beyond it the connection closes.
    /// What is shared among connections does not count.
    package var waitingAnswerBytes = 98_304
    /// What all connections of the server take in memory: 32 MiB, half of the 64 MiB promised for the process;
    /// each worker has its equal share, beyond which connections are closed in the order of ``MemoryOrder``.
    package var connectionBytes = 32 * 1_048_576
    /// Parked requests are closed last, unless they hold more than this part of a worker's share, a half: then their large
    /// ones go like fresh requests, so that clients who have them parked leave room for all others.
    package var parkedShare = 2
    /// One receive: 16 KiB, more than any usual request.
    package var receiveBytes = 16_384
    /// Accepts at one wake: 16, so that a flood of connections does not starve requests.
    package var acceptsPerWake = 16
    /// How many connections more than its share a worker may have before it leaves those in a queue that all share to
    /// the others, and for how long: 4, so that nearly no accept costs further calls, and no worker serves a crowd while
    /// others idle; 1 ms, unless another that leads calls it back before.
    package var acceptLead = 4
    package var acceptLeadPause: Duration = .milliseconds(1)
    /// Pause of a listener when descriptors ran out: 100 ms.
    package var acceptPause: Duration = .milliseconds(100)
    /// Accept queue: 4,096, cut by the system to `somaxconn`.
    package var backlog: Int32 = 4_096
    /// While stopping, an idle connection waits so long for a request already under way: 500 ms.
    package var drainIdleWait: Duration = .milliseconds(500)

    package init() {}

    /// Cuts ``handshakes`` to seven eighths of a worker's share of the memory, so that they wait for their turn before
    /// any is closed for memory. Four at least, so that a quarter of them is one.
    mutating func fitHandshakes(into memoryShare: Int) {
        handshakes = min(handshakes, max(memoryShare / 8 * 7 / Connection.handshakeBytes, 4))
    }

    /// Descriptors that are no connection of the service's: 512, for connections to the administrative listener and those
    /// held beyond a limit (384), calls to Facebook, the store and the backend, files.
    private static let otherDescriptors = 512
    /// Descriptors of one worker besides its connections: 8, for its epoll sets, listeners and wake-ups.
    package static let workerDescriptors = 8

    /// Cuts ``connections``, so that probes, calls and files find descriptors whatever the clients of this server open.
    /// - Parameters:
    ///   - descriptors: how many the process may open.
    ///   - workers: how many this server has.
    ///   - free: how many of them nothing else may need; a quarter of these is the least for each kind of connection.
    package mutating func leaveDescriptors(of descriptors: Int, workers: Int, free: Int) {
        let others = Self.otherDescriptors + Self.workerDescriptors * workers
        connections = min(connections, max(descriptors - others, free / 4))
        reservedConnections = min(reservedConnections, free / 4)
    }
}
