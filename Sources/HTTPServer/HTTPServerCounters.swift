/// Counts of a server, summed over its workers; each is exact for its worker at the moment it was read.
package struct HTTPServerCounters: Equatable, Sendable {
    /// Connections accepted since the start.
    package var accepted: UInt64 = 0
    /// Requests whose response was encoded since the start.
    package var requests: UInt64 = 0
    /// Connections open now, of every kind.
    package var open = 0
    /// Of these: between requests.
    package var idle = 0
    /// Of these: with a parked request.
    package var parked = 0
    /// Connections with a request or response under way.
    package var active: Int { max(0, open - idle - parked) }
    /// What the connections take in memory now, in bytes.
    package var heldBytes = 0
    /// Requests refused for overload since the start.
    package var overloaded: UInt64 = 0
    /// Connections closed since the start, by cause.
    package var closed: [ConnectionCloseCause: UInt64] = [:]

    package init() {}

    package func closed(_ cause: ConnectionCloseCause) -> UInt64 { closed[cause] ?? 0 }
}

/// Why a connection ended: the closed set of the metric's labels.
package enum ConnectionCloseCause: String, CaseIterable, Sendable {
    /// The client closed between requests.
    case client
    /// A response said `Connection: close`.
    case finished
    /// The client went away within a request or response.
    case disconnected
    /// Nothing came between requests for too long.
    case idle
    /// Head or body did not arrive in time.
    case requestTimeout = "request_timeout"
    /// The client did not read its response.
    case writeStalled = "write_stalled"
    /// The TLS handshake failed or took too long.
    case handshake = "tls_handshake"
    /// A request was refused by the grammar.
    case refused
    /// Closed to make room for a new connection, or refused at the limit.
    case limit
    /// It held more memory than one connection may, or the most when all together held too much.
    case memory
    /// Closed to make room: its peer address had the most connections.
    case peer = "peer_limit"
    /// The server stopped.
    case stopped
    /// A system call failed.
    case failed
}
