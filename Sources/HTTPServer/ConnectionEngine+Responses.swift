internal import HTTP1
internal import Sockets

extension ConnectionEngine {
    /// Encodes ``response`` and prepares for what follows it.
    mutating func respond(_ connection: Connection, _ buffer: RequestBuffer, bodyIsRead: Bool, _ now: MonotonicInstant)
    {
        if response.status < 200 || response.status > 599 {
            render(.handlerFailed)
        }
        let facts = buffer.facts
        let bodyFollows = !bodyIsRead && facts.hasBody
        if bodyFollows, !canDiscard(buffer) { response.closesConnection = true }
        let keepAlive = encodeResponse(connection, buffer, now)
        if !keepAlive {
            close(connection, cause: isDraining ? .stopped : .finished)
        } else if bodyFollows {
            beginDiscarding(connection, buffer, now)
        } else {
            buffer.advance(by: bodyIsRead ? buffer.requestEnd : facts.byteCount)
            connection.phase = .idle
        }
    }

    /// Refuses the request, and with it the connection: what follows in the stream cannot be trusted to be a request.
    mutating func fail(
        _ connection: Connection,
        _ buffer: RequestBuffer,
        _ failure: HTTPFailure,
        _ cause: ConnectionCloseCause,
        _ now: MonotonicInstant
    ) {
        render(failure)
        if failure == .overloaded, !connection.isOverLimit, !buffer.facts.hasBody {
            // The request was understood, and the next may have better luck.
            response.closesConnection = false
            respond(connection, buffer, bodyIsRead: false, now)
            return
        }
        _ = encodeResponse(connection, buffer, now)
        close(connection, cause: cause)
    }

    private mutating func render(_ failure: HTTPFailure) {
        response.reset()
        response.status = failure.status
        if failure == .overloaded {
            // RFC 9110 §15.6.4.
            response.addField("Retry-After", String(limits.retryAfterSeconds))
        }
        handler.renderFailure(failure, response: &response)
        response.status = failure.status
        response.closesConnection = true
    }

    /// - Returns: True where the connection serves further requests.
    private mutating func encodeResponse(_ connection: Connection, _ buffer: RequestBuffer, _ now: MonotonicInstant)
        -> Bool
    {
        let facts = buffer.facts
        connection.requestsServed += 1
        let keepAlive =
            facts.keepAlive && !response.closesConnection && !isDraining
            && connection.requestsServed < limits.requestsPerConnection && !connection.isOverLimit
            && now < connection.endsAt
        encoder.encode(
            response,
            ResponseEncoder.Context(
                method: facts.method,
                minorVersion: facts.minorVersion,
                keepAlive: keepAlive
            ),
            unixSeconds: unixSeconds,
            to: &output
        )
        if response.bodyIsShared, ResponseEncoder.sharedBodyFollows(response, facts.method) {
            sharedOutput = response.body
        }
        requestCount += 1
        handler.didRespond(status: response.status, context: context(connection, now))
        return keepAlive
    }

    /// RFC 9112 §9.6: after a response that says `close` nothing further is processed.
    func close(_ connection: Connection, cause: ConnectionCloseCause) {
        connection.phase = .closing
        connection.phaseDeadline = .never
        connection.closeCause = cause
    }

    /// RFC 9112 §9.3: the rest of a body is read, or the connection closed. A client that asked for `100 Continue` may
    /// or may not send its body now, so there the connection closes, whatever has already come.
    private func canDiscard(_ buffer: RequestBuffer) -> Bool {
        !buffer.facts.expectsContinue && (buffer.facts.contentLength ?? 0) <= limits.discardedBodyBytes
    }

    private func beginDiscarding(_ connection: Connection, _ buffer: RequestBuffer, _ now: MonotonicInstant) {
        let length = buffer.facts.contentLength
        let isChunked = buffer.facts.isChunked
        buffer.advance(by: buffer.facts.byteCount)
        buffer.discardCount = length ?? 0
        if isChunked {
            buffer.beginChunked(limits: limits.http, bodyLimit: limits.discardedBodyBytes, at: 0)
            buffer.discardCount = -1
        }
        connection.phase = .discarding
        connection.phaseDeadline = now + limits.bodyDeadline
    }

    /// How far the dropping of a body came.
    enum DiscardProgress {
        case complete, needMore
        /// Its coding is broken. The answer is given, so the connection ends without another.
        case broken
    }

    func discardBody(_ connection: Connection, _ buffer: RequestBuffer, _ now: MonotonicInstant) -> DiscardProgress {
        if buffer.discardCount < 0 {
            switch buffer.discardChunked() {
            case .complete: buffer.advance(by: buffer.discardedEnd)
            case .reject: return .broken
            case .needMore, .data: return .needMore
            }
        } else {
            let count = min(buffer.count, buffer.discardCount)
            buffer.advance(by: count)
            buffer.discardCount -= count
            if buffer.discardCount > 0 { return .needMore }
        }
        buffer.discardCount = 0
        connection.phase = .idle
        return .complete
    }
}
