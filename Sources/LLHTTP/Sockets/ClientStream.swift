internal import LLBytes

/// A connection to a server, plain or TLS, for a thread that has nothing else to do. Sends and receives return at once;
/// one wait ends with readiness, a signal or a deadline.
package final class ClientStream {
    let socket: Socket
    private var tls: TLSConnection?
    /// True if the last transfer waits for space in the socket; a handshake or a renewed key may need either direction.
    private var wantsSpace = false

    package init(_ socket: consuming Socket) { self.socket = socket }

    /// Runs the TLS handshake, in which the peer's certificate and name are verified.
    package func secure(
        _ context: TLSContext,
        hostName: String,
        cancelledBy cancellation: WakeSignal? = nil,
        until deadline: MonotonicInstant
    ) throws(ClientError) {
        do {
            let tls = try TLSConnection(client: context, descriptor: socket.descriptor, hostName: hostName)
            while let wanted = try tls.handshake() {
                wantsSpace = wanted == .wantWrite
                try wait(.handshaking, cancelledBy: cancellation, until: deadline)
            }
            self.tls = tls
        } catch {
            throw Self.translated(error)
        }
    }

    /// Sends as many bytes as the connection takes now.
    package func send(_ bytes: [UInt8], from offset: Int) throws(ClientError) -> Socket.Transfer {
        guard let tls else { return try noted(Socket.send(socket.descriptor, bytes, from: offset)) }
        do {
            let transfer = try noted(tls.write(bytes, from: offset))
            if transfer == .closed { throw ClientError.closed }
            return transfer
        } catch {
            throw Self.translated(error)
        }
    }

    /// Receives the available bytes into the start of `buffer`; an end without close_notify under TLS is an error.
    package func receive(into buffer: inout [UInt8]) throws(ClientError) -> Socket.Transfer {
        guard let tls else { return try noted(Socket.receive(socket.descriptor, into: &buffer)) }
        do {
            return try noted(tls.read(into: &buffer))
        } catch {
            throw Self.translated(error)
        }
    }

    private func noted(_ transfer: Socket.Transfer) throws(ClientError) -> Socket.Transfer {
        if case .failed(let number) = transfer { throw .failed(reason: SystemReason.sentence(for: number)) }
        wantsSpace = wantsSpace || transfer == .wantWrite
        return transfer
    }

    /// Waits until bytes may be available (or space, if a transfer needed it), until the signal is given, or until the
    /// deadline. It does not clear the signal.
    /// - Parameter hearsPeer: True if received bytes end the wait even while the last transfer needs space. A caller
    ///   that does not read them must pass false, or they would end each of its waits at once.
    package func wait(or signal: WakeSignal?, until deadline: MonotonicInstant, hearsPeer: Bool = true)
        -> BlockingWait.Event
    {
        let wantsInput = hearsPeer || !wantsSpace
        if wantsInput, tls?.hasPendingBytes == true { return .ready(0) }
        let interest = (descriptor: socket.descriptor, wantsInput: wantsInput, wantsSpace: wantsSpace)
        wantsSpace = false
        return BlockingWait.wait(for: [interest], or: signal, until: deadline)
    }

    /// Waits only for the readiness that the last transfer or handshake needs.
    package func wait(
        _ phase: ClientError.Phase,
        cancelledBy cancellation: WakeSignal?,
        until deadline: MonotonicInstant
    ) throws(ClientError) {
        switch wait(or: cancellation, until: deadline, hearsPeer: false) {
        // The deadline holds even if the peer makes the stream ready again and again.
        case .ready: if MonotonicClock.now() >= deadline { throw .timedOut(phase: phase) }
        case .signal: throw .cancelled
        case .deadline: throw .timedOut(phase: phase)
        }
    }

    /// Sends close_notify under TLS, without waiting for an answer; the descriptor closes with this object.
    package func close() {
        tls?.sayClose()
        tls = nil
    }

    private static func translated(_ error: any Error) -> ClientError {
        switch error {
        case let error as ClientError: error
        case TLSError.truncated: .closed
        case TLSError.system(let errno): .failed(reason: SystemReason.sentence(for: errno))
        case let error as TLSError: .tls(reason: error.description)
        default: .failed(reason: "for an unknown reason")
        }
    }

    /// From the first attempt to connect until one address has accepted: 3 s. That is three SYNs, so one lost packet is
    /// survived, and a dead address is given up before the time of the whole fetch is over.
    package static let connectTime = Duration.seconds(3)
    /// Addresses tried for one name: 8, so that a resolver's long answer does not cost descriptors.
    private static let addressCount = 8
    /// Head start of one address over the next: 250 ms, the Connection Attempt Delay of RFC 8305, 5.
    private static let headStart = Duration.milliseconds(250)

    package static func open(socket path: String) throws(ClientError) -> ClientStream {
        do {
            let address = ListenAddress.unix(try UnixSocketPath(path))
            let socket = try Socket.make(for: address)
            _ = try socket.connect(to: address)
            return ClientStream(socket)
        } catch {
            throw .connectFailed(reason: "\(error)")
        }
    }

    /// Connects to the first of a host's addresses that accepts, each with a head start over the next (RFC 8305, 5).
    /// - Parameter deadline: Bounds the name look-up and the connection together.
    package static func open(
        _ host: String,
        port: UInt16,
        names: NameResolver,
        connectTime: Duration = connectTime,
        cancelledBy cancellation: WakeSignal? = nil,
        until deadline: MonotonicInstant
    ) throws(ClientError) -> ClientStream {
        let addresses = try names.addresses(of: host, port: port, cancelledBy: cancellation, until: deadline)
        let deadline = min(deadline, MonotonicClock.now() + connectTime)
        var untried = addresses.prefix(addressCount).map(ListenAddress.network)[...]
        var underWay: [(stream: ClientStream, address: ListenAddress)] = []
        var lastReason = "there is no address"
        while true {
            if let address = untried.popFirst() {
                do throws(SocketError) {
                    let stream = ClientStream(try Socket.make(for: address))
                    stream.socket.setNoDelay()
                    if try stream.socket.connect(to: address) { return stream }
                    underWay.append((stream, address))
                } catch {
                    lastReason = error.description
                }
            }
            if underWay.isEmpty {
                if untried.isEmpty { throw .connectFailed(reason: lastReason) }
                continue
            }
            let interests = underWay.map {
                (descriptor: $0.stream.socket.descriptor, wantsInput: false, wantsSpace: true)
            }
            let pause = untried.isEmpty ? deadline : min(deadline, MonotonicClock.now() + headStart)
            switch BlockingWait.wait(for: interests, or: cancellation, until: pause) {
            case .ready(let position):
                let attempt = underWay.remove(at: position)
                do throws(SocketError) {
                    try attempt.stream.socket.finishConnecting(to: attempt.address)
                    return attempt.stream
                } catch {
                    lastReason = error.description
                }
            case .signal: throw .cancelled
            case .deadline: if MonotonicClock.now() >= deadline { throw .timedOut(phase: .connecting) }
            }
        }
    }
}

