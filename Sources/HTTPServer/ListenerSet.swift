internal import Sockets

/// The listeners of a server: for each worker one on each address. All workers share a port, each with a queue of its
/// own; a Unix socket they share with its one queue.
struct ListenerSet {
    /// For each worker, its listeners.
    var listeners: [[Listener]]
    /// The bound addresses, in the order asked for.
    var addresses: [ListenAddress]

    /// Binds everything, or nothing.
    static func make(configuration: HTTPServerConfiguration, workerCount: Int) throws(SocketError) -> ListenerSet {
        var set = ListenerSet(listeners: Array(repeating: [], count: workerCount), addresses: [])
        let backlog = configuration.limits.backlog
        do throws(SocketError) {
            for address in configuration.addresses {
                switch address {
                case .network(let address): try set.add(address, backlog: backlog)
                case .unix(let path): try set.add(path, mode: configuration.socketMode, backlog: backlog)
                }
            }
        } catch {
            for listener in set.listeners.joined() { listener.close(SystemCalls()) }
            throw error
        }
        return set
    }

    private mutating func add(_ address: SocketAddress, backlog: Int32) throws(SocketError) {
        var bound = address
        // A shared port would be shared with another process of the same user too, in silence: a bind that does not share
        // fails where somebody listens.
        if address.port != 0 { _ = try Socket.bound(to: address) }
        for worker in listeners.indices {
            let socket = try Socket.listener(on: bound, backlog: backlog, sharesPort: true)
            // Accepted sockets inherit it, so that no accept costs a further call.
            socket.setNoDelay()
            if worker == 0 { bound = try socket.localAddress() }
            listeners[worker].append(Listener(descriptor: socket.release(), file: nil))
        }
        addresses.append(.network(bound))
    }

    private mutating func add(_ path: UnixSocketPath, mode: UnixSocketMode, backlog: Int32) throws(SocketError) {
        let made = try UnixListener(on: path, mode: mode, backlog: backlog)
        // Each worker has a number of its own, so that each closes what is its own.
        for worker in listeners.indices {
            do throws(SocketError) {
                listeners[worker].append(Listener(descriptor: try made.duplicate(), file: made.file))
            } catch {
                made.file.remove()
                throw error
            }
        }
        addresses.append(.unix(path))
    }
}

/// A listening socket as one worker has it.
struct Listener: Sendable {
    /// The worker's own, to be closed by it.
    let descriptor: Int32
    /// The file of a Unix socket, whose queue all workers take connections from; nil where the worker has a queue of its
    /// own (a port shared by `SO_REUSEPORT`).
    let file: UnixSocketFile?

    var isShared: Bool { file != nil }

    /// Closes it. The file goes first: while anybody listens, no other process takes its path (see ``UnixListener``).
    func close(_ system: SystemCalls) {
        file?.remove()
        system.close(descriptor)
    }
}
