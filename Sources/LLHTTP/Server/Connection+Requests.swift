extension Connection {
    /// Visits a parked request again, and continues with the requests pipelined behind it.
    func visit(_ visit: RequestVisit, _ host: inout ConnectionHost) {
        guard let buffer = buffer.take() else { return end(.failed) }
        decide(&buffer.content, visit, &host)
        // A blocked write comes first: no input is read meanwhile.
        if phase == .parked || isWriting { self.buffer = buffer } else { process(buffer, &host) }
    }

    /// Reads requests from the buffer and answers them in order, until the bytes are used up, a request is incomplete,
    /// or other connections must be served. The buffer is put back if it is still needed.
    func process(_ held: HeldBuffer, _ host: inout ConnectionHost) {
        if process(&held.content, &host) {
            buffer = held
        } else {
            host.release(held)
            // Nothing has changed for a request that came and was answered in one piece.
            if accountedBytes == Self.ownBytes { return }
        }
        host.account(self)
    }

    /// - Returns: True if the buffer is still needed.
    private func process(_ buffer: inout RequestBuffer, _ host: inout ConnectionHost) -> Bool {
        var budget = host.limits.pipelineBudget
        // The bytes read now came after the start of the previous request, however many requests they hold.
        let earliest = requestStart
        var isNeeded: Bool?
        while isNeeded == nil {
            switch phase {
            case .idle:
                if buffer.count == 0 {
                    becomeIdle(host)
                    isNeeded = false
                } else if budget == 0 || host.output.count >= host.limits.outputBytes || host.sharedOutput != nil {
                    isNeeded = true
                } else {
                    budget -= 1
                    phase = .head
                    requestStart = host.now
                    phaseDeadline = .never
                }
            case .head:
                do throws(HTTPRefusal) {
                    if try buffer.parseHead() {
                        receiveHead(&buffer, arrivedAfter: earliest, &host)
                    } else {
                        if phaseDeadline == .never { phaseDeadline = requestStart + host.limits.headDeadline }
                        isNeeded = true
                    }
                } catch {
                    fail(&buffer, error, .refused, &host)
                }
            case .body:
                do throws(HTTPRefusal) {
                    if try buffer.receiveBody() { decide(&buffer, .first, &host) } else { isNeeded = true }
                } catch {
                    fail(&buffer, error, .refused, &host)
                }
            case .discarding:
                do throws(HTTPRefusal) {
                    if try buffer.receiveBody() { endRequest(&buffer, at: buffer.requestEnd) } else { isNeeded = true }
                } catch {
                    // The request is answered already, so the connection ends without a second answer.
                    close(.refused)
                }
            case .parked: isNeeded = true
            case .closing, .lingering, .ended, .silent, .waiting, .handshaking: isNeeded = false
            }
        }
        if isNeeded == true { buffer.trim() }
        return isNeeded == true
    }

    private func receiveHead(
        _ buffer: inout RequestBuffer,
        arrivedAfter earliest: MonotonicInstant,
        _ host: inout ConnectionHost
    ) {
        let handler = host.handler
        if host.isOverdue(arrivedAfter: earliest) || isOverLimit,
            !buffer.call({ handler.isExemptFromOverload($0.head, bytes: $1) })
        {
            host.counters.overloaded += 1
            return fail(&buffer, .overloaded, .limit, &host)
        }
        buffer.exchange.prepare(context(.first, host))
        switch buffer.call({ handler.receiveHead(&$0, bytes: $1) }) {
        case .respond: respond(&buffer, bodyIsRead: false, &host)
        case .readBody(let most): beginBody(&buffer, min(most, host.limits.http.bodyBytes), &host)
        case .ignoreBody:
            buffer.dropBody()
            decide(&buffer, .first, &host)
        }
    }

    private func beginBody(_ buffer: inout RequestBuffer, _ limit: Int, _ host: inout ConnectionHost) {
        let length = buffer.exchange.head.contentLength ?? 0
        guard length <= limit else { return fail(&buffer, .bodyTooLarge, .refused, &host) }
        buffer.beginBody(atMost: limit)
        phase = .body
        phaseDeadline = host.now + host.limits.bodyDeadline
        // RFC 9110 §10.1.1: the client waits for this, unless its body is already coming.
        if buffer.exchange.head.expectsContinue, buffer.exchange.head.hasBody,
            buffer.count == buffer.exchange.head.byteCount
        {
            host.output.append("HTTP/1.1 100 Continue\r\n\r\n")
        }
    }

    private func decide(_ buffer: inout RequestBuffer, _ visit: RequestVisit, _ host: inout ConnectionHost) {
        let handler = host.handler
        buffer.exchange.prepare(context(visit, host), body: buffer.bodyRange)
        switch buffer.call(upTo: buffer.requestEnd, { handler.receiveRequest(&$0, bytes: $1) }) {
        case .respond: respond(&buffer, bodyIsRead: true, &host)
        case .park where visit == .expired: fail(&buffer, .handlerFailed, .failed, &host)
        case .park(let deadline):
            phase = .parked
            phaseDeadline = deadline
        }
    }

    func context(_ visit: RequestVisit, _ host: borrowing ConnectionHost) -> RequestContext {
        RequestContext(
            firstByteAt: requestStart,
            now: host.now,
            visit: visit,
            worker: host.worker,
            request: request,
            isDraining: host.isDraining,
            descriptor: descriptor
        )
    }
}

