import LLSockets

/// A port without a listener at this moment, for a program that needs a fixed number. It is below the range from
/// which the system itself gives ports to others (`ip_local_port_range`).
enum FreePort {
    static func take() throws -> UInt16 {
        for _ in 0..<1_000 {
            let port = UInt16.random(in: 10_000..<32_768)
            if (try? Socket.listener(on: .loopback(port: port), backlog: 1, sharesPort: false)) != nil { return port }
        }
        return try Socket.listener(on: .loopback(port: 0), backlog: 1, sharesPort: false).localAddress().port
    }
}
