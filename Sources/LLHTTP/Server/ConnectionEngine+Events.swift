internal import LLBytes

extension ConnectionEngine {
    package mutating func received(_ connection: Connection, _ bytes: Span<UInt8>, now: MonotonicInstant) {
        if connection.phase == .lingering || connection.phase == .closing {
            connection.lingerBytesLeft -= bytes.count
            if connection.phase == .lingering, connection.lingerBytesLeft <= 0 { connection.phase = .ended }
            return
        }
        if connection.input == nil { connection.busySince = now }
        let own = connection.input.take() ?? makeBuffer()
        own.buffer.append(bytes)
        process(connection, own, now)
    }

    /// The next step, after ``output`` was sent or waits for space in the socket; called once after each event.
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

    /// The socket has taken all of the waiting output.
    package func outputSent(_ connection: Connection, now: MonotonicInstant) {
        connection.isWriting = false
        connection.writeDeadline = .never
        // A connection with a slow reader lives no longer than an idle one.
        if connection.phase == .idle {
            connection.phaseDeadline = min(now, connection.endsAt).adding(nanoseconds: idleNanoseconds)
            if isDraining { beginDrain(connection, now: now) }
        }
        let isTooOld = now >= connection.endsAt.adding(nanoseconds: idleNanoseconds)
        if isTooOld, [.idle, .head, .body].contains(connection.phase) { end(connection, .idle) }
        // The client is not charged for the time in which the server did not read.
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

    package mutating func resume(_ connection: Connection, now: MonotonicInstant) {
        guard connection.phase == .idle, !connection.isWriting, let own = connection.input.take() else { return }
        process(connection, own, now)
    }

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
            // If only empty lines have come, there is no request to answer.
            guard connection.phase == .body || connection.input?.buffer.parser.hasBegun == true,
                let own = connection.input.take()
            else {
                end(connection, .idle)
                return
            }
            fail(connection, &own.buffer, .timedOut, .requestTimeout, now)
            connection.input = own
        case .discarding: close(connection, cause: .requestTimeout)
        case .parked: visit(connection, .expired, now)
        case .lingering: connection.phase = .ended
        case .closing, .ended: break
        }
    }
}

extension ConnectionEngine {
    /// Processes a connection's bytes; the caller has taken them from it for the time of the call.
    mutating func process(_ connection: Connection, _ own: OwnedBuffer, _ now: MonotonicInstant) {
        if process(connection, &own.buffer, now) {
            own.buffer.trim()
            connection.input = own
        } else {
            release(own)
            // Nothing has changed for a request that came and was answered in one piece.
            if connection.accountedBytes == Connection.ownBytes { return }
        }
        account(connection)
    }

    /// Reads requests from `buffer` and answers them in order. It stops when the bytes are used up, when a request is
    /// incomplete, or when other connections must be served.
    /// - Returns: True if the bytes in the buffer are still needed.
    private mutating func process(
        _ connection: Connection,
        _ buffer: inout RequestBuffer,
        _ now: MonotonicInstant
    ) -> Bool {
        var budget = limits.pipelineBudget
        // The bytes read now came after the start of the previous request, however many requests they hold.
        let earliest = connection.requestStart
        while true {
            switch connection.phase {
            case .idle:
                if buffer.count == 0 {
                    becomeIdle(connection, now)
                    return false
                }
                if budget == 0 || output.count >= limits.outputBytes || sharedOutput != nil { return true }
                budget -= 1
                connection.phase = .head
                connection.requestStart = now
                connection.phaseDeadline = .never
            case .head:
                switch buffer.parseHead() {
                case .complete: receiveHead(connection, &buffer, arrivedAfter: earliest, now)
                case .reject(let refusal): fail(connection, &buffer, .refused(refusal), .refused, now)
                case .needMore:
                    if connection.phaseDeadline == .never {
                        connection.phaseDeadline = connection.requestStart + limits.headDeadline
                    }
                    return true
                }
            case .body:
                if !receiveBody(connection, &buffer, now) { return true }
            case .discarding:
                do throws(HTTPRefusal) {
                    guard try buffer.discardBody() else { return true }
                    connection.phase = .idle
                } catch {
                    // The request is answered already, so the connection ends without a second answer.
                    close(connection, cause: .refused)
                }
            case .parked: return true
            case .closing, .lingering, .ended, .silent, .waiting, .handshaking: return false
            }
        }
    }

