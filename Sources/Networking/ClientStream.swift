internal import OpenSSL

/// A connected byte stream, plain or TLS, on which nothing waits beyond one deadline.
final class ClientStream {
    private let socket: Socket
    private let waiter: DeadlineWaiter
    private let deadline: MonotonicInstant
    private var connection: TLSConnection?

    init(
        _ socket: consuming Socket,
        signal: CancellationSignal,
        deadline: MonotonicInstant
    ) throws(HTTPSClientError) {
        self.socket = socket
        self.deadline = deadline
        waiter = try DeadlineWaiter(signal: signal)
        try waiter.add(self.socket.descriptor.number, .reading, tag: 0)
    }

    /// Runs the handshake; the peer's certificate and name are verified in it.
    func startTLS(trusting trust: TLSContext.Trust, hostName: String) throws(HTTPSClientError) {
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
    func write(_ bytes: [UInt8], phase: HTTPSClientError.Phase) throws(HTTPSClientError) {
        var sent = 0
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
    func read(into buffer: inout [UInt8], phase: HTTPSClientError.Phase) throws(HTTPSClientError) -> Int {
        do {
            while true {
                // A peer that always has a byte ready would never let a wait notice the time.
                guard MonotonicClock.now() < deadline else { throw HTTPSClientError.timedOut(phase: phase) }
                guard let connection else {
                    switch try socket.receive(into: &buffer) {
                    case .bytes(let count): return count
                    case .wouldBlock: try wait(.reading, phase)
                    case .endOfStream: return 0
                    }
                    continue
                }
                var target = buffer.mutableSpan
                switch try connection.read(into: &target) {
                case .bytes(let count): return count
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
    func close() {
        _ = try? connection?.shutdown()
        connection = nil
    }

    private func wait(_ interest: DeadlineWaiter.Interest, _ phase: HTTPSClientError.Phase) throws(HTTPSClientError) {
        try waiter.change(socket.descriptor.number, interest, tag: 0)
        guard try waiter.wait(until: deadline) != nil else { throw .timedOut(phase: phase) }
    }

    private static func translated(_ error: any Error) -> HTTPSClientError {
        switch error {
        case let error as HTTPSClientError: error
        case TLSError.truncated: .connectionClosed
        case let error as TLSError: .tls(reason: error.description)
        case let error as SocketError: .connectionFailed(reason: SocketError.sentence(for: error.errorNumber))
        default: .connectionFailed(reason: "for an unknown reason")
        }
    }
}
