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

    /// The version in force, such as `TLSv1.3`.
    package var version: String { stream.tls?.version ?? "" }

    /// Sends close_notify and keeps the connection.
    package func sayClose() { stream.tls?.sayClose() }
}
