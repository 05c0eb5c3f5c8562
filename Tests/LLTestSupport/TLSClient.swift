internal import Glibc
package import LLHTTP

/// A TLS client for tests: every call waits, at most until a deadline.
package final class TLSClient: BlockingClient {
    /// Connects and shakes hands, trusting the authority of the good certificate.
    package convenience init(_ address: ListenAddress) throws {
        try self.init(address, authorityFile: TestCertificates.shared.get().authorityFile)
    }

    package init(_ address: ListenAddress, authorityFile: String) throws {
        try super.init(address)
        let connection = try TLSConnection(
            client: TLSContext(clientTrusting: .authorities(file: authorityFile)),
            descriptor: descriptor,
            hostName: "localhost"
        )
        guard try stream.startTLS(connection, until: MonotonicClock.now() + patienceOfTests) else {
            throw TestSupportError("the server does not answer")
        }
    }

    /// The first bytes of a handshake, as a client would send them.
    package static func clientHello() throws -> [UInt8] {
        let pair = try Socket.pair()
        defer { for descriptor in pair { _ = close(descriptor) } }
        let context = try TLSContext(clientTrusting: .system)
        let connection = try TLSConnection(client: context, descriptor: pair[0], hostName: "localhost")
        guard try connection.handshake() == .wantRead else { throw TestSupportError("no client hello") }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        // At most the array's own length is received.
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe recv(pair[1], $0.baseAddress, $0.count, 0) }
        guard count > 0 else { throw TestSupportError("no client hello") }
        return Array(bytes[..<count])
    }

    /// The version in force, such as `TLSv1.3`.
    package var version: String { stream.tls?.version ?? "" }

    /// Sends close_notify and keeps the connection.
    package func sayClose() { stream.tls?.sayClose() }

    /// Sends the first bytes of an encrypted record of application data, and not the rest.
    package func beginRecord(_ byteCount: Int) {
        let record = [0x17, 3, 3, 0x40, 0x11] + [UInt8](repeating: 0x61, count: 0x4011)
        _ = Socket.send(descriptor, Array(record.prefix(byteCount)))
    }
}
