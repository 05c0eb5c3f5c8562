package import OpenSSL

/// A connection to a server, plain or TLS, for a thread that has nothing else to do: bytes go out and come in without
/// waiting, and one wait ends with readiness, a signal or a deadline.
package final class ClientStream {
    let socket: Socket
    private var tls: TLSConnection?
    /// What the last transfer could not go on without; a handshake or a renewed key may need either direction.
    private var wantsSpace = false

    package init(_ socket: consuming Socket) {
        self.socket = socket
    }

    /// Connects to a host.
    /// - Parameters:
    ///   - cancellation: ends the call from other threads.
    ///   - deadline: bounds the look-up of the name and the connection together.
    package static func open(
        _ host: String,
        port: UInt16,
        names: NameResolver,
        limits: ConnectionRace.Limits = .init(),
        cancelledBy cancellation: WakeSignal? = nil,
        until deadline: MonotonicInstant
    ) throws(StreamError) -> ClientStream {
        let addresses = try names.addresses(of: host, port: port, cancelledBy: cancellation, until: deadline)
        let connectDeadline = min(deadline, MonotonicClock.now() + limits.timeout)
        return try ConnectionRace.run(addresses, limits: limits, cancelledBy: cancellation, until: connectDeadline)
    }

    /// Runs the TLS handshake, in which the peer's certificate and name are verified.
    package func secure(
        _ context: TLSContext,
        hostName: String,
        cancelledBy cancellation: WakeSignal? = nil,
        until deadline: MonotonicInstant
    ) throws(StreamError) {
        do {
            let tls = try TLSConnection(client: context, descriptor: socket.descriptor.number, hostName: hostName)
            while true {
                let progress = try tls.handshake()
                if progress == .done {
                    self.tls = tls
                    return
                }
                let interest = BlockingWait.Interest(
                    socket.descriptor.number,
                    wantsInput: progress == .wantRead,
                    wantsSpace: progress == .wantWrite
                )
                switch BlockingWait.wait(for: [interest], or: cancellation, until: deadline) {
                // However often a peer makes the stream ready, the deadline holds.
                case .ready: if MonotonicClock.now() >= deadline { throw StreamError.timedOut(phase: .handshaking) }
                case .signal: throw StreamError.cancelled
                case .deadline: throw StreamError.timedOut(phase: .handshaking)
                }
            }
        } catch {
            throw Self.translated(error)
        }
    }

    /// Sends what the connection takes now of `bytes`, from `offset` (0 … `bytes.count`) on.
    package func send(_ bytes: [UInt8], from offset: Int) throws(StreamError) -> Socket.Transfer {
        do {
            guard let tls else { return blocked(try socket.send(bytes, from: offset), wantsSpace: true) }
            guard offset >= 0, offset < bytes.count else { return .bytes(0) }
            switch try tls.write(bytes.span.extracting(offset..<bytes.count)) {
            case .bytes(let count): return .bytes(count)
            case .wantWrite: return blocked(.wouldBlock, wantsSpace: true)
            case .wantRead: return .wouldBlock
            case .closed: throw StreamError.closed
            }
        } catch {
            throw Self.translated(error)
        }
    }

    /// Receives what is there into the start of `buffer`; an end that TLS did not announce is an error.
    package func receive(into buffer: inout [UInt8]) throws(StreamError) -> Socket.Transfer {
        do {
            guard let tls else { return try socket.receive(into: &buffer) }
            var target = buffer.mutableSpan
            switch try tls.read(into: &target) {
            case .bytes(let count): return .bytes(count)
            case .wantRead: return .wouldBlock
            case .wantWrite: return blocked(.wouldBlock, wantsSpace: true)
            case .closed: return .endOfStream
            }
        } catch {
            throw Self.translated(error)
        }
    }

    private func blocked(_ transfer: Socket.Transfer, wantsSpace: Bool) -> Socket.Transfer {
        if transfer == .wouldBlock { self.wantsSpace = wantsSpace }
        return transfer
    }

    /// Waits until bytes may be there (or space, where a transfer needed it), the signal is given, which is not taken, or
    /// the deadline is over.
    /// - Parameter hearsPeer: Whether bytes that come end the wait even where the last transfer needs space. A caller that
    ///   does not read them then says false, or they would end each of its waits at once.
    package func wait(or signal: WakeSignal, until deadline: MonotonicInstant, hearsPeer: Bool = true)
        -> BlockingWait.Event
    {
        let wantsInput = hearsPeer || !wantsSpace
        if wantsInput, tls?.hasPendingBytes == true { return .ready(0) }
        let interest = BlockingWait.Interest(
            socket.descriptor.number,
            wantsInput: wantsInput,
            wantsSpace: wantsSpace
        )
        wantsSpace = false
        return BlockingWait.wait(for: [interest], or: signal, until: deadline)
    }

    /// Says goodbye under TLS, without waiting for an answer; the descriptor closes with this object.
    package func close() {
        tls?.sayClose()
        tls = nil
    }

    private static func translated(_ error: any Error) -> StreamError {
        switch error {
        case let error as StreamError: error
        case TLSError.truncated: .closed
        case TLSError.system(let errno): .failed(reason: SystemReason.sentence(for: errno))
        case let error as TLSError: .tls(reason: error.description)
        case let error as SocketError: .failed(reason: SystemReason.sentence(for: error.errorNumber))
        default: .failed(reason: "for an unknown reason")
        }
    }
}

/// Why an outbound stream could not be opened, or broke.
package enum StreamError: Error, Equatable, Sendable, CustomStringConvertible {
    case nameNotResolved(host: String, reason: String)
    case connectFailed(reason: String)
    case tls(reason: String)
    case timedOut(phase: Phase)
    case closed
    case failed(reason: String)
    case cancelled

    /// What was under way when the time ran out.
    package enum Phase: String, Sendable { case resolving, connecting, handshaking, sending, receiving }

    package var description: String {
        switch self {
        case .nameNotResolved(let host, let reason): "the name \(host) could not be resolved: \(reason)"
        case .connectFailed(let reason): "no connection could be made: \(reason)"
        case .tls(let reason): reason
        case .timedOut(let phase): "the time ran out while \(phase.rawValue)"
        case .closed: "the connection was closed before the answer was whole"
        case .failed(let reason): "the connection failed: \(reason)"
        case .cancelled: "the fetch was cancelled"
        }
    }
}
