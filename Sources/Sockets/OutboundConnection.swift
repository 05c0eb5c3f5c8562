internal import CSystem
package import OpenSSL

/// A connection to a server that speaks first or last as it likes, for a thread that does nothing else: bytes go out and
/// come in without waiting, and one wait ends with readiness, a signal or a deadline.
package final class OutboundConnection {
    /// Where to, and how.
    package struct Target: Sendable {
        /// A DNS name, or an address without brackets.
        package let host: String
        package let port: UInt16
        /// Whom to trust; nil where no TLS is spoken.
        package let tls: TLSContext?

        package init(host: String, port: UInt16, tls: TLSContext?) {
            self.host = host
            self.port = port
            self.tls = tls
        }
    }

    /// What ended a wait.
    package enum Event: Equatable, Sendable { case ready, signal, deadline }

    private static let socketTag: UInt64 = 0
    private static let signalTag: UInt64 = 1

    private let socket: Socket
    private let poll: FileDescriptor
    private let signal: WakeSignal
    private var tls: TLSConnection?
    /// What the last transfer could not go on without; a handshake or a renegotiated key may need either direction.
    private var wantsSpace = false
    private var registeredEvents: UInt32

    private init(_ socket: consuming Socket, signal: WakeSignal) throws(HTTPSClientError) {
        let poll = FileDescriptor(takingOwnershipOf: platform_epoll_create())
        let readable = UInt32(PLATFORM_READABLE)
        guard poll.number >= 0,
            platform_epoll_add(poll.number, socket.descriptor.number, readable, Self.socketTag) >= 0,
            platform_epoll_add(poll.number, signal.descriptor, readable, Self.signalTag) >= 0
        else { throw .connectionFailed(reason: "no descriptor is left") }
        self.socket = socket
        self.poll = poll
        self.signal = signal
        registeredEvents = readable
    }

    /// Connects, and runs the TLS handshake, in which the peer's certificate and name are verified.
    /// - Parameters:
    ///   - signal: ends waits on the connection from other threads; not this call.
    ///   - deadline: bounds the look-up of the name, the connection and the handshake together.
    package static func open(
        _ target: Target,
        names: Names,
        signal: WakeSignal,
        until deadline: MonotonicInstant
    ) throws(HTTPSClientError) -> OutboundConnection {
        let cancellation = CancellationSignal()
        let addresses = try names.addresses(of: target, cancellation, until: deadline)
        let race = try ConnectionRace(addresses, signal: cancellation)
        let connection = try OutboundConnection(race.run(until: deadline), signal: signal)
        if let context = target.tls { try connection.secure(context, target.host, until: deadline) }
        return connection
    }

    private func secure(
        _ context: TLSContext,
        _ host: String,
        until deadline: MonotonicInstant
    ) throws(HTTPSClientError) {
        do throws(TLSError) {
            let tls = try TLSConnection(client: context, descriptor: socket.descriptor.number, hostName: host)
            self.tls = tls
            while true {
                switch try tls.handshake() {
                case .done:
                    wantsSpace = false
                    return
                case .wantRead: wantsSpace = false
                case .wantWrite: wantsSpace = true
                }
                // A signal is for the connection's user, who is not there yet; it is kept.
                guard MonotonicClock.now() < deadline, waitForSocket(until: deadline) else { break }
            }
        } catch {
            throw error == .truncated ? .connectionClosed : .tls(reason: error.description)
        }
        throw .timedOut(phase: .handshaking)
    }

    /// Sends what the connection takes now of `bytes`, beginning at `offset`.
    /// - Returns: how many bytes went; 0 where it takes none, and then the next wait is for space too.
    package func send(_ bytes: borrowing [UInt8], from offset: Int) throws(HTTPSClientError) -> Int {
        do {
            guard let tls else {
                guard case .bytes(let count) = try socket.send(bytes, from: offset) else { return blocked() }
                return count
            }
            guard offset >= 0, offset < bytes.count else { return 0 }
            switch try tls.write(bytes.span.extracting(offset..<bytes.count)) {
            case .bytes(let count): return count
            case .wantWrite: return blocked()
            case .wantRead: return 0
            case .closed: throw HTTPSClientError.connectionClosed
            }
        } catch {
            throw Self.translated(error)
        }
    }

    private func blocked() -> Int {
        wantsSpace = true
        return 0
    }

    /// Receives what is there into the start of `buffer`.
    /// - Returns: how many bytes came; 0 where there are none yet.
    /// - Throws: ``HTTPSClientError/connectionClosed`` at the end of the stream.
    package func receive(into buffer: inout [UInt8]) throws(HTTPSClientError) -> Int {
        do {
            guard let tls else {
                switch try socket.receive(into: &buffer) {
                case .bytes(let count): return count
                case .wouldBlock: return 0
                case .endOfStream: throw HTTPSClientError.connectionClosed
                }
            }
            var target = buffer.mutableSpan
            switch try tls.read(into: &target) {
            case .bytes(let count): return count
            case .wantRead: return 0
            case .wantWrite: return blocked()
            case .closed: throw HTTPSClientError.connectionClosed
            }
        } catch {
            throw Self.translated(error)
        }
    }

    /// Waits until bytes may be there (or space, where a transfer needed it), the signal is given, or the deadline is
    /// over.
    package func wait(until deadline: MonotonicInstant) -> Event {
        if tls?.hasPendingBytes == true { return .ready }
        register()
        // Both may be ready at once.
        var events = [platform_event](repeating: platform_event(), count: 2)
        let count = unsafe platform_epoll_wait(poll.number, &events, 2, Self.milliseconds(until: deadline))
        wantsSpace = false
        guard count > 0 else { return .deadline }
        if events.prefix(Int(count)).contains(where: { $0.tag == Self.signalTag }) {
            signal.take()
            return .signal
        }
        return .ready
    }

    /// Waits for the socket alone.
    private func waitForSocket(until deadline: MonotonicInstant) -> Bool {
        platform_poll(socket.descriptor.number, wantsSpace ? 1 : 0, Self.milliseconds(until: deadline)) > 0
    }

    private func register() {
        let events = UInt32(PLATFORM_READABLE) | (wantsSpace ? UInt32(PLATFORM_WRITABLE) : 0)
        if events == registeredEvents { return }
        _ = platform_epoll_modify(poll.number, socket.descriptor.number, events, Self.socketTag)
        registeredEvents = events
    }

    /// Milliseconds until a moment, rounded up, so that a wait never ends just before it; -1 for one that never comes.
    static func milliseconds(until deadline: MonotonicInstant) -> Int32 {
        if deadline == .never { return -1 }
        let left = deadline.nanoseconds(since: MonotonicClock.now())
        return Int32(min(left / 1_000_000 + (left % 1_000_000 == 0 ? 0 : 1), 86_400_000))
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

extension OutboundConnection {
    /// Finds the addresses of hosts; one for each server that is connected to again and again.
    package final class Names: Sendable {
        private let resolver: NameResolution.Resolver
        private let lookups = NameResolution.Counter()

        /// - Parameter resolver: nil for the system's.
        package init(resolver: NameResolution.Resolver? = nil) {
            self.resolver = resolver ?? NameResolution.system
        }

        func addresses(
            of target: Target,
            _ signal: CancellationSignal,
            until deadline: MonotonicInstant
        ) throws(HTTPSClientError) -> [SocketAddress] {
            if let bytes = SocketAddress.addressBytes(target.host),
                let address = SocketAddress(bytes: bytes, port: target.port)
            {
                return [address]
            }
            return try NameResolution.addresses(
                of: target.host,
                resolver: resolver,
                counter: lookups,
                signal: signal,
                until: deadline
            ).map { $0.with(port: target.port) }
        }
    }
}
