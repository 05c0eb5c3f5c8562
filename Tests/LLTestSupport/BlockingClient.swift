package import LLSockets

/// A client of a stream socket for tests: every call waits, at most until a deadline.
package final class BlockingClient {
    private var socket: Socket
    private var buffer = [UInt8](repeating: 0, count: 65_536)

    /// How a read ended.
    package enum ReadEnd: Equatable, Sendable {
        case endOfStream
        case reset
        case timedOut
        case enough
    }

    /// - Parameter source: The client's own address, 4 or 16 bytes; nil lets the system choose.
    package convenience init(_ address: ListenAddress, from source: [UInt8]? = nil) throws {
        switch address {
        case .network(let address): try self.init(address, from: source)
        case .unix(let path): try self.init(path)
        }
    }

    package init(_ path: UnixSocketPath) throws {
        socket = try Socket.makeUnix(for: path)
        try socket.connect(to: path)
    }

    package init(_ address: SocketAddress, from source: [UInt8]? = nil) throws {
        if let source = source.flatMap({ SocketAddress(bytes: $0, port: 0) }) {
            socket = try Socket.bound(to: source)
        } else {
            socket = try Socket.make(for: address)
        }
        if try !socket.connect(to: address) {
            _ = socket.wait(forWriting: true, until: MonotonicClock.now() + patienceOfTests)
            try socket.finishConnecting(to: address)
        }
        socket.setNoDelay()
    }

    /// The socket's descriptor.
    package var descriptor: Int32 { socket.descriptor }

    /// Sends everything. Returns false if the peer is gone or the deadline passes.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        var offset = 0
        let deadline = MonotonicClock.now() + patienceOfTests
        while offset < bytes.count {
            do {
                switch try socket.send(bytes, from: offset) {
                case .bytes(let count): offset += count
                case .wouldBlock:
                    if !socket.wait(forWriting: true, until: deadline) { return false }
                case .endOfStream: return false
                }
            } catch {
                return false
            }
        }
        return true
    }

    /// Sends text.
    @discardableResult
    package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Waits for the socket. Returns false if the deadline passes first.
    package func wait(forWriting: Bool, until deadline: MonotonicInstant) throws -> Bool {
        socket.wait(forWriting: forWriting, until: deadline)
    }

    /// Ends the sending direction.
    package func shutdownWrite() { _ = SystemCalls().shutdownWrite(descriptor) }

    /// Reads until `isEnough`, the end, or `timeout`.
    package func read(
        timeout: Duration = patienceOfTests,
        until isEnough: ([UInt8]) -> Bool = { _ in false }
    ) -> (bytes: [UInt8], end: ReadEnd) {
        var received: [UInt8] = []
        let deadline = MonotonicClock.now() + timeout
        while !isEnough(received) {
            do {
                switch try socket.receive(into: &buffer) {
                case .bytes(let count): received += buffer[..<count]
                case .endOfStream: return (received, .endOfStream)
                case .wouldBlock:
                    if !socket.wait(forWriting: false, until: deadline) { return (received, .timedOut) }
                }
            } catch {
                return (received, .reset)
            }
        }
        return (received, .enough)
    }

    /// Reads `count` whole responses.
    package func readResponses(_ count: Int, timeout: Duration = patienceOfTests) -> [TestResponse] {
        var parsed: [TestResponse] = []
        _ = read(timeout: timeout) { bytes in
            parsed = TestResponse.parseAll(bytes)
            return parsed.filter { $0.status >= 200 }.count >= count
        }
        return parsed
    }

    /// Sends a request and reads its response.
    package func exchange(_ request: String, timeout: Duration = patienceOfTests) -> TestResponse? {
        send(request)
        return readResponses(1, timeout: timeout).last
    }

    /// Sends everything. Reads at the same time, to the end of the stream.
    package func sendInterleaved(_ bytes: [UInt8]) -> [UInt8] {
        var offset = 0
        var received: [UInt8] = []
        let deadline = MonotonicClock.now() + patienceOfTests
        while MonotonicClock.now() < deadline {
            do {
                var moved = false
                if offset < bytes.count, case .bytes(let count) = try socket.send(bytes, from: offset) {
                    offset += count
                    moved = true
                }
                switch try socket.receive(into: &buffer) {
                case .bytes(let count): received += buffer[..<count]
                case .endOfStream: return received
                case .wouldBlock:
                    if !moved { _ = socket.wait(forWriting: false, until: deadline) }
                }
            } catch {
                return received
            }
        }
        return received
    }

    /// Sends `bytes` again and again without reading, until the peer closes.
    /// - Returns: False if the peer does not close within ``patienceOfTests``.
    package func sendUntilClosed(_ bytes: [UInt8]) -> Bool {
        var offset = 0
        let deadline = MonotonicClock.now() + patienceOfTests
        while MonotonicClock.now() < deadline {
            do {
                switch try socket.send(bytes, from: offset) {
                case .bytes(let count): offset = (offset + count) % bytes.count
                case .wouldBlock: _ = socket.wait(forWriting: true, until: deadline)
                case .endOfStream: return true
                }
            } catch {
                return true
            }
        }
        return false
    }

    /// Closes with a reset.
    package func reset() {
        socket.resetOnClose()
        socket = Socket(takingOwnershipOf: -1)
    }
}
