/// The state machine of HTTP/1.1 connections, without any I/O: events go in, bytes and a state come out. One engine
/// serves one worker, on that worker's thread alone. ``next(_:now:)`` alone decides the next step.
///
/// It is a value, not a class: an event has exclusive access to it from the first byte to the answer, without a check
/// at each use.
package struct ConnectionEngine: ~Copyable {
    /// The worker's next step, after the output of an event is sent or waits for space.
    package enum Step: Equatable, Sendable {
        /// Wait for the connection's ``Connection/interest``.
        case wait
        /// Serve other connections first, then call ``ConnectionEngine/resume(_:now:)``.
        case resume
        /// End the sending direction, then wait for input and drop it.
        case shutdownWrite
        case close(ConnectionCloseCause)
    }

    package let limits: HTTPServerLimits
    let worker: Int
    let handler: any HTTPRequestHandler
    /// Response bytes of the current event, to be sent on its connection; the worker empties it.
    package var output: [UInt8] = []
    /// A shared body that follows ``output``; the worker takes it. No further request is answered before it is sent.
    package var sharedOutput: [UInt8]?
    /// The memory of all connections, counted by ``account(_:)``.
    package private(set) var heldBytes = 0
    /// The wall clock for `Date`, in seconds since 1970.
    package var unixSeconds: Int64 = 0
    /// True once stopping has begun: each response ends its connection.
    package var isDraining = false
    /// Requests handled now may have waited since this moment; ``HTTPServerLimits/queueDelay`` is measured from it.
    package var waitingSince = MonotonicInstant.never
    /// The start of the lateness: every turn since then had a late request. Nil while no request is late.
    var lateSince: MonotonicInstant?
    var sawLateRequest = false
    package var requestCount: UInt64 = 0
    package var overloadedCount: UInt64 = 0

    var exchange: HTTPExchange
    var encoder = ResponseEncoder()
    /// A buffer that a connection released, for the next request. Usually every request of a worker is read into it.
    private var spareBuffer: OwnedBuffer?
    let queueDelayNanoseconds: UInt64
    let idleNanoseconds: UInt64

    package init(limits: HTTPServerLimits, worker: Int, handler: any HTTPRequestHandler) {
        self.limits = limits
        self.worker = worker
        self.handler = handler
        // Every call of the handler sets the context anew.
        let context = RequestContext(
            firstByteAt: .never,
            now: .never,
            worker: worker,
            request: ParkedRequest(connectionID: 0, requestsBefore: 0),
            isDraining: false,
            descriptor: -1
        )
        exchange = HTTPExchange(context: context)
        queueDelayNanoseconds = limits.queueDelay.wholeNanoseconds
        idleNanoseconds = limits.idleTimeout.wholeNanoseconds
    }

    package func open(id: UInt64, descriptor: Int32, isOverLimit: Bool, now: MonotonicInstant) -> Connection {
        let connection = Connection(id: id, descriptor: descriptor, isOverLimit: isOverLimit, now: now)
        connection.endsAt = now + limits.connectionAge
        connection.phaseDeadline = now.adding(nanoseconds: idleNanoseconds)
        return connection
    }

    func context(_ connection: Connection, _ visit: RequestVisit, _ now: MonotonicInstant) -> RequestContext {
        RequestContext(
            firstByteAt: connection.requestStart,
            now: now,
            visit: visit,
            worker: worker,
            request: connection.request,
            isDraining: isDraining,
            descriptor: connection.descriptor
        )
    }

    /// The worker has handled all reported events. Lateness ends with a turn without a late request.
    package mutating func endTurn() {
        if !sawLateRequest { lateSince = nil }
        sawLateRequest = false
    }

    /// True if requests have been late for some time, and this one is late too. One pause (of the machine, for example)
    /// refuses no request; a queue that stays long does.
    mutating func isOverdue(arrivedAfter earliest: MonotonicInstant, _ now: MonotonicInstant) -> Bool {
        guard now.nanoseconds(since: max(waitingSince, earliest)) > queueDelayNanoseconds else { return false }
        sawLateRequest = true
        guard let since = lateSince else {
            lateSince = now
            return false
        }
        return now.nanoseconds(since: since) > queueDelayNanoseconds
    }

    mutating func account(_ connection: Connection) {
        let held = connection.slot >= 0 ? connection.heldBytes : 0
        heldBytes += held - connection.accountedBytes
        connection.accountedBytes = held
    }

    /// The number of bytes that may be received for a connection now: 0 if it holds as much as it may.
    package func room(for connection: Connection) -> Int {
        max(0, min(limits.receiveBytes, limits.requestBytes - (connection.input?.buffer.count ?? 0)))
    }

    /// Removes the connection's own buffer: its content is no longer needed.
    mutating func releaseBuffer(of connection: Connection) {
        guard let own = connection.input.take() else { return }
        release(own)
        account(connection)
    }
}

