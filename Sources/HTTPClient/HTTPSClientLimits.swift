internal import Sockets
/// Every limit of the HTTPS client, with its default and reason.
package struct HTTPSClientLimits: Sendable, Equatable {
    /// From the first attempt to connect until one address has accepted. 3 s: three SYNs, so one lost packet is
    /// survived and a dead address is given up before the waiters' patience ends with the whole fetch.
    package var connectTimeout: Duration = .seconds(3)
    /// The whole fetch, names, redirects and body included, however slowly bytes come. 10 s.
    package var fetchTimeout: Duration = .seconds(10)
    /// Head start of one address over the next (RFC 8305, 5).
    package var connectionAttemptDelay = ConnectionRace.headStart
    /// Addresses tried for one name.
    package var addressCount = ConnectionRace.addressCount
    /// Bytes of a decoded body. 64 KiB: Facebook's two keys take 1 KiB.
    package var bodyBytes = 64 * 1024
    /// Bytes of a status line and header section. 32 KiB, as the server's own.
    package var headBytes = 32 * 1024
    /// Fields in a header section. 100, as the server's own.
    package var fieldCount = 100
    /// Redirects followed, all within the same host. 3.
    package var redirectCount = 3
    /// Connections kept open to one place between requests of ``HTTPSClient/send(_:limits:until:)``. 4: as many as its
    /// users have threads.
    package var keptConnectionCount = 4
    /// How long a connection is kept without use. 15 s: shorter than servers commonly keep theirs, so that few are found
    /// closed.
    package var keptConnectionTime: Duration = .seconds(15)

    package init() {}
}
