internal import HTTP1
package import Sockets

extension ConnectionEngine {
    /// Bytes for `connection` have come into `buffer`, at most ``room(for:)`` of them; none stay there.
    package mutating func received(_ connection: Connection, _ buffer: inout RequestBuffer, now: MonotonicInstant) {
        if connection.phase == .lingering || connection.phase == .closing {
            connection.lingerBytesLeft -= buffer.count
            buffer.clear()
            if connection.phase == .lingering, connection.lingerBytesLeft <= 0 { connection.phase = .ended }
            return
        }
        if var own = connection.input.take() {
            own.append(contentsOf: &buffer)
            process(connection, own: own, now)
        } else if process(connection, &buffer, isOwn: false, now) {
            keep(&buffer, for: connection)
        }
    }

    /// The peer ended its direction, and every byte before the end was read; or, while a request is parked, the end was
    /// only reported. What is complete is answered, then the connection closes (RFC 9112 §9.5).
    package func inputEnded(_ connection: Connection) {
        switch connection.phase {
        case .idle: end(connection, .client)
        case .head, .body, .discarding, .silent, .waiting, .handshaking: end(connection, .disconnected)
        case .lingering: connection.phase = .ended
        case .parked: connection.hangUpSeen = true
        case .closing, .ended: break
        }
    }

    /// The TLS handshake is over: the connection waits for its first request. An old connection would not notice that its
    /// client's certificate has ended, so what still follows the last answer that keeps it must fit into its age.
    package func secured(_ connection: Connection, clientIsVerified: Bool, now: MonotonicInstant) {
        if clientIsVerified {
            // A body nobody asked for, the idle time, and the last request.
            let rest = limits.bodyDeadline + limits.idleTimeout + limits.headDeadline + limits.bodyDeadline
            connection.endsAt = min(connection.endsAt, now + (limits.verifiedConnectionAge - rest))
        }
        connection.phase = .idle
        becomeIdle(connection, now)
    }

    /// Ends the connection at once, with whatever it has not said yet.
    func end(_ connection: Connection, _ cause: ConnectionCloseCause) {
        connection.phase = .ended
        connection.closeCause = cause
    }

    /// What to do now that ``output`` was sent, or waits for space in the socket: asked once after each event.
    package mutating func next(_ connection: Connection, now: MonotonicInstant) -> Step {
        switch connection.phase {
        case .ended:
            return .close(connection.closeCause)
        case .closing where !connection.isWriting:
            releaseBuffer(of: connection)
            // RFC 9112 §9.6: close in stages, so that a reset does not take the last response with it.
            connection.phase = .lingering
            connection.lingerBytesLeft = limits.lingerBytes
            connection.phaseDeadline = now + limits.lingerTimeout
            return .shutdownWrite
        case .idle where connection.hasBufferedInput && !connection.isWriting:
            return .resume
        default:
            return .wait
        }
    }

    /// Output that waited was taken by the socket, all of it.
    package func outputSent(_ connection: Connection, now: MonotonicInstant) {
        connection.isWriting = false
        connection.writeDeadline = .never
        // A slow reader's connection gets no older than an idle one.
        if connection.phase == .idle {
            connection.phaseDeadline = min(now, connection.endsAt).adding(nanoseconds: idleNanoseconds)
            if isDraining { beginDrain(connection, now: now) }
        }
        let isTooOld = now >= connection.endsAt.adding(nanoseconds: idleNanoseconds)
        if isTooOld, [.idle, .head, .body].contains(connection.phase) { end(connection, .idle) }
        // Bytes that were not read meanwhile are not the client's delay.
        if connection.phase == .head || connection.phase == .body {
            connection.phaseDeadline = now + (connection.phase == .head ? limits.headDeadline : limits.bodyDeadline)
        }
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
    package mutating func resume(_ connection: Connection, now: MonotonicInstant) {
        guard connection.phase == .idle, !connection.isWriting, let own = connection.input.take() else { return }
        process(connection, own: own, now)
    }

    /// The parked request may go on.
    package mutating func wake(_ connection: Connection, now: MonotonicInstant) {
        if connection.phase == .parked { visit(connection, .woken, now) }
    }

    /// The connection's ``Connection/deadline`` has come.
    package mutating func deadlinePassed(_ connection: Connection, now: MonotonicInstant) {
        if connection.isWriting, now >= connection.writeDeadline {
            end(connection, .writeStalled)
            return
        }
        switch connection.phase {
        case .silent, .waiting, .handshaking: end(connection, isDraining ? .stopped : .handshake)
        case .idle: end(connection, isDraining ? .stopped : .idle)
        case .head, .body:
            // After nothing but empty lines there is no request to answer.
            guard connection.phase == .body || connection.input?.parser.hasBegun == true,
                var own = connection.input.take()
            else {
                end(connection, .idle)
                return
            }
            fail(connection, &own, .timedOut, .requestTimeout, now)
            connection.input = consume own
        case .discarding: close(connection, cause: .requestTimeout)
        case .parked: visit(connection, .expired, now)
        case .lingering: connection.phase = .ended
        case .closing, .ended: break
        }
    }

    /// Stopping has begun: an idle connection stays for a moment, since a request may already be on its way.
    package func beginDrain(_ connection: Connection, now: MonotonicInstant) {
        if connection.phase == .idle || connection.isHandshaking, !connection.isWriting {
            connection.phaseDeadline = min(connection.phaseDeadline, now + limits.drainIdleWait)
        }
    }

    /// True where the connection may be closed for a new one: idle, or too slow with its requests, its answers or its
    /// handshake.
    package func isEvictable(_ connection: Connection, now: MonotonicInstant) -> Bool {
        let isSlow = now > connection.busySince + limits.slowRequestAge
        if connection.isWriting { return isSlow }
        switch connection.phase {
        case .idle: return !connection.hasBufferedInput || isSlow
        case .head, .body, .discarding, .silent, .waiting, .handshaking: return isSlow
        case .lingering: return true
        case .parked, .closing, .ended: return false
        }
    }
}