extension ConnectionEngine {
    mutating func makeBuffer() -> OwnedBuffer { spareBuffer.take() ?? OwnedBuffer(limits: limits.http) }

    /// Stores a buffer for the next request; one of an unusually long request is freed.
    mutating func release(_ own: OwnedBuffer) {
        guard own.buffer.bytes.capacity <= limits.receiveBytes else { return }
        own.buffer.clear()
        spareBuffer = own
    }

    /// Calls the handler with the request in `buffer`, up to `end`, and an empty response.
    @inline(__always)
    mutating func ask<Answer>(
        about connection: Connection,
        _ buffer: inout RequestBuffer,
        upTo end: Int? = nil,
        visit: RequestVisit = .first,
        body: Range<Int> = 0..<0,
        _ now: MonotonicInstant,
        _ call: (inout HTTPExchange, Span<UInt8>) -> Answer
    ) -> Answer {
        exchange.response.reset()
        exchange.context = context(connection, visit, now)
        exchange.body = body
        // A second reference during the call, as in `RequestBuffer.parseHead`.
        let bytes = buffer.bytes
        buffer.swapHead(with: &exchange.head)
        let answer = call(&exchange, bytes.span.extracting(buffer.start..<(end ?? bytes.count)))
        buffer.swapHead(with: &exchange.head)
        return answer
    }

    /// Encodes the response and prepares for the bytes behind the request.
    mutating func respond(
        _ connection: Connection,
        _ buffer: inout RequestBuffer,
        bodyIsRead: Bool,
        _ now: MonotonicInstant
    ) {
        if exchange.response.status < 200 || exchange.response.status > 599 {
            render(.handlerFailed, connection, &buffer, now)
        }
        let bodyFollows = !bodyIsRead && buffer.parser.head.hasBody
        if bodyFollows, !canDiscard(buffer) { exchange.response.closesConnection = true }
        let keepAlive = encodeResponse(connection, buffer, now)
        if !keepAlive {
            close(connection, cause: isDraining ? .stopped : .finished)
        } else if bodyFollows {
            beginDiscarding(connection, &buffer, now)
        } else {
            buffer.advance(by: bodyIsRead ? buffer.requestEnd : buffer.parser.head.byteCount)
            connection.phase = .idle
        }
    }

    /// Refuses the request and ends the connection: the bytes behind the request cannot be trusted to be another one.
    mutating func fail(
        _ connection: Connection,
        _ buffer: inout RequestBuffer,
        _ failure: HTTPFailure,
        _ cause: ConnectionCloseCause,
        _ now: MonotonicInstant
    ) {
        render(failure, connection, &buffer, now)
        if failure == .overloaded, !connection.isOverLimit, !buffer.parser.head.hasBody {
            // The request was understood, so the connection stays open for the next one.
            exchange.response.closesConnection = false
            respond(connection, &buffer, bodyIsRead: false, now)
            return
        }
        _ = encodeResponse(connection, buffer, now)
        close(connection, cause: cause)
    }

    /// Answers a request that has begun because memory is short, and ends its connection. The answer is 503, or 408 if
    /// the client takes too long with its request.
    /// - Returns: False if there is no request, or if an earlier answer still waits: the caller then only closes the
    ///   connection.
    package mutating func giveUp(_ connection: Connection, now: MonotonicInstant) -> Bool {
        guard !connection.isWriting, [.head, .body, .parked].contains(connection.phase),
            let own = connection.input, own.buffer.parser.hasBegun
        else { return false }
        let isLate = connection.phase != .parked && isSlow(connection, now)
        if connection.phase == .parked { handler.didAbandon(connection.request) }
        if !isLate { overloadedCount += 1 }
        render(isLate ? .timedOut : .overloaded, connection, &own.buffer, now)
        _ = encodeResponse(connection, own.buffer, now)
        close(connection, cause: .memory)
        return true
    }

    /// True if a request, or the answer to one, takes so long that the connection may make room for another.
    func isSlow(_ connection: Connection, _ now: MonotonicInstant) -> Bool {
        now > connection.busySince + limits.slowRequestAge
    }

