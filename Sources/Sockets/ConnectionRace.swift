/// Connects to the first of several addresses that accepts, each with a head start over the next (RFC 8305, 5).
package enum ConnectionRace {
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

    /// The stream to the first address that accepts. `deadline` bounds all attempts together; those that lose the race
    /// close with their streams.
    package static func run(
        _ addresses: [SocketAddress],
        limits: Limits,
        cancelledBy cancellation: WakeSignal?,
        until deadline: MonotonicInstant
    ) throws(StreamError) -> ClientStream {
        var untried = addresses.prefix(limits.addressCount)
        var underWay: [(stream: ClientStream, address: SocketAddress)] = []
        var lastReason = "there is no address"
        while true {
            if let address = untried.popFirst() {
                do throws(SocketError) {
                    let stream = ClientStream(try Socket.make(for: address))
                    stream.socket.setNoDelay()
                    if try stream.socket.connect(to: address) == .connected { return stream }
                    underWay.append((stream, address))
                } catch {
                    lastReason = error.description
                }
            }
            if underWay.isEmpty {
                if untried.isEmpty { throw .connectFailed(reason: lastReason) }
                continue
            }
            let interests = underWay.map {
                BlockingWait.Interest($0.stream.socket.descriptor.number, wantsInput: false, wantsSpace: true)
            }
            let pause = untried.isEmpty ? deadline : min(deadline, MonotonicClock.now() + limits.headStart)
            switch BlockingWait.wait(for: interests, or: cancellation, until: pause) {
            case .ready(let position):
                let attempt = underWay.remove(at: position)
                do throws(SocketError) {
                    try attempt.stream.socket.finishConnecting(to: attempt.address)
                    return attempt.stream
                } catch {
                    lastReason = error.description
                }
            case .signal: throw .cancelled
            case .deadline:
                if MonotonicClock.now() >= deadline { throw .timedOut(phase: .connecting) }
            }
        }
    }
}
