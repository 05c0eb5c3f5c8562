internal import Dispatch
internal import Glibc
internal import LLHTTP

/// A listener on loopback. Its own thread accepts connections until ``stop()``; each connection has a thread of its own.
///
/// The descriptor is closed once and not used afterwards: the system may have given its number to another test.
final class ScriptedListener: Sendable {
    let port: UInt16
    private let descriptor: Int32
    private let isStopping = Locked(false)
    private let accepting = DispatchGroup()
    private let peers = Locked<(count: Int, open: [ObjectIdentifier: ScriptedPeer])>((0, [:]))

    /// The number of connections that ``serve(_:)`` took.
    var connectionCount: Int { peers.withLock { $0.count } }

    /// Listens at once on a free port of 127.0.0.1 (or ::1).
    init(ipv6: Bool = false) throws {
        let address = ipv6 ? SocketAddress.loopbackIPv6(port: 0) : .loopback(port: 0)
        let socket = try Socket.listener(on: address, backlog: 256, sharesPort: false)
        port = try socket.localAddress().port
        descriptor = socket.release()
    }

    /// Calls `serve` with each connection.
    func serve(_ serve: @escaping @Sendable (ScriptedPeer) -> Void) {
        DispatchQueue(label: "scripted-listener").async(group: accepting) { [self] in
            while !isStopping.withLock(\.self) {
                var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                _ = unsafe poll(&waiting, 1, -1)
                let number = accept(descriptor, nil, nil)
                guard number >= 0 else { continue }
                _ = fcntl(number, F_SETFD, FD_CLOEXEC)
                // TLS and the waits need a non-blocking socket.
                _ = fcntl(number, F_SETFL, O_NONBLOCK)
                let peer = ScriptedPeer(Socket(takingOwnershipOf: number))
                peers.withLock { peers in
                    peers.count += 1
                    peers.open[ObjectIdentifier(peer)] = peer
                }
                DispatchQueue(label: "scripted-connection").async { [self] in
                    serve(peer)
                    peers.withLock { _ = $0.open.removeValue(forKey: ObjectIdentifier(peer)) }
                }
            }
        }
    }

    /// Stops the listener. On return the thread has ended, the socket is closed and every served connection is
    /// interrupted. Further calls do nothing.
    func stop() {
        let isFirst = isStopping.withLock { isStopping in
            defer { isStopping = true }
            return !isStopping
        }
        guard isFirst else { return }
        // Wakes the thread.
        _ = shutdown(descriptor, Int32(SHUT_RDWR))
        accepting.wait()
        _ = close(descriptor)
        for peer in peers.withLock({ Array($0.open.values) }) { peer.interrupt() }
    }
}
