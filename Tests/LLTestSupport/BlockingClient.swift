internal import Glibc
package import LLHTTP

/// A client of a stream socket for tests: every call waits, at most until a deadline.
package class BlockingClient {
    private(set) final var stream: TestStream
    private final var buffer = [UInt8](repeating: 0, count: 65_536)

    package enum ReadEnd: Equatable, Sendable {
        /// The peer ended the stream; under TLS it sent close_notify.
        case endOfStream
        /// The stream broke; under TLS it may have ended without close_notify.
        case reset
        case timedOut
        case enough
    }

    package convenience init(_ path: UnixSocketPath) throws { try self.init(.unix(path)) }

    package convenience init(_ address: SocketAddress, from source: [UInt8]? = nil) throws {
        try self.init(.network(address), from: source)
    }

    /// - Parameter source: The client's own address, 4 or 16 bytes; nil lets the system choose.
    package init(_ address: ListenAddress, from source: [UInt8]? = nil) throws {
        let source = source.map { SocketAddress(bytes: $0, port: 0) }
        let socket = if let source { try Socket.bound(to: source) } else { try Socket.make(for: address) }
        if try !socket.connect(to: address) {
            _ = socket.wait(forWriting: true, until: MonotonicClock.now() + patienceOfTests)
            try socket.finishConnecting(to: address)
        }
        socket.setNoDelay()
        stream = TestStream(socket)
    }

    package var descriptor: Int32 { stream.socket.descriptor }

    /// Sends everything. Returns false if the peer is gone or the deadline passes.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        (try? stream.send(bytes, until: MonotonicClock.now() + patienceOfTests)) == true
    }

    @discardableResult
    package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    package func shutdownWrite() { _ = shutdown(descriptor, Int32(SHUT_WR)) }

    /// Reads until `isEnough`, the end, or `timeout`.
    package func read(
        timeout: Duration = patienceOfTests,
        until isEnough: ([UInt8]) -> Bool = { _ in false }
    ) -> (bytes: [UInt8], end: ReadEnd) {
        var received: [UInt8] = []
        let deadline = MonotonicClock.now() + timeout
        while !isEnough(received) {
            do {
                switch try stream.receive(into: &buffer, until: deadline) {
                case .bytes(let count): received += buffer[..<count]
                case nil: return (received, .timedOut)
                default: return (received, .endOfStream)
                }
            } catch {
                return (received, .reset)
            }
        }
        return (received, .enough)
    }

    package func readResponses(_ count: Int, timeout: Duration = patienceOfTests) -> [TestResponse] {
        var parsed: [TestResponse] = []
        _ = read(timeout: timeout) { bytes in
            parsed = TestResponse.parseAll(bytes)
            return parsed.filter { $0.status >= 200 }.count >= count
        }
        return parsed
    }

    package func exchange(_ request: String, timeout: Duration = patienceOfTests) -> TestResponse? {
        send(request)
        return readResponses(1, timeout: timeout).last
    }

    /// Sends `bytes` again and again without reading, until the peer closes.
    /// - Returns: False if the peer does not close within ``patienceOfTests``.
    package func sendUntilClosed(_ bytes: [UInt8]) -> Bool {
        let deadline = MonotonicClock.now() + patienceOfTests
        do { while try stream.send(bytes, until: deadline) {} } catch { return true }
        return MonotonicClock.now() < deadline
    }

    package func reset() {
        stream.socket.resetOnClose()
        stream = TestStream(Socket(takingOwnershipOf: -1))
    }
}
