/// The listeners of a server: for each worker one on each address, all workers sharing the ports.
struct ListenerSet {
    /// For each worker, its listeners' descriptors.
    var listeners: [[Int32]]
    /// The bound addresses, in the order asked for.
    var addresses: [SocketAddress]

    /// Binds everything, or nothing.
    static func make(
        addresses: [SocketAddress],
        workerCount: Int,
        backlog: Int32
    ) throws(SocketError) -> ListenerSet {
        var set = ListenerSet(listeners: Array(repeating: [], count: workerCount), addresses: [])
        do throws(SocketError) {
            for address in addresses {
                var bound = address
                if address.port != 0 { try checkIsFree(address) }
                for worker in 0..<workerCount {
                    let socket = try Socket.listener(on: bound, backlog: backlog, sharesPort: true)
                    // Accepted sockets inherit it, so that no accept costs a further call.
                    socket.setNoDelay()
                    if worker == 0 { bound = try socket.localAddress() }
                    set.listeners[worker].append(socket.release())
                }
                set.addresses.append(bound)
            }
        } catch {
            set.closeAll()
            throw error
        }
        return set
    }

    /// A shared port would be shared with another process of the same user too, in silence: a bind that does not share
    /// fails where somebody listens.
    private static func checkIsFree(_ address: SocketAddress) throws(SocketError) {
        _ = try Socket.bound(to: address)
    }

    private func closeAll() {
        for descriptor in listeners.joined() {
            FileDescriptor(takingOwnershipOf: descriptor).close()
        }
    }
}
