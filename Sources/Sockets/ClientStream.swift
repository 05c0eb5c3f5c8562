package import OpenSSL

/// A connected byte stream, plain or TLS, on which nothing waits beyond one deadline.
///
/// One thread uses it at a time: the one that opened it, or the one that took it out of ``KeptConnections``, whose lock
/// orders the two; hence `@unchecked Sendable`.
package final class ClientStream: @unchecked Sendable {
    private let socket: Socket
    private let waiter: DeadlineWaiter
    private var deadline: MonotonicInstant
    private var connection: TLSConnection?
    /// Bytes handed over for sending since the request began.
    package private(set) var sentCount = 0
    /// Bytes read since the request began.
    package private(set) var receivedCount = 0

    package init(
        _ socket: consuming Socket,
        signal: CancellationSignal,
        deadline: MonotonicInstant
    ) throws(HTTPSClientError) {
        self.socket = socket
        self.deadline = deadline
        waiter = try DeadlineWaiter(signal: signal)
        try waiter.add(self.socket.descriptor.number, .reading, tag: 0)
    }

    /// Begins another request on a connection that was kept.
    package func begin(until deadline: MonotonicInstant) {
        self.deadline = deadline
        sentCount = 0
        receivedCount = 0
    }

    /// Whether the peer has neither closed nor said anything that nobody asked for; under TLS it may have sent tickets.
    package var isQuiet: Bool {
        var buffer: [UInt8] = [0]
        guard let connection else {
            return switch try? socket.receive(into: &buffer) {
            case .wouldBlock: true
            case .bytes, .endOfStream, nil: false
            }
        }
        var target = buffer.mutableSpan
        return switch try? connection.read(into: &target) {
        case .wantRead: true
        case .bytes, .wantWrite, .closed, nil: false
        }
    }

    /// Runs the handshake; the peer's certificate and name are verified in it.
    package func startTLS(trusting trust: TLSContext.Trust, hostName: String) throws(HTTPSClientError) {
        do {
            let context = try TLSContext(clientTrusting: trust)
            let connection = try TLSConnection(
                client: context,
                descriptor: socket.descriptor.number,
                hostName: hostName
            )
            while true {
                switch try connection.handshake() {
                case .done:
                    self.connection = connection
                    return
                case .wantRead: try wait(.reading, .handshaking)
                case .wantWrite: try wait(.writing, .handshaking)
                }
            }
        } catch {
            throw Self.translated(error)
        }
    }

    /// Sends all bytes.
    package func write(_ bytes: [UInt8], phase: HTTPSClientError.Phase) throws(HTTPSClientError) {
        var sent = 0
        defer { sentCount += sent }
        do {
            while sent < bytes.count {
                guard let connection else {
                    switch try socket.send(bytes, from: sent) {
                    case .bytes(let count): sent += count
                    case .wouldBlock: try wait(.writing, phase)
                    case .endOfStream: throw HTTPSClientError.connectionClosed
                    }
                    continue
                }
                switch try connection.write(bytes.span.extracting(sent..<bytes.count)) {
                case .bytes(let count): sent += count
                case .wantRead: try wait(.reading, phase)
                case .wantWrite: try wait(.writing, phase)
                case .closed: throw HTTPSClientError.connectionClosed
                }
            }
        } catch {
            throw Self.translated(error)
        }
    }

    /// Reads what comes next, at least one byte; 0 at the end of the stream, which under TLS was announced.
    package func read(into buffer: inout [UInt8], phase: HTTPSClientError.Phase) throws(HTTPSClientError) -> Int {
        do {
            while true {
                // A peer that always has a byte ready would never let a wait notice the time.
                guard MonotonicClock.now() < deadline else { throw HTTPSClientError.timedOut(phase: phase) }
                guard let connection else {
                    switch try socket.receive(into: &buffer) {
                    case .bytes(let count): return received(count)
                    case .wouldBlock: try wait(.reading, phase)
                    case .endOfStream: return 0
                    }
                    continue
                }
                var target = buffer.mutableSpan
                switch try connection.read(into: &target) {
                case .bytes(let count): return received(count)
                case .wantRead: try wait(.reading, phase)
                case .wantWrite: try wait(.writing, phase)
                case .closed: return 0
                }
            }
        } catch {
            throw Self.translated(error)
        }
    }

    /// Says goodbye under TLS, without waiting for an answer; the descriptor closes with this object.
    package func close() {
        _ = try? connection?.shutdown()
        connection = nil
    }

    private func received(_ count: Int) -> Int {
        receivedCount += count
        return count
    }

    private func wait(_ interest: DeadlineWaiter.Interest, _ phase: HTTPSClientError.Phase) throws(HTTPSClientError) {
        try waiter.change(socket.descriptor.number, interest, tag: 0)
        guard try waiter.wait(until: deadline) != nil else { throw .timedOut(phase: phase) }
    }

    private static func translated(_ error: any Error) -> HTTPSClientError {
        switch error {
        case let error as HTTPSClientError: error
        case TLSError.truncated: .connectionClosed
        case TLSError.system(let errno): .connectionFailed(reason: SocketError.sentence(for: errno))
        case let error as TLSError: .tls(reason: error.description)
        case let error as SocketError: .connectionFailed(reason: SocketError.sentence(for: error.errorNumber))
        default: .connectionFailed(reason: "for an unknown reason")
        }
    }
}
