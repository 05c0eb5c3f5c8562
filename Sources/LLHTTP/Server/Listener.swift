internal import CLLSystem
internal import Synchronization

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

extension Worker {
    /// - Returns: False if the queue is empty or accepting must pause.
    @discardableResult
    mutating func acceptConnections() -> Bool {
        guard let listener else { return false }
        for _ in 0..<limits.acceptsPerWake {
            var address: SocketAddress?
            let result = Socket.accept(listener.descriptor, peer: &address)
            if result >= 0 {
                if listener.file != nil, assign(result) { continue }
                handle.load.wrappingAdd(1, ordering: .relaxed)
                admit(result, from: countedPeer(address))
                continue
            }
            switch -result {
            case EAGAIN: return false
            // The client disconnected before it was accepted, or a signal came: another connection may wait.
            case ECONNABORTED, EPROTO, EINTR: continue
            case EMFILE, ENFILE:
                if makeRoom(for: nil) { continue }
                host.counters.overloaded += 1
                fallthrough
            default:
                pauseAccepting()
                return false
            }
        }
        return true
    }

    /// Hands a connection of a Unix socket to the worker with the fewest connections. At most the reserve waits there, which
    /// the limit of connections does not count yet.
    /// - Returns: False if that is this worker, or if it takes no more.
    private func assign(_ descriptor: Int32) -> Bool {
        let handles = server.handles.withLock { $0 }
        let least = handles.min { $0.load.load(ordering: .relaxed) < $1.load.load(ordering: .relaxed) }
        guard let least, least !== handle, !isDraining,
            least.send(.serve(descriptor), unless: limits.reservedConnections)
        else { return false }
        least.load.wrappingAdd(1, ordering: .relaxed)
        return true
    }

    /// Keeps to the limit. Another connection makes room; otherwise the new one is held in the reserve for one answer
    /// (503, or that of a health check). Beyond the reserve it gets 503 and is closed.
    mutating func admit(_ descriptor: Int32, from peer: Peer?) {
        now = MonotonicClock.now()
        host.counters.accepted += 1
        let open = server.openConnections.wrappingAdd(1, ordering: .relaxed).newValue
        if open <= limits.connections || asksForRoom(for: peer, open) || makeRoom(for: peer) {
            add(descriptor, from: peer, isOverLimit: false)
        } else if open <= limits.connections + limits.reservedConnections {
            add(descriptor, from: peer, isOverLimit: true)
        } else {
            // No connection may wait here, so neither a request is read nor a TLS handshake made; only the bytes that
            // the socket takes at once are sent.
            if tls == nil { _ = Socket.send(descriptor, Self.fullAnswer) }
            platform_close(descriptor)
            didClose(.limit)
        }
    }

    mutating func didClose(_ cause: ConnectionCloseCause) {
        server.openConnections.wrappingSubtract(1, ordering: .relaxed)
        handle.load.wrappingSubtract(1, ordering: .relaxed)
        host.counters.closed[cause, default: 0] += 1
        publish()
    }

    /// RFC 9110 §15.6.4.
    private static let fullAnswer = Array(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8
    )

    /// Nil for a trusted peer, and for one without an address.
    private func countedPeer(_ address: SocketAddress?) -> Peer? {
        guard let address else { return nil }
        return limits.trustedPeers.contains { $0.contains(address) } ? nil : Peer(address)
    }

    private mutating func pauseAccepting() {
        if acceptPausedUntil != .never { return }
        acceptPausedUntil = now + limits.acceptPause
        watchListener(false)
    }

    mutating func resumeAccepting() {
        acceptPausedUntil = .never
        // A Unix socket that refuses connections would be readable for ever.
        if !listenerIsRefusing { watchListener(true) }
    }

    private mutating func watchListener(_ isWatched: Bool) {
        guard let listener else { return }
        let events = isWatched ? PLATFORM_READABLE : 0
        let result = platform_epoll_modify(handle.poll, listener.descriptor, events, Self.listenerTag)
        // The worker tries again when the pause is over.
        if result < 0, isWatched { acceptPausedUntil = now + limits.acceptPause }
    }
}
