/// Connects to the first of several addresses that accepts, each with a head start over the next (RFC 8305, 5).
package struct ConnectionRace {
    /// What bounds a race.
    package struct Limits: Sendable, Equatable {
        /// From the first attempt to connect until one address has accepted. 3 s: three SYNs, so one lost packet is
        /// survived and a dead address is given up before the waiters' patience ends with the whole fetch.
        package var timeout: Duration = .seconds(3)
        /// Addresses tried for one name. 8: a resolver's long answer must not cost descriptors.
        package var addressCount = 8
        /// Head start of one address over the next. 250 ms: the Connection Attempt Delay of RFC 8305, 5.
        package var headStart: Duration = .milliseconds(250)

        package init() {}
    }

    private let addresses: [SocketAddress]
    private let headStart: Duration
    // Attempts under way hold their socket; ended ones are nil. The index is that of the address.
    private var attempts: [SocketAttempt] = []
    private var lastReason = "there is no address"

    package init(_ addresses: [SocketAddress], limits: Limits) {
        self.addresses = Array(addresses.prefix(limits.addressCount))
        headStart = limits.headStart
    }

    /// The socket of the first address that accepted. `deadline` bounds all attempts together.
    package mutating func run(
        cancelledBy cancellation: WakeSignal?,
        until deadline: MonotonicInstant
    ) throws(StreamError) -> Socket {
        var next = 0
        while true {
            if next < addresses.count {
                if let winner = begin(addresses[next]) { return try take(winner) }
                next += 1
            }
            let isLast = next >= addresses.count
            let underWay = attempts.indices.filter { attempts[$0].descriptor != nil }
            if underWay.isEmpty {
                if isLast { throw .connectFailed(reason: lastReason) }
                continue
            }
            let interests = underWay.map { number in
                BlockingWait.Interest(attempts[number].descriptor ?? -1, wantsInput: false, wantsSpace: true)
            }
            let pause = isLast ? deadline : min(deadline, MonotonicClock.now() + headStart)
            switch BlockingWait.wait(for: interests, or: cancellation, until: pause) {
            case .ready(let position):
                if finish(underWay[position]) { return try take(underWay[position]) }
            case .signal: throw .cancelled
            case .deadline:
                if MonotonicClock.now() >= deadline { throw .timedOut(phase: .connecting) }
            }
        }
    }

    /// Begins an attempt; answers its number when it succeeded at once.
    private mutating func begin(_ address: SocketAddress) -> Int? {
        let number = attempts.count
        let attempt = SocketAttempt(address)
        attempts.append(attempt)
        switch attempt.begin() {
        case .success(.connected):
            return number
        case .success(.inProgress):
            return nil
        case .failure(let error):
            lastReason = error.description
            return nil
        }
    }

    /// Whether the attempt that became ready has connected.
    private mutating func finish(_ number: Int) -> Bool {
        guard let error = attempts[number].finish() else { return true }
        lastReason = error.description
        return false
    }

    private mutating func take(_ number: Int) throws(StreamError) -> Socket {
        // The losers' sockets close with their owners.
        guard let socket = attempts[number].release() else {
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

    init(_ address: SocketAddress) {
        self.address = address
    }

    var descriptor: Int32? {
        switch socket {
        case .some(let socket): socket.descriptor.number
        case nil: nil
        }
    }

    func begin() -> Result<Socket.ConnectProgress, SocketError> {
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
    func finish() -> SocketError? {
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

    func release() -> Socket? { socket.take() }
}
