internal import CLLSystem

/// A listening Unix socket with its file.
extension Listener {
    /// Takes a path: makes the file, or replaces a socket that no process listens on any more. Only one process may
    /// start on a path at a time.
    ///
    /// A socket refuses every connection until it listens, so no client connects before the permissions are right.
    init(on path: UnixSocketPath, mode: UnixSocketMode, backlog: Int32) throws(SocketError) {
        let socket = try Self.bound(to: path)
        guard let file = UnixSocketFile(at: path) else {
            throw SocketError(.bind, errorNumber: ErrorNumber.noSuchFile, address: .unix(path))
        }
        do throws(SocketError) {
            try Self.setMode(mode, of: path)
            try Socket.check(platform_listen(socket.descriptor, backlog), .listen, .unix(path))
        } catch {
            file.remove()
            throw error
        }
        self.init(descriptor: socket.release(), file: file)
    }

    private static func bound(to path: UnixSocketPath) throws(SocketError) -> Socket {
        let socket = try Socket.makeUnix(for: path)
        do throws(SocketError) {
            try socket.bind(to: path)
        } catch {
            guard error.errorNumber == ErrorNumber.addressInUse else { throw error }
            try removeStale(path)
            try socket.bind(to: path)
        }
        return socket
    }

    /// Removes the file of a socket if its process has ended, and no other file.
    private static func removeStale(_ path: UnixSocketPath) throws(SocketError) {
        guard let found = UnixSocketFile.Identity(of: path) else { return }
        guard found.isSocket else {
            throw SocketError(.replace, errorNumber: ErrorNumber.notSocket, address: .unix(path))
        }
        let probe = try Socket.makeUnix(for: path)
        do throws(SocketError) {
            try probe.connect(to: path)
        } catch {
            switch error.errorNumber {
            case ErrorNumber.connectionRefused:
                let result = unsafe path.description.withCString { unsafe platform_unlink($0) }
                return try Socket.check(result, .replace, .unix(path))
            // A process listens there, and its queue is full.
            case ErrorNumber.again: break
            default: throw error
            }
        }
        throw SocketError(.bind, errorNumber: ErrorNumber.addressInUse, address: .unix(path))
    }

    private static func setMode(_ mode: UnixSocketMode, of path: UnixSocketPath) throws(SocketError) {
        let result = unsafe path.description.withCString { unsafe platform_change_mode($0, mode.bits) }
        try Socket.check(result, .setMode, .unix(path))
    }
}

/// The file of a Unix socket that this process has bound.
package final class UnixSocketFile: Sendable {
    package struct Identity: Equatable {
        let device: UInt64
        let inode: UInt64
        let isSocket: Bool

        /// Nil if there is no file, or if this process may not examine it.
        init?(of path: UnixSocketPath) {
            var file = platform_file()
            let result = unsafe path.description.withCString { unsafe platform_file_facts($0, &file) }
            guard result >= 0 else { return nil }
            device = file.device
            inode = file.inode
            isSocket = file.is_socket != 0
        }
    }

    private let path: UnixSocketPath
    private let identity: Identity
    private let isRemoved = Locked(false)

    /// The file that `path` names now; nil if there is none.
    package init?(at path: UnixSocketPath) {
        guard let identity = Identity(of: path) else { return nil }
        self.path = path
        self.identity = identity
    }

    /// Removes the file, unless another one has replaced it. The first call removes it, and the others return after
    /// that. The system gives the inode to no other file while the socket is open.
    package func remove() {
        isRemoved.withLock { isRemoved in
            guard !isRemoved else { return }
            isRemoved = true
            guard Identity(of: path) == identity else { return }
            // If this is not allowed, the next start finds that no process listens there.
            _ = unsafe path.description.withCString { unsafe platform_unlink($0) }
        }
    }
}
