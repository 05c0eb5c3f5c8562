/// What a server listens on.
package enum ListenAddress: Hashable, Sendable, CustomStringConvertible {
    case network(SocketAddress)
    case unix(UnixSocketPath)

    /// What a text that means a Unix socket begins with.
    package static let unixPrefix = "unix:"

    /// 127.0.0.1 with a port.
    package static func loopback(port: UInt16) -> ListenAddress { .network(.loopback(port: port)) }

    /// The address and port; nil for a Unix socket, which has none.
    package var network: SocketAddress? {
        switch self {
        case .network(let address): address
        case .unix: nil
        }
    }

    /// `127.0.0.1:8080`, `[::1]:8080` or `unix:/run/limited-login/http.sock`.
    package var description: String {
        switch self {
        case .network(let address): address.description
        case .unix(let path): Self.unixPrefix + path.description
        }
    }
}