    /// The head is complete: refuses it for overload, or asks the handler.
    private mutating func receiveHead(
        _ connection: Connection,
        _ buffer: inout RequestBuffer,
        arrivedAfter earliest: MonotonicInstant,
        _ now: MonotonicInstant
    ) {
        if isOverdue(arrivedAfter: earliest, now) || connection.isOverLimit {
            let isExempt = handler.isExemptFromOverload(
                buffer.parser.head,
                bytes: buffer.bytes.span.extracting(buffer.start...)
            )
            if !isExempt {
                overloadedCount += 1
                fail(connection, &buffer, .overloaded, .limit, now)
                return
            }
        }
        let decision = ask(about: connection, &buffer, now) { [handler] exchange, bytes in
            handler.receiveHead(&exchange, bytes: bytes)
        }
        switch decision {
        case .respond: respond(connection, &buffer, bodyIsRead: false, now)
        case .readBody(let most): beginBody(connection, &buffer, min(most, limits.http.bodyBytes), now)
        case .ignoreBody:
            buffer.dropBody()
            decide(connection, &buffer, .first, now)
        }
    }

    private mutating func beginBody(
        _ connection: Connection,
        _ buffer: inout RequestBuffer,
        _ limit: Int,
        _ now: MonotonicInstant
    ) {
        let headBytes = buffer.parser.head.byteCount
        if let length = buffer.parser.head.contentLength, length > limit {
            fail(connection, &buffer, .bodyTooLarge, .refused, now)
            return
        }
        if buffer.parser.head.isChunked {
            buffer.beginChunked(limits: limits.http, bodyLimit: limit, at: headBytes)
        }
        connection.phase = .body
        connection.phaseDeadline = now + limits.bodyDeadline
        // RFC 9110 §10.1.1: the client waits for this, unless its body is already coming.
        if buffer.parser.head.expectsContinue, buffer.parser.head.hasBody, buffer.count == headBytes {
            output.append("HTTP/1.1 100 Continue\r\n\r\n")
        }
    }

    /// - Returns: False if more bytes are needed.
    private mutating func receiveBody(
        _ connection: Connection,
        _ buffer: inout RequestBuffer,
        _ now: MonotonicInstant
    ) -> Bool {
        if buffer.parser.head.isChunked {
            do throws(HTTPRefusal) {
                guard try buffer.decodeBody() else { return false }
            } catch {
                fail(connection, &buffer, .refused(error), .refused, now)
                return true
            }
        } else if buffer.count < buffer.requestEnd {
            return false
        }
        decide(connection, &buffer, .first, now)
        return true
    }

    private mutating func decide(
        _ connection: Connection,
        _ buffer: inout RequestBuffer,
        _ visit: RequestVisit,
        _ now: MonotonicInstant
    ) {
        let end = buffer.start + buffer.requestEnd
        let body = buffer.bodyRange
        let decision = ask(about: connection, &buffer, upTo: end, visit: visit, body: body, now) {
            [handler] exchange, bytes in handler.receiveRequest(&exchange, bytes: bytes)
        }
        switch decision {
        case .respond: respond(connection, &buffer, bodyIsRead: true, now)
        case .park(let deadline):
            if visit == .expired {
                fail(connection, &buffer, .handlerFailed, .failed, now)
            } else {
                connection.phase = .parked
                connection.phaseDeadline = deadline
            }
        }
    }

    /// Visits a parked request again, and continues with the requests pipelined behind it.
    mutating func visit(_ connection: Connection, _ visit: RequestVisit, _ now: MonotonicInstant) {
        guard let own = connection.input.take() else {
            end(connection, .failed)
            return
        }
        decide(connection, &own.buffer, visit, now)
        // A blocked write comes first: no input is read meanwhile.
        if connection.phase == .parked || connection.isWriting {
            connection.input = own
        } else {
            process(connection, own, now)
        }
    }
}
