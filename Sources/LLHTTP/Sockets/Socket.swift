internal import CLLSystem
@_exported public import LLBytes

/// The owner of one stream socket: non-blocking, closed on exec and when this value ends.
package struct Socket: ~Copyable {
    package let descriptor: Int32

    package init(takingOwnershipOf descriptor: Int32) { self.descriptor = descriptor }

    deinit {
        // The system frees the number even if it reports an error, so a close is not repeated.
        _ = platform_close(descriptor)
    }

    package enum Transfer: Equatable, Sendable {
        /// This number of bytes was transferred (at least 1).
        case bytes(Int)
        /// No byte can be transferred now: wait until the descriptor is readable or writable, then repeat the call.
        case wantRead, wantWrite
        /// The peer has ended its direction; under TLS with close_notify, so that the stream is whole.
        case closed
        /// The system reported this error number.
        case failed(Int32)
    }

    package static func make(for address: ListenAddress) throws(SocketError) -> Socket {
        let (bytes, port) = address.system
        let number = platform_socket(bytes.count, port)
        try check(number, .createSocket, address)
        return Socket(takingOwnershipOf: number)
    }

    /// - Parameter sharesPort: Lets several sockets of this process listen on the same port (`SO_REUSEPORT`).
    package static func listener(
        on address: SocketAddress,
        backlog: Int32,
        sharesPort: Bool
    ) throws(SocketError) -> Socket {
        let socket = try bound(to: address, sharesPort: sharesPort)
        try check(platform_listen(socket.descriptor, backlog), .listen, .network(address))
        return socket
    }

    /// A socket bound to `address` that does not listen. Without `sharesPort` the call fails while another socket
    /// listens there.
    package static func bound(to address: SocketAddress, sharesPort: Bool = false) throws(SocketError) -> Socket {
        let place = ListenAddress.network(address)
        let socket = try make(for: place)
        let number = socket.descriptor
        try check(platform_set_reuse_address(number), .setOption, place)
        if sharesPort { try check(platform_set_reuse_port(number), .setOption, place) }
        if address.isIPv6 { try check(platform_set_ipv6_only(number), .setOption, place) }
        try socket.bind(to: place)
        return socket
    }

    /// A socket that keeps other processes from `address` until sockets of this process that share the port listen
    /// there. The call fails if any socket listens there: the system lets at most one of two claims listen. The claim
    /// accepts no connections; clients retry after a moment.
    package static func claim(on address: SocketAddress) throws(SocketError) -> Socket {
        let socket = try bound(to: address)
        _ = platform_refuse_new_connections(socket.descriptor)
        try check(platform_listen(socket.descriptor, 1), .listen, .network(address))
        // Sockets of this user may share the port from here on if they ask for it; another claim does not ask.
        try check(platform_set_reuse_port(socket.descriptor), .setOption, .network(address))
        return socket
    }

    /// The caller closes the descriptor.
    package consuming func release() -> Int32 {
        let descriptor = descriptor
        discard self
        return descriptor
    }

    /// For a Unix socket this makes its file, which must not exist yet.
    package func bind(to address: ListenAddress) throws(SocketError) {
        let (bytes, port) = address.system
        try Self.check(unsafe platform_bind(descriptor, bytes, bytes.count, port), .bind, address)
    }

    /// - Returns: False if it takes longer: wait until the socket is writable, then call ``finishConnecting(to:)``. A
    ///   Unix socket connects at once or fails, since it has no handshake to wait for.
    package func connect(to address: ListenAddress) throws(SocketError) -> Bool {
        let (bytes, port) = address.system
        let result = unsafe platform_connect(descriptor, bytes, bytes.count, port)
        if result == -EINPROGRESS || result == -EINTR { return false }
        try Self.check(result, .connect, address)
        return true
    }

    /// Throws the error of a failed connect, once the socket is writable.
    package func finishConnecting(to address: ListenAddress) throws(SocketError) {
        try Self.check(-platform_socket_error(descriptor), .connect, address)
    }

    /// Sends at once instead of waiting to fill a segment (`TCP_NODELAY`).
    package func setNoDelay() { _ = platform_set_no_delay(descriptor) }

    package func localAddress() throws(SocketError) -> SocketAddress {
        var system = platform_address()
        try Self.check(unsafe platform_local_address(descriptor, &system), .readAddress, nil)
        return SocketAddress(system)
    }

    /// The address of the peer of a connected descriptor. Nil if there is no peer (any more), and on a Unix socket,
    /// since clients have no address there.
    package static func peerAddress(of descriptor: Int32) -> SocketAddress? {
        var system = platform_address()
        guard descriptor >= 0, unsafe platform_peer_address(descriptor, &system) >= 0 else { return nil }
        return SocketAddress(system)
    }

    static func check(
        _ result: Int32,
        _ operation: SocketError.Operation,
        _ address: ListenAddress?
    ) throws(SocketError) {
        if result < 0 { throw SocketError(operation, errorNumber: -result, address: address) }
    }

    package static func receive(_ descriptor: Int32, into buffer: inout [UInt8], atMost most: Int = .max) -> Transfer {
        let room = min(buffer.count, most)
        // The system writes at most this number of bytes, all within the array.
        let result = unsafe platform_recv(descriptor, &buffer, room)
        return result == 0 ? .closed : transfer(of: result, orWait: .wantRead)
    }

    /// Sends `bytes` from `offset` on. A disconnected peer causes an error, never a signal.
    package static func send(_ descriptor: Int32, _ bytes: [UInt8], from offset: Int = 0) -> Transfer {
        guard offset >= 0, offset < bytes.count else { return .bytes(0) }
        // 0 <= offset < count, so the call reads only the rest of the array.
        let result = unsafe bytes.withUnsafeBytes { all in
            unsafe platform_send(descriptor, all.baseAddress.map { unsafe $0 + offset }, all.count - offset)
        }
        return transfer(of: result, orWait: .wantWrite)
    }

    private static func transfer(of result: Int, orWait wait: Transfer) -> Transfer {
        if result >= 0 { return .bytes(result) }
        switch Int32(truncatingIfNeeded: -result) {
        case EAGAIN, EINTR, ENOBUFS: return wait
        case let number: return .failed(number)
        }
    }

    /// The descriptor, or the negated error number. `peer` is set if the accepted connection has a peer address; clients
    /// of a Unix socket have none.
    package static func accept(_ listener: Int32, peer: inout SocketAddress?) -> Int32 {
        var address = platform_address()
        let result = unsafe platform_accept(listener, &address)
        peer = result >= 0 && address.port != 0 ? SocketAddress(address) : nil
        return result
    }

    /// Makes an empty file in memory (memfd_create(2)); the result is its descriptor, or the negated error number.
    package static func memoryFile() -> Int32 { platform_memory_file() }
}

package struct SocketError: Error, Equatable, CustomStringConvertible {
    package enum Operation: String, Sendable {
        case createSocket = "create a socket"
        case setOption = "set a socket option"
        case bind = "bind to"
        case listen = "listen on"
        case connect = "connect to"
        case send = "send to"
        case createPoll = "create an epoll set"
        case controlPoll = "change an epoll set"
        case createEventDescriptor = "create an event descriptor"
        case readAddress = "read the address of"
        case setMode = "set the permissions of"
        case replace
    }

    package let operation: Operation
    package let errorNumber: Int32
    package let address: ListenAddress?

    package init(_ operation: Operation, errorNumber: Int32, address: ListenAddress? = nil) {
        self.operation = operation
        self.errorNumber = errorNumber
        self.address = address
    }

    /// One sentence, for instance `cannot bind to 127.0.0.1:8080: Address already in use`.
    package var description: String {
        let place = address.map { " \($0)" } ?? ""
        // errno's text would mislead here.
        let isOther = operation == .replace && errorNumber == ENOTSOCK
        let reason =
            isOther ? "the file there is no socket, so it is left alone" : SystemReason.sentence(for: errorNumber)
        return "cannot \(operation.rawValue)\(place): \(reason)"
    }
}