/// Why a connection to another server could not be made or broke, or why a fetch yielded no response. `description` is one
/// sentence fit for a log line. It quotes nothing from the peer.
package enum ClientError: Error, Equatable, CustomStringConvertible {
    case nameNotResolved(host: String, reason: String)
    case connectFailed(reason: String)
    case proxyFailed(reason: String)
    case tls(reason: String)
    case timedOut(phase: Phase)
    case closed
    case failed(reason: String)
    case cancelled
    case malformedRequest
    case malformedResponse(reason: String)
    case headTooLarge(limit: Int)
    case bodyTooLarge(limit: Int)
    case redirectRefused(reason: String)

    package enum Phase: String, Sendable { case resolving, connecting, handshaking, sending, receiving }

    package var description: String {
        switch self {
        case .nameNotResolved(let host, let reason): "the name \(host) could not be resolved: \(reason)"
        case .connectFailed(let reason): "no connection could be made: \(reason)"
        case .proxyFailed(let reason): "the proxy did not open a tunnel: \(reason)"
        case .tls(let reason): reason
        case .timedOut(let phase): "the time ran out while \(phase.rawValue)"
        case .closed: "the connection was closed before the answer was whole"
        case .failed(let reason): "the connection failed: \(reason)"
        case .cancelled: "the fetch was cancelled"
        case .malformedRequest: "a header field holds a byte that is not allowed"
        case .malformedResponse(let reason): "the answer is not HTTP: \(reason)"
        case .headTooLarge(let limit): "the answer's head is larger than \(DecimalNumber.grouped(limit)) bytes"
        case .bodyTooLarge(let limit): "the answer's body is larger than \(DecimalNumber.grouped(limit)) bytes"
        case .redirectRefused(let reason): "the redirect was not followed: \(reason)"
        }
    }
}
