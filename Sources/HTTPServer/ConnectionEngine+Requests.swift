internal import Bytes
internal import HTTP1
internal import Sockets

extension ConnectionEngine {
    /// Goes on with the bytes that the connection kept, which were taken from it for the time of the call.
    mutating func process(_ connection: Connection, own buffer: consuming RequestBuffer, _ now: MonotonicInstant) {
        if process(connection, &buffer, isOwn: true, now) {
            connection.input = consume buffer
        } else {
            release(buffer)
        }
        account(connection)
    }

    /// Reads requests out of `buffer` and answers them in order, until its bytes are used up, a request is not
    /// complete, or others must have their turn.
    /// - Parameter isOwn: whether the connection kept the buffer since an earlier event.
    /// - Returns: whether the connection has to keep what is in the buffer.
    mutating func process(
        _ connection: Connection,
        _ buffer: inout RequestBuffer,
        isOwn: Bool,
        _ now: MonotonicInstant
    ) -> Bool {
        var budget = limits.pipelineBudget
        // What is read now came after the request before it was taken up, however many requests it holds.
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
                if !isOwn { connection.busySince = now }
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
                do throws(RequestRefusal) {
                    guard try discardBody(connection, &buffer) else { return true }
                } catch {
                    // The answer is given, so the connection ends without another.
                    close(connection, cause: .refused)
                }
            case .parked: return true
            case .closing, .lingering, .ended, .silent, .waiting, .handshaking:
                buffer.clear()
                return false
            }
        }
    }

    func becomeIdle(_ connection: Connection, _ now: MonotonicInstant) {
        connection.phaseDeadline = now.adding(nanoseconds: idleNanoseconds)
        if isDraining { beginDrain(connection, now: now) }
    }

    /// The head is complete: refuse for overload, or let the handler decide.
    private mutating func receiveHead(
        _ connection: Connection,
        _ buffer: inout RequestBuffer,
        arrivedAfter earliest: MonotonicInstant,
        _ now: MonotonicInstant
    ) {
        if isOverdue(arrivedAfter: earliest, now) || connection.isOverLimit {
            let isExempt = handler.isExemptFromOverload(
                buffer.parser.head,
                bytes: buffer.bytes.span.extracting(buffer.start..<buffer.end)
            )
            if !isExempt {
                overloadedCount += 1
                fail(connection, &buffer, .overloaded, .limit, now)
                return
            }
        }
        response.reset()
        let decision = handler.receiveHead(
            buffer.parser.head,
            bytes: buffer.bytes.span.extracting(buffer.start..<buffer.end),
            context: context(connection, .first, now),
            response: &response
        )
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

    /// - Returns: False where more bytes are needed.
    private mutating func receiveBody(
        _ connection: Connection,
        _ buffer: inout RequestBuffer,
        _ now: MonotonicInstant
    ) -> Bool {
        if buffer.parser.head.isChunked {
            do throws(RequestRefusal) {
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

    /// Asks the handler about a whole request.
    private mutating func decide(
        _ connection: Connection,
        _ buffer: inout RequestBuffer,
        _ visit: RequestVisit,
        _ now: MonotonicInstant
    ) {
        response.reset()
        // A second reference for the time of the call, as in `RequestBuffer.parseHead`.
        let bytes = buffer.bytes
        let request = bytes.span.extracting(buffer.start..<buffer.start + buffer.requestEnd)
        let decision = handler.receiveRequest(
            buffer.parser.head,
            bytes: request,
            body: request.extracting(buffer.bodyRange),
            context: context(connection, visit, now),
            response: &response
        )
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

    /// Visits a parked request again, and goes on with what was pipelined behind it.
    mutating func visit(_ connection: Connection, _ visit: RequestVisit, _ now: MonotonicInstant) {
        guard var own = connection.input.take() else {
            end(connection, .failed)
            return
        }
        decide(connection, &own, visit, now)
        // A blocked write comes first: input is not read while it lasts.
        if connection.phase == .parked || connection.isWriting {
            connection.input = consume own
        } else {
            process(connection, own: own, now)
        }
    }
}
