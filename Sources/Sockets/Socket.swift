internal import CSystemCalls

/// The owner of one stream socket: non-blocking, closed on exec and when this value ends.
package struct Socket: ~Copyable {
    /// The descriptor beneath.
    package let descriptor: FileDescriptor

    package init(takingOwnershipOf descriptor: consuming FileDescriptor) {
        self.descriptor = descriptor
    }

    /// The outcome of a transfer that does not wait.
    package enum Transfer: Equatable, Sendable {
        /// So many bytes went through (at least 1).
        case bytes(Int)
        /// Nothing can go through now: wait for readiness.
        case wouldBlock
        /// The peer has ended its direction (receiving only).
        case endOfStream
    }

    /// The outcome of starting to connect.
    package enum ConnectProgress: Equatable, Sendable {
        case connected
        /// Wait until the socket is writable, then ask ``finishConnecting(to:)``.
        case inProgress
    }

    /// Makes an unconnected socket for the family of `address`.
    package static func make(for address: SocketAddress) throws(SocketError) -> Socket {
        let number = platform_tcp_socket(address.isIPv6 ? 1 : 0)
        guard number >= 0 else { throw SocketError(.createSocket, errorNumber: -number, address: .network(address)) }
        return Socket(takingOwnershipOf: FileDescriptor(takingOwnershipOf: number))
    }

    /// A listener bound to `address`.
    /// - Parameters:
    ///   - backlog: The greatest length of the accept queue; the system cuts it to `somaxconn`.
    ///   - sharesPort: Lets several sockets of this process listen on the same port (`SO_REUSEPORT`).
    package static func listener(
        on address: SocketAddress,
        backlog: Int32,
        sharesPort: Bool
    ) throws(SocketError) -> Socket {
        let socket = try make(for: address)
        let number = socket.descriptor.number
        try check(platform_set_reuse_address(number), .setOption, address)
        if sharesPort { try check(platform_set_reuse_port(number), .setOption, address) }
        if address.isIPv6 { try check(platform_set_ipv6_only(number), .setOption, address) }
        try socket.bind(to: address)
        try check(platform_listen(number, backlog), .listen, address)
        return socket
    }

    /// A socket bound to `address` that does not share its port and does not listen: it cannot be had while another
    /// socket listens there.
    package static func bound(to address: SocketAddress) throws(SocketError) -> Socket {
        let socket = try make(for: address)
        try check(platform_set_reuse_address(socket.descriptor.number), .setOption, address)
        if address.isIPv6 { try check(platform_set_ipv6_only(socket.descriptor.number), .setOption, address) }
        try socket.bind(to: address)
        return socket
    }

    private func bind(to address: SocketAddress) throws(SocketError) {
        var system = address.system
        try Self.check(unsafe platform_bind(descriptor.number, &system), .bind, address)
    }

    /// Gives the descriptor's number away: its taker closes it.
    package consuming func release() -> Int32 {
        descriptor.release()
    }

    /// Starts to connect.
    package func connect(to address: SocketAddress) throws(SocketError) -> ConnectProgress {
        var system = address.system
        let result = unsafe platform_connect(descriptor.number, &system)
        if result == 0 { return .connected }
        if result == -ErrorNumber.inProgress || result == -ErrorNumber.interrupted {
            return .inProgress
        }
        throw SocketError(.connect, errorNumber: -result, address: .network(address))
    }

    /// Says, once the socket is writable, whether the connection came about.
    package func finishConnecting(to address: SocketAddress) throws(SocketError) {
        let error = platform_socket_error(descriptor.number)
        if error != 0 { throw SocketError(.connect, errorNumber: error, address: .network(address)) }
    }

    /// Sends at once instead of waiting to fill a segment (`TCP_NODELAY`).
    package func setNoDelay() {
        _ = platform_set_no_delay(descriptor.number)
    }

    /// Ends the sending direction; the peer reads an end of stream after what was sent.
    package func shutdownWrite() {
        _ = platform_shutdown_write(descriptor.number)
    }

    /// The address this end is bound to.
    package func localAddress() throws(SocketError) -> SocketAddress {
        var system = platform_address()
        let result = unsafe platform_local_address(descriptor.number, &system)
        guard result >= 0 else { throw SocketError(.readAddress, errorNumber: -result) }
        return SocketAddress(system)
    }

    private static func check(
        _ result: Int32,
        _ operation: SocketError.Operation,
        _ address: SocketAddress
    ) throws(SocketError) {
        guard result >= 0 else { throw SocketError(operation, errorNumber: -result, address: .network(address)) }
    }
}

