internal import CLLSystem

struct Listener: Sendable {
    /// The worker closes it.
    let descriptor: Int32
    /// The file of a Unix socket: its connections are for all workers. Nil for a port, where each worker has its own queue
    /// (`SO_REUSEPORT`).
    var file: UnixSocketFile?

    /// Closes the socket. The file is removed first: no other process takes the path while a socket listens.
    func close() {
        file?.remove()
        platform_close(descriptor)
    }
}

extension Listener {
    /// Takes a path: makes the file, or replaces a socket that no process listens on any more. Only one process may
    /// start on a path at a time.
    ///
    /// A socket refuses every connection until it listens, so no client connects before the permissions are right.
    init(on path: UnixSocketPath, mode: UnixSocketMode, backlog: Int32) throws(SocketError) {
        let address = ListenAddress.unix(path)
        let socket = try Socket.make(for: address)
        do throws(SocketError) {
            try socket.bind(to: address)
        } catch {
            guard error.errorNumber == EADDRINUSE else { throw error }
            try Self.removeStale(path)
            try socket.bind(to: address)
        }
        guard let file = UnixSocketFile(at: path) else {
            throw SocketError(.bind, errorNumber: ENOENT, address: address)
        }
        do throws(SocketError) {
            try Socket.check(unsafe platform_change_mode(path.description, mode.bits), .setMode, address)
            try Socket.check(platform_listen(socket.descriptor, backlog), .listen, address)
        } catch {
            file.remove()
            throw error
        }
        self.init(descriptor: socket.release(), file: file)
    }

    /// Removes the file of a socket if its process has ended, and no other file.
    private static func removeStale(_ path: UnixSocketPath) throws(SocketError) {
        let address = ListenAddress.unix(path)
        guard let found = UnixSocketFile(at: path) else { return }
        guard found.isSocket else { throw SocketError(.replace, errorNumber: ENOTSOCK, address: address) }
        let probe = try Socket.make(for: address)
        do throws(SocketError) {
            _ = try probe.connect(to: address)
        } catch {
            switch error.errorNumber {
            case ECONNREFUSED:
                return try Socket.check(unsafe platform_unlink(path.description), .replace, address)
            // A process listens there, and its queue is full.
            case EAGAIN: break
            default: throw error
            }
        }
        throw SocketError(.bind, errorNumber: EADDRINUSE, address: address)
    }
}

/// The file at a path, as it was when this value was made.
struct UnixSocketFile: Sendable {
    private let path: UnixSocketPath
    private var facts = platform_file()

    /// Nil if there is no file, or if this process may not examine it.
    init?(at path: UnixSocketPath) {
        self.path = path
        guard unsafe platform_file_facts(path.description, &facts) >= 0 else { return nil }
    }

    var isSocket: Bool { facts.is_socket != 0 }

    /// Removes the file, unless it is gone or another one has replaced it: the system gives the inode to no other file
    /// while the socket is open.
    func remove() {
        guard let now = Self(at: path)?.facts, now.device == facts.device, now.inode == facts.inode else { return }
        // If this is not allowed, the next start finds that no process listens there.
        _ = unsafe platform_unlink(path.description)
    }
}
