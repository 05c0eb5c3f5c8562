internal import CSystemCalls

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
