import Sockets

/// A port nobody listens on at this moment.
enum FreePort {
    static func take() throws -> UInt16 {
        try Socket.listener(on: .loopback(port: 0), backlog: 1, sharesPort: false).localAddress().port
    }
}