    private mutating func render(
        _ failure: HTTPFailure,
        _ connection: Connection,
        _ buffer: inout RequestBuffer,
        _ now: MonotonicInstant
    ) {
        ask(about: connection, &buffer, now) { [handler, limits] exchange, bytes in
            exchange.response.status = failure.status
            // RFC 9110 §15.6.4.
            if failure == .overloaded { exchange.response.addField("Retry-After", String(limits.retryAfterSeconds)) }
            handler.renderFailure(failure, &exchange, bytes: bytes)
        }
        exchange.response.status = failure.status
        exchange.response.closesConnection = true
    }

    /// - Returns: True if the connection serves further requests.
    // Inlined: a call would be given a copy of the buffer, 520 bytes.
    @inline(__always)
    private mutating func encodeResponse(
        _ connection: Connection,
        _ buffer: borrowing RequestBuffer,
        _ now: MonotonicInstant
    ) -> Bool {
        let method = buffer.parser.head.method
        connection.requestsServed += 1
        let keepAlive =
            buffer.parser.head.keepAlive && !exchange.response.closesConnection && !isDraining
            && connection.requestsServed < limits.requestsPerConnection && !connection.isOverLimit
            && now < connection.endsAt
        encoder.encode(
            exchange.response,
            method: method,
            minorVersion: buffer.parser.head.minorVersion,
            keepAlive: keepAlive,
            unixSeconds: unixSeconds,
            to: &output
        )
        if exchange.response.bodyIsShared, exchange.response.hasContent(for: method) {
            sharedOutput = exchange.response.body
        }
        requestCount += 1
        handler.didRespond(status: exchange.response.status, context: context(connection, .first, now))
        return keepAlive
    }

    /// RFC 9112 §9.6: no request is processed after a response with `close`.
    func close(_ connection: Connection, cause: ConnectionCloseCause) {
        connection.phase = .closing
        connection.phaseDeadline = .never
        connection.closeCause = cause
    }

    /// RFC 9112 §9.3: the rest of a body is read, or the connection is closed. A client that asked for `100 Continue`
    /// may or may not send its body now, so its connection is closed, even if some bytes have already come.
    private func canDiscard(_ buffer: borrowing RequestBuffer) -> Bool {
        !buffer.parser.head.expectsContinue && (buffer.parser.head.contentLength ?? 0) <= limits.discardedBodyBytes
    }

    private func beginDiscarding(_ connection: Connection, _ buffer: inout RequestBuffer, _ now: MonotonicInstant) {
        let isChunked = buffer.parser.head.isChunked
        let length = buffer.parser.head.contentLength ?? 0
        buffer.advance(by: buffer.parser.head.byteCount)
        buffer.discardCount = isChunked ? -1 : length
        if isChunked { buffer.beginChunked(limits: limits.http, bodyLimit: limits.discardedBodyBytes, at: 0) }
        connection.phase = .discarding
        connection.phaseDeadline = now + limits.bodyDeadline
    }

    /// The peer ended its direction, and every byte before the end was read; while a request is parked, the end was
    /// only reported. Complete requests are answered, then the connection closes (RFC 9112 §9.5).
    package func inputEnded(_ connection: Connection) {
        switch connection.phase {
        case .idle: end(connection, .client)
        case .head, .body, .discarding, .silent, .waiting, .handshaking: end(connection, .disconnected)
        case .lingering: connection.phase = .ended
        case .parked: connection.hangUpSeen = true
        case .closing, .ended: break
        }
    }

    /// The TLS handshake is over: the connection waits for its first request. An old connection would not notice that
    /// its client's certificate has expired, so the events after the last answer that keeps it open must fit into its
    /// age.
    package func secured(_ connection: Connection, clientIsVerified: Bool, now: MonotonicInstant) {
        if clientIsVerified {
            // The rest of an unread body, the idle time, and the last request.
            let rest = limits.bodyDeadline + limits.idleTimeout + limits.headDeadline + limits.bodyDeadline
            connection.endsAt = min(connection.endsAt, now + (limits.verifiedConnectionAge - rest))
        }
        connection.phase = .idle
        becomeIdle(connection, now)
    }

    func becomeIdle(_ connection: Connection, _ now: MonotonicInstant) {
        connection.phaseDeadline = now.adding(nanoseconds: idleNanoseconds)
        if isDraining { beginDrain(connection, now: now) }
    }

    /// Stopping has begun: an idle connection stays for a moment, since a request may already be on its way.
    package func beginDrain(_ connection: Connection, now: MonotonicInstant) {
        if connection.phase == .idle || connection.isHandshaking, !connection.isWriting {
            connection.phaseDeadline = min(connection.phaseDeadline, now + limits.drainIdleWait)
        }
    }

    /// Ends the connection at once and drops its unsent output.
    func end(_ connection: Connection, _ cause: ConnectionCloseCause) {
        connection.phase = .ended
        connection.closeCause = cause
    }
}
