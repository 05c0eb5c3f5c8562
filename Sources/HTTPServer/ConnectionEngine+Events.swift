internal import HTTP1
package import Sockets

extension ConnectionEngine {
    /// Bytes for `connection` are in the receive buffer.
    mutating func received(_ connection: Connection, now: MonotonicInstant) -> Step {
        if connection.phase == .lingering || connection.phase == .closing {
            connection.lingerBytesLeft -= receiveBuffer.count
            receiveBuffer.clear()
            return connection.phase == .lingering && connection.lingerBytesLeft <= 0
                ? .close(connection.closeCause) : .wait
        }
        guard let own = connection.input else { return process(connection, receiveBuffer, now) }
        own.append(contentsOf: receiveBuffer)
        account(connection)
        return process(connection, own, now)
    }

    /// As above, for bytes that lie elsewhere; at most ``HTTPServerLimits/receiveBytes`` of them.
    package mutating func received(_ connection: Connection, _ bytes: Span<UInt8>, now: MonotonicInstant) -> Step {
        receiveBuffer.fill(bytes)
        return received(connection, now: now)
    }

    /// The peer ended its direction, and every byte before the end was read; or, while a request is parked, the end was
    /// only reported. What is complete is answered, then the connection closes (RFC 9112 §9.5).
    package func inputEnded(_ connection: Connection, now: MonotonicInstant) -> Step {
        switch connection.phase {
        case .idle: return .close(.client)
        case .head, .body, .discarding: return .close(.disconnected)
        case .lingering: return .close(connection.closeCause)
        case .parked:
            connection.hangUpSeen = true
            return .wait
        case .closing: return .wait
        }
    }

    /// The TLS handshake is over: the connection waits for its first request.
    func secured(_ connection: Connection, now: MonotonicInstant) -> Step {
        connection.phaseDeadline = now.adding(nanoseconds: idleNanoseconds)
        if isDraining { beginDrain(connection, now: now) }
        return .wait
    }

    /// Nothing can be answered on the connection: it ends in stages, so that what was said last arrives.
    func abandon(_ connection: Connection, _ cause: ConnectionCloseCause, now: MonotonicInstant) -> Step {
        connection.phase = .lingering
        connection.closeCause = cause
        connection.lingerBytesLeft = limits.lingerBytes
        connection.phaseDeadline = now + limits.lingerTimeout
        return .shutdownWrite
    }

    /// Ends the connection without losing the answers made so far.
    mutating func endAfterOutput(_ connection: Connection, _ cause: ConnectionCloseCause, _ now: MonotonicInstant)
        -> Step
    {
        close(connection, cause: cause)
        return output.isEmpty && !connection.isWriting ? outputSent(connection, now: now) : .wait
    }

    /// Everything in ``output``, and all that waited before it, was taken by the socket.
    package mutating func outputSent(_ connection: Connection, now: MonotonicInstant) -> Step {
        if connection.isWriting {
            connection.isWriting = false
            connection.writeDeadline = .never
            if connection.phase == .idle { connection.phaseDeadline = now.adding(nanoseconds: idleNanoseconds) }
            // Bytes that were not read meanwhile are not the client's delay.
            if connection.phase == .head || connection.phase == .body {
                connection.phaseDeadline = now.adding(nanoseconds: deadlineNanoseconds(connection.phase))
            }
        }
        if connection.phase == .closing {
            releaseBuffer(of: connection)
            // RFC 9112 §9.6: close in stages, so that a reset does not take the last response with it.
            connection.phase = .lingering
            connection.lingerBytesLeft = limits.lingerBytes
            connection.phaseDeadline = now + limits.lingerTimeout
            return .shutdownWrite
        }
        return connection.input != nil && connection.phase == .idle ? .resume : .wait
    }

    /// The socket took `count` bytes and no more; the rest waits for space.
    package func outputBlocked(_ connection: Connection, sent count: Int, now: MonotonicInstant) {
        connection.writeProgress += count
        if !connection.isWriting || connection.writeProgress >= limits.writeProgressBytes {
            connection.isWriting = true
            connection.writeProgress = 0
            connection.writeDeadline = now + limits.writeStall
        }
    }

    /// Goes on with pipelined requests whose turn has come.
    package mutating func resume(_ connection: Connection, now: MonotonicInstant) -> Step {
        guard let own = connection.input, connection.phase == .idle, !connection.isWriting else { return .wait }
        return process(connection, own, now)
    }

    /// The parked request may go on.
    package mutating func wake(_ connection: Connection, now: MonotonicInstant) -> Step {
        guard connection.phase == .parked else { return .wait }
        return visit(connection, .woken, now)
    }

    /// The connection ends while its request is parked.
    func abandonParked(_ connection: Connection) {
        handler.didAbandon(
            ParkedRequest(
                connectionID: connection.id,
                requestsBefore: connection.requestsServed,
                slot: connection.slot
            )
        )
    }

    /// The connection's ``Connection/deadline`` has come.
    package mutating func deadlinePassed(_ connection: Connection, now: MonotonicInstant) -> Step {
        if connection.isWriting, now >= connection.writeDeadline { return .close(.writeStalled) }
        if connection.isHandshaking { return .close(isDraining ? .stopped : .handshake) }
        switch connection.phase {
        case .idle: return .close(isDraining ? .stopped : .idle)
        case .head:
            // Nothing but empty lines: no request to answer.
            guard let own = connection.input, own.parser.hasBegun else { return .close(.idle) }
            fail(connection, own, .timedOut, .requestTimeout, now)
            return .wait
        case .body:
            guard let own = connection.input else { return .close(.requestTimeout) }
            fail(connection, own, .timedOut, .requestTimeout, now)
            return .wait
        case .discarding: return endAfterOutput(connection, .requestTimeout, now)
        case .parked: return visit(connection, .expired, now)
        case .closing: return .wait
        case .lingering: return .close(connection.closeCause)
        }
    }

    /// Stopping has begun: an idle connection stays for a moment, since a request may already be on its way.
    package func beginDrain(_ connection: Connection, now: MonotonicInstant) {
        if connection.phase == .idle, !connection.isWriting {
            connection.phaseDeadline = min(connection.phaseDeadline, now + limits.drainIdleWait)
        }
    }

    /// True where the connection may be closed for a new one: idle, or too slow with its requests, its answers or its
    /// handshake.
    package func isEvictable(_ connection: Connection, now: MonotonicInstant) -> Bool {
        let isSlow = now > connection.busySince + limits.slowRequestAge
        if connection.isWriting { return isSlow }
        switch connection.phase {
        case .idle: return connection.isHandshaking ? isSlow : connection.input == nil || isSlow
        case .head, .body, .discarding: return isSlow
        case .lingering: return true
        case .parked, .closing: return false
        }
    }

    func deadlineNanoseconds(_ phase: Connection.Phase) -> UInt64 {
        (phase == .head ? limits.headDeadline : limits.bodyDeadline).wholeNanoseconds
    }
}
