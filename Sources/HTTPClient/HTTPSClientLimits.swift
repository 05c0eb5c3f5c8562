package import Sockets

/// Every limit of the HTTPS client, with its default and reason.
package struct HTTPSClientLimits: Sendable, Equatable {
    /// What bounds the connecting.
    package var race = ConnectionRace.Limits()
    /// The whole fetch, names, redirects and body included, however slowly bytes come. 10 s.
    package var fetchTimeout: Duration = .seconds(10)
    /// Bytes of a decoded body. 64 KiB: Facebook's two keys take 1 KiB.
    package var bodyBytes = 64 * 1024
    /// Bytes of a status line and header section. 32 KiB, as the server's own.
    package var headBytes = 32 * 1024
    /// Fields in a header section. 100, as the server's own.
    package var fieldCount = 100
    /// Redirects followed, all within the same host. 3.
    package var redirectCount = 3

    package init() {}
}
