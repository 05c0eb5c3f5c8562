internal import CLLSystem

extension Listener {
    /// Takes a path: makes the file, or replaces a socket that no process listens on any more. Only one process may
    /// start on a path at a time.
    ///
    /// A socket refuses every connection until it listens, so no client connects before the permissions are right.
    init(on path: UnixSocketPath, mode: UnixSocketMode, backlog: Int32) throws(SocketError) {
        let socket = try Socket.makeUnix(for: path)
        do throws(SocketError) {
            try socket.bind(to: path)
        } catch {
            guard error.errorNumber == EADDRINUSE else { throw error }
            try Self.removeStale(path)
            try socket.bind(to: path)
        }
        guard let file = UnixSocketFile(at: path) else {
            throw SocketError(.bind, errorNumber: ENOENT, address: .unix(path))
        }
        do throws(SocketError) {
            let result = unsafe platform_change_mode(path.description, mode.bits)
            try Socket.check(result, .setMode, .unix(path))
            try Socket.check(platform_listen(socket.descriptor, backlog), .listen, .unix(path))
        } catch {
            file.remove()
            throw error
        }
        self.init(descriptor: socket.release(), file: file)
    }

    /// Removes the file of a socket if its process has ended, and no other file.
    private static func removeStale(_ path: UnixSocketPath) throws(SocketError) {
        guard let found = UnixSocketFile.facts(of: path) else { return }
        guard found.is_socket != 0 else {
            throw SocketError(.replace, errorNumber: ENOTSOCK, address: .unix(path))
        }
        let probe = try Socket.makeUnix(for: path)
        do throws(SocketError) {
            try probe.connect(to: path)
        } catch {
            switch error.errorNumber {
            case ECONNREFUSED:
                let result = unsafe platform_unlink(path.description)
                return try Socket.check(result, .replace, .unix(path))
            // A process listens there, and its queue is full.
            case EAGAIN: break
            default: throw error
            }
        }
        throw SocketError(.bind, errorNumber: EADDRINUSE, address: .unix(path))
    }
}

package struct UnixSocketFile: Sendable {
    private let path: UnixSocketPath
    private let facts: platform_file

    init?(at path: UnixSocketPath) {
        guard let facts = Self.facts(of: path) else { return nil }
        (self.path, self.facts) = (path, facts)
    }

    /// Nil if there is no file, or if this process may not examine it.
    fileprivate static func facts(of path: UnixSocketPath) -> platform_file? {
        var facts = platform_file()
        return unsafe platform_file_facts(path.description, &facts) >= 0 ? facts : nil
    }

    /// Removes the file, unless it is gone or another one has replaced it: the system gives the inode to no other file
    /// while the socket is open.
    func remove() {
        guard let now = Self.facts(of: path), now.device == facts.device, now.inode == facts.inode else { return }
        // If this is not allowed, the next start finds that no process listens there.
        _ = unsafe platform_unlink(path.description)
    }
}