extension Socket {
    /// The address of the peer of a connected descriptor; nil where there is none (any more), and on a Unix socket, whose
    /// clients have none.
    package static func peerAddress(of descriptor: Int32) -> SocketAddress? {
        var system = platform_address()
        guard descriptor >= 0, unsafe platform_peer_address(descriptor, &system) >= 0 else { return nil }
        return SocketAddress(system)
    }
}

extension Socket {
    /// Receives what is there, at most `buffer.count` bytes, into the start of `buffer`.
    package func receive(into buffer: inout [UInt8]) throws(SocketError) -> Transfer {
        while true {
            // The system writes at most `count` bytes from the base address on, which is the whole array.
            let result = unsafe buffer.withUnsafeMutableBytes { bytes in
                unsafe platform_recv(descriptor.number, bytes.baseAddress, bytes.count)
            }
            if result > 0 { return .bytes(result) }
            if result == 0 { return .endOfStream }
            if result == -Int(ErrorNumber.interrupted) { continue }
            if result == -Int(ErrorNumber.again) { return .wouldBlock }
            throw SocketError(.receive, errorNumber: Int32(truncatingIfNeeded: -result))
        }
    }

    /// Sends from `bytes`, beginning at `offset` (0 … `bytes.count`); a peer that is gone is an error, never a signal.
    package func send(_ bytes: borrowing [UInt8], from offset: Int = 0) throws(SocketError) -> Transfer {
        guard offset >= 0, offset < bytes.count else { return .bytes(0) }
        while true {
            // 0 <= offset < count was checked above, so the rest of the array is what may be read.
            let result = unsafe bytes.withUnsafeBytes { all in
                unsafe platform_send(descriptor.number, all.baseAddress.map { unsafe $0 + offset }, all.count - offset)
            }
            if result >= 0 { return .bytes(result) }
            if result == -Int(ErrorNumber.interrupted) { continue }
            if result == -Int(ErrorNumber.again) { return .wouldBlock }
            throw SocketError(.send, errorNumber: Int32(truncatingIfNeeded: -result))
        }
    }
}

extension Socket {
    /// Makes an unconnected Unix stream socket.
    package static func makeUnix(for path: UnixSocketPath) throws(SocketError) -> Socket {
        let number = platform_unix_socket()
        guard number >= 0 else { throw SocketError(.createSocket, errorNumber: -number, address: .unix(path)) }
        return Socket(takingOwnershipOf: FileDescriptor(takingOwnershipOf: number))
    }

    /// Connects at once, or not at all: such a socket has no handshake to wait for.
    package func connect(to path: UnixSocketPath) throws(SocketError) {
        let text = path.description
        // The path's own bytes, as many as are counted.
        let result = unsafe text.withCString { unsafe platform_unix_connect(descriptor.number, $0, text.utf8.count) }
        guard result >= 0 else { throw SocketError(.connect, errorNumber: -result, address: .unix(path)) }
    }

    /// Makes the file; it must not be there.
    package func bind(to path: UnixSocketPath) throws(SocketError) {
        let text = path.description
        // The path's own bytes, as many as are counted.
        let result = unsafe text.withCString { unsafe platform_unix_bind(descriptor.number, $0, text.utf8.count) }
        guard result >= 0 else { throw SocketError(.bind, errorNumber: -result, address: .unix(path)) }
    }

    package func listen(on path: UnixSocketPath, backlog: Int32) throws(SocketError) {
        let result = platform_listen(descriptor.number, backlog)
        guard result >= 0 else { throw SocketError(.listen, errorNumber: -result, address: .unix(path)) }
    }
}

/// The owner of one file descriptor: it cannot be copied, and it is closed exactly once.
package struct FileDescriptor: ~Copyable {
    /// The number the system knows it by; valid as long as this value lives.
    package let number: Int32

    /// Takes over an open descriptor.
    package init(takingOwnershipOf number: Int32) {
        self.number = number
    }

    /// Gives the number away: its taker closes it.
    package consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }

    /// Closes the descriptor now. The system frees the number even where it reports an error, so a close is not repeated.
    package consuming func close() {}

    deinit {
        _ = platform_close(number)
    }
}