extension Connection {
    /// Encodes the response and prepares for the bytes behind the request.
    private func respond(_ buffer: inout RequestBuffer, bodyIsRead: Bool, _ host: inout ConnectionHost) {
        if buffer.exchange.response.status < 200 || buffer.exchange.response.status > 599 {
            render(.handlerFailed, &buffer, host)
        }
        let bodyFollows = !bodyIsRead && buffer.exchange.head.hasBody
        // RFC 9112 §9.3: the rest of a body is read, or the connection is closed. A client that asked for `100 Continue`
        // may or may not send its body now, so its connection is closed, even if some bytes have already come.
        if bodyFollows,
            buffer.exchange.head.expectsContinue
                || (buffer.exchange.head.contentLength ?? 0) > host.limits.http.bodyBytes
        {
            buffer.exchange.response.closesConnection = true
        }
        if !encodeResponse(&buffer, &host) {
            close(host.isDraining ? .stopped : .finished)
        } else if bodyFollows {
            buffer.beginBody(atMost: host.limits.http.bodyBytes)
            phase = .discarding
            phaseDeadline = host.now + host.limits.bodyDeadline
        } else {
            endRequest(&buffer, at: bodyIsRead ? buffer.requestEnd : buffer.exchange.head.byteCount)
        }
    }

    private func endRequest(_ buffer: inout RequestBuffer, at end: Int) {
        buffer.advance(by: end)
        phase = .idle
    }

    /// Refuses the request and ends the connection: the bytes behind the request cannot be trusted to be another one.
    func fail(
        _ buffer: inout RequestBuffer,
        _ failure: HTTPRefusal,
        _ cause: ConnectionCloseCause,
        _ host: inout ConnectionHost
    ) {
        render(failure, &buffer, host)
        if failure == .overloaded, !isOverLimit, !buffer.exchange.head.hasBody {
            // The request was understood, so the connection stays open for the next one.
            buffer.exchange.response.closesConnection = false
            return respond(&buffer, bodyIsRead: false, &host)
        }
        _ = encodeResponse(&buffer, &host)
        close(cause)
    }

    /// Memory is short: answers a request that has begun, with 503, or with 408 if its client is slow, and ends its
    /// connection.
    /// - Returns: False if there is no request, or if an earlier answer still waits.
    package func giveUp(_ host: inout ConnectionHost) -> Bool {
        guard !isWriting, [.head, .body, .parked].contains(phase), let buffer, buffer.content.hasBegun else {
            return false
        }
        let isLate = phase != .parked && isSlow(host.limits, at: host.now)
        if phase == .parked { host.handler.didAbandon(request) }
        if !isLate { host.counters.overloaded += 1 }
        render(isLate ? .timedOut : .overloaded, &buffer.content, host)
        _ = encodeResponse(&buffer.content, &host)
        close(.memory)
        return true
    }

    private func render(_ failure: HTTPRefusal, _ buffer: inout RequestBuffer, _ host: borrowing ConnectionHost) {
        buffer.exchange.prepare(context(.first, host))
        buffer.exchange.response.status = failure.status
        // RFC 9110 §15.6.4.
        if failure == .overloaded { buffer.exchange.response.addField("Retry-After: 1") }
        // The handler sees nothing but the method of a head that was not read completely.
        if buffer.exchange.head.byteCount == 0 {
            let method = buffer.exchange.head.method
            buffer.exchange.head.reset()
            buffer.exchange.head.method = method
        }
        let handler = host.handler
        buffer.call { handler.renderFailure(failure, &$0, bytes: $1) }
        buffer.exchange.response.status = failure.status
        buffer.exchange.response.closesConnection = true
    }

    /// - Returns: True if the connection serves further requests.
    private func encodeResponse(_ buffer: inout RequestBuffer, _ host: inout ConnectionHost) -> Bool {
        let method = buffer.exchange.head.method
        requestsServed += 1
        let keepAlive =
            buffer.exchange.head.keepAlive && !buffer.exchange.response.closesConnection && !host.isDraining
            && requestsServed < host.limits.requestsPerConnection && !isOverLimit && host.now < endsAt
        host.encoder.encode(
            buffer.exchange.response,
            method: method,
            minorVersion: buffer.exchange.head.minorVersion,
            keepAlive: keepAlive,
            unixSeconds: host.unixSeconds,
            to: &host.output
        )
        if buffer.exchange.response.bodyIsShared, buffer.exchange.response.hasContent(for: method) {
            host.sharedOutput = buffer.exchange.response.body
        }
        host.counters.requests += 1
        host.handler.didRespond(status: buffer.exchange.response.status, context: context(.first, host))
        return keepAlive
    }
}
