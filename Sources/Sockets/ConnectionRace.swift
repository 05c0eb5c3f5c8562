/// Connects to the first of several addresses that accepts, each with a head start over the next (RFC 8305, 5).
package struct ConnectionRace: ~Copyable {
    /// Addresses tried for one name. 8: a resolver's long answer must not cost descriptors.
    package static let addressCount = 8
    /// Head start of one address over the next. 250 ms: the Connection Attempt Delay of RFC 8305, 5.
    package static let headStart: Duration = .milliseconds(250)

    private let addresses: [SocketAddress]
    private let headStart: Duration
    private let waiter: DeadlineWaiter
    // Attempts under way hold their socket; ended ones are nil. The index is that of the address.
    private var attempts: [SocketAttempt] = []
    private var lastReason = "there is no address"

    package init(
        _ addresses: [SocketAddress],
        addressCount: Int = Self.addressCount,
        headStart: Duration = Self.headStart,
        signal: CancellationSignal
    ) throws(HTTPSClientError) {
        self.addresses = Array(addresses.prefix(addressCount))
        self.headStart = headStart
        waiter = try DeadlineWaiter(signal: signal)
    }

    /// The socket of the first address that accepted. `deadline` bounds all attempts together.
    package consuming func run(until deadline: MonotonicInstant) throws(HTTPSClientError) -> Socket {
        var next = 0
        while true {
            if next < addresses.count {
                if let winner = try begin(addresses[next]) { return try take(winner) }
                next += 1
            }
            let isLast = next >= addresses.count
            if isLast, !attempts.contains(where: { $0.isUnderWay }) { throw .connectFailed(reason: lastReason) }
            guard attempts.contains(where: { $0.isUnderWay }) else { continue }
            let pause = isLast ? deadline : min(deadline, MonotonicClock.now() + headStart)
            if let ready = try waiter.wait(until: pause) {
                if finish(ready) { return try take(ready) }
            } else if MonotonicClock.now() >= deadline {
                throw .timedOut(phase: .connecting)
            }
        }
    }

    /// Begins an attempt; answers its number when it succeeded at once.
    private mutating func begin(_ address: SocketAddress) throws(HTTPSClientError) -> Int? {
        let number = attempts.count
        let attempt = SocketAttempt(address)
        attempts.append(attempt)
        switch attempt.begin() {
        case .success(.connected):
            return number
        case .success(.inProgress):
            if let descriptor = attempt.descriptor { try waiter.add(descriptor, .writing, tag: number) }
            return nil
        case .failure(let error):
            lastReason = error.description
            return nil
        }
    }

    /// Whether the attempt that became ready has connected.
    private mutating func finish(_ number: Int) -> Bool {
        guard attempts.indices.contains(number) else { return false }
        if let descriptor = attempts[number].descriptor { waiter.remove(descriptor) }
        guard let error = attempts[number].finish() else { return true }
        lastReason = error.description
        return false
    }

    private mutating func take(_ number: Int) throws(HTTPSClientError) -> Socket {
        // The losers' sockets close with their owners.
        guard attempts.indices.contains(number), let socket = attempts[number].release() else {
            throw .connectFailed(reason: lastReason)
        }
        socket.setNoDelay()
        return socket
    }
}

/// One attempt to connect; a class, for an array cannot hold a socket that must not be copied.
private final class SocketAttempt {
    private let address: SocketAddress
    private var socket: Socket?

    package init(_ address: SocketAddress) {
        self.address = address
    }

    package var isUnderWay: Bool { descriptor != nil }

    package var descriptor: Int32? {
        switch socket {
        case .some(let socket): socket.descriptor.number
        case nil: nil
        }
    }

    package func begin() -> Result<Socket.ConnectProgress, SocketError> {
        do throws(SocketError) {
            let socket = try Socket.make(for: address)
            let progress = try socket.connect(to: address)
            self.socket = consume socket
            return .success(progress)
        } catch {
            return .failure(error)
        }
    }

    /// Why the attempt failed, or nil when it has connected.
    package func finish() -> SocketError? {
        do throws(SocketError) {
            switch socket {
            case .some(let socket): try socket.finishConnecting(to: address)
            case nil: return SocketError(.connect, errorNumber: ErrorNumber.invalid, address: .network(address))
            }
            return nil
        } catch {
            socket = nil
            return error
        }
    }

    package func release() -> Socket? { socket.take() }
}
