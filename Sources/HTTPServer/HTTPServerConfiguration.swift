package import OpenSSL
package import Sockets

/// What an ``HTTPServer`` needs to know.
package struct HTTPServerConfiguration: Sendable {
    /// Where to listen; port 0 lets the system choose (see ``HTTPServer/localAddresses``).
    package var addresses: [ListenAddress]
    /// The permissions of Unix sockets among them.
    package var socketMode: UnixSocketMode
    /// Worker threads, at least 1; nil: one for each processor this process may use.
    package var workerCount: Int?
    /// The limits.
    package var limits: HTTPServerLimits
    /// The TLS settings of the listeners; nil: they speak plain HTTP.
    package var tls: Published<TLSContext>?

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
