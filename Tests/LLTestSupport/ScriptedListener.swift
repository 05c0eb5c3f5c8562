internal import Dispatch
internal import Glibc
internal import LLSockets
internal import Synchronization

/// A listener on loopback; one thread of its own takes its connections until ``stop()``.
///
/// The number of the socket is closed once, and not used after that: the system may have given it to another test.
final class ScriptedListener: Sendable {
    let port: UInt16
    private let descriptor: Int32
    private let isStopping = Atomic<Bool>(false)
    private let isClosed = Locked(false)
    private let accepting = DispatchGroup()

    /// Listens at once on a free port of 127.0.0.1 (or ::1).
    init(ipv6: Bool = false) throws {
        let address = ipv6 ? SocketAddress.loopbackIPv6(port: 0) : .loopback(port: 0)
        let socket = try Socket.listener(on: address, backlog: 256, sharesPort: false)
        port = try socket.localAddress().port
        descriptor = socket.release()
    }

    /// Has `take` called with each connection, which does not block; the connection is `take`'s to close.
    func accept(_ take: @escaping @Sendable (consuming Socket) -> Void) {
        DispatchQueue(label: "scripted-listener").async(group: accepting) { [self] in
            while !isStopping.load(ordering: .acquiring) {
                var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                _ = unsafe poll(&waiting, 1, -1)
                let number = Glibc.accept(descriptor, nil, nil)
                guard number >= 0 else { continue }
                _ = fcntl(number, F_SETFD, FD_CLOEXEC)
                take(Socket(takingOwnershipOf: number))
            }
        }
    }

    /// Returns when the thread has ended and the socket is closed; further calls do nothing.
    func stop() {
        isClosed.withLock { isClosed in
            guard !isClosed else { return }
            isClosed = true
            isStopping.store(true, ordering: .releasing)
            // Wakes the thread.
            _ = shutdown(descriptor, Int32(SHUT_RDWR))
            accepting.wait()
            _ = close(descriptor)
        }
    }
}
