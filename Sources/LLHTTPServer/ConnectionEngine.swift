internal import LLHTTP1
package import LLSockets

/// The state machine of HTTP/1.1 connections, without any I/O: events in, bytes and a state out. One engine serves
/// one worker, on its thread alone. What to do next is said in one place, ``next(_:now:)``.
///
/// A value and no class: an event has exclusive access to it from its first byte to its answer, and the program does not
/// check that again at each use.
package struct ConnectionEngine: ~Copyable {
    /// What the worker does once the output of an event is sent, or waits for space.
    package enum Step: Equatable, Sendable {
        /// Wait for the connection's ``Connection/interest``.
        case wait
        /// Let others have their turn, then call ``ConnectionEngine/resume(_:now:)``.
        case resume
        /// End the sending direction, then wait for input and drop it.
        case shutdownWrite
        /// Close at once.
        case close(ConnectionCloseCause)
    }

    package let limits: HTTPServerLimits
    let worker: Int
    let handler: any HTTPRequestHandler
    /// Response bytes of the event just handled, to be sent on its connection; the worker empties it.
    package var output: [UInt8] = []
    /// A shared body that follows ``output``; the worker takes it. Nothing further is answered before it is sent.
    package var sharedOutput: [UInt8]?
    /// What all connections take in memory, by ``account(_:)``.
    package private(set) var heldBytes = 0
    /// The wall clock for `Date`, in seconds since 1970.
    package var unixSeconds: Int64 = 0
    /// True once stopping has begun: each response ends its connection.
    package var isDraining = false
    /// Requests handled now may have waited since this moment; ``HTTPServerLimits/queueDelay`` is measured from it.
    package var waitingSince = MonotonicInstant.never
    /// Since when some request of every turn came late; nil while none does.
    var lateSince: MonotonicInstant?
    var sawLateRequest = false
    package var requestCount: UInt64 = 0
    package var overloadedCount: UInt64 = 0

    var response = HTTPResponse()
    var encoder = ResponseEncoder()
    /// A small buffer that a connection gave back, for the next request that comes in pieces.
    private var spareBuffer: KeptBuffer?
    let queueDelayNanoseconds: UInt64
    let idleNanoseconds: UInt64

    package init(limits: HTTPServerLimits, worker: Int, handler: any HTTPRequestHandler) {
        self.limits = limits
        self.worker = worker
        self.handler = handler
        queueDelayNanoseconds = limits.queueDelay.wholeNanoseconds
        idleNanoseconds = limits.idleTimeout.wholeNanoseconds
    }

    /// A new connection, waiting for its first request.
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

    /// The worker has handled all events it was told of. Lateness is over once a whole turn had none.
    package mutating func endTurn() {
        if !sawLateRequest { lateSince = nil }
        sawLateRequest = false
    }

    /// True where requests have been waiting too long for some time, and this one is among them. A single pause (of
    /// the machine, say) sheds nothing; a queue that stays long does.
    mutating func isOverdue(arrivedAfter earliest: MonotonicInstant, _ now: MonotonicInstant) -> Bool {
        guard now.nanoseconds(since: max(waitingSince, earliest)) > queueDelayNanoseconds else { return false }
        sawLateRequest = true
        guard let since = lateSince else {
            lateSince = now
            return false
        }
        return now.nanoseconds(since: since) > queueDelayNanoseconds
    }

    /// Lets the connection keep what `buffer` holds, when its bytes must outlive this event.
    mutating func keep(_ buffer: inout RequestBuffer, for connection: Connection) {
        let own = spareBuffer.take() ?? KeptBuffer(limits: limits.http)
        // A declared body of usual length is received behind its head without growing again. A longer one grows as it
        // comes: its length is the client's word.
        let declared = connection.phase == .body ? min(buffer.requestEnd, buffer.count + limits.receiveBytes) : 0
        buffer.move(to: &own.buffer, reserving: declared)
        connection.input = own
        account(connection)
    }

    /// Counts anew what the connection takes. Called where that changes, so that a request which comes and goes in one
    /// piece costs nothing for it.
    mutating func account(_ connection: Connection) {
        let held = connection.slot >= 0 ? connection.heldBytes : 0
        heldBytes += held - connection.accountedBytes
        connection.accountedBytes = held
    }

    /// How many bytes may be received for a connection now: 0 where it holds as much as it may.
    package func room(for connection: Connection) -> Int {
        max(0, min(limits.receiveBytes, limits.requestBytes - (connection.input?.buffer.count ?? 0)))
    }

    /// Takes the connection's own buffer away: nothing of it is needed any more.
    mutating func releaseBuffer(of connection: Connection) {
        guard let own = connection.input.take() else { return }
        release(own)
        account(connection)
    }
}

extension ConnectionEngine {
    /// Keeps a small buffer for later; a large one is given back to the system.
    mutating func release(_ own: KeptBuffer) {
        guard own.buffer.bytes.capacity <= 8_192 else { return }
        own.buffer.clear()
        spareBuffer = own
    }

    /// Encodes ``response`` and prepares for what follows it.
    mutating func respond(
        _ connection: Connection,
        _ buffer: inout RequestBuffer,
        bodyIsRead: Bool,
        _ now: MonotonicInstant
    ) {
        if response.status < 200 || response.status > 599 {
            render(.handlerFailed, connection, buffer, now)
        }
        let bodyFollows = !bodyIsRead && buffer.parser.head.hasBody
        if bodyFollows, !canDiscard(buffer) { response.closesConnection = true }
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

    /// Refuses the request, and with it the connection: what follows in the stream cannot be trusted to be a request.
    mutating func fail(
        _ connection: Connection,
        _ buffer: inout RequestBuffer,
        _ failure: HTTPFailure,
        _ cause: ConnectionCloseCause,
        _ now: MonotonicInstant
    ) {
        render(failure, connection, buffer, now)
        if failure == .overloaded, !connection.isOverLimit, !buffer.parser.head.hasBody {
            // The request was understood, and the next may have better luck.
            response.closesConnection = false
            respond(connection, &buffer, bodyIsRead: false, now)
            return
        }
        _ = encodeResponse(connection, buffer, now)
        close(connection, cause: cause)
    }

    /// Answers a request that has begun because memory is short, and ends its connection: 503, or 408 to a client that takes
    /// too long with it.
    /// - Returns: False where there is none, or an answer before it still waits: the connection is just to be closed.
    package mutating func giveUp(_ connection: Connection, now: MonotonicInstant) -> Bool {
        guard !connection.isWriting, [.head, .body, .parked].contains(connection.phase),
            let own = connection.input, own.buffer.parser.hasBegun
        else { return false }
        let isLate = connection.phase != .parked && isSlow(connection, now)
        if connection.phase == .parked { handler.didAbandon(connection.request) }
        if !isLate { overloadedCount += 1 }
        render(isLate ? .timedOut : .overloaded, connection, own.buffer, now)
        _ = encodeResponse(connection, own.buffer, now)
        close(connection, cause: .memory)
        return true
    }

    /// Whether a request, or the answer to one, takes so long that the connection may make room for another.
    func isSlow(_ connection: Connection, _ now: MonotonicInstant) -> Bool {
        now > connection.busySince + limits.slowRequestAge
    }

    private mutating func render(
        _ failure: HTTPFailure,
        _ connection: Connection,
        _ buffer: borrowing RequestBuffer,
        _ now: MonotonicInstant
    ) {
        response.reset()
        response.status = failure.status
        if failure == .overloaded {
            // RFC 9110 §15.6.4.
            response.addField("Retry-After", String(limits.retryAfterSeconds))
        }
        let bytes = buffer.bytes.span.extracting(buffer.start..<buffer.end)
        let context = context(connection, .first, now)
        if buffer.parser.head.byteCount > 0 {
            handler.renderFailure(failure, buffer.parser.head, bytes: bytes, context: context, response: &response)
        } else {
            // Of a head that was not read to its end nothing counts.
            handler.renderFailure(failure, RequestHead(), bytes: bytes, context: context, response: &response)
        }
        response.status = failure.status
        response.closesConnection = true
    }

    /// - Returns: True where the connection serves further requests.
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
            buffer.parser.head.keepAlive && !response.closesConnection && !isDraining
            && connection.requestsServed < limits.requestsPerConnection && !connection.isOverLimit
            && now < connection.endsAt
        encoder.encode(
            response,
            method: method,
            minorVersion: buffer.parser.head.minorVersion,
            keepAlive: keepAlive,
            unixSeconds: unixSeconds,
            to: &output
        )
        if response.bodyIsShared, response.hasContent(for: method) { sharedOutput = response.body }
        requestCount += 1
        handler.didRespond(status: response.status, context: context(connection, .first, now))
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

    /// Ends the connection at once, with whatever it has not said yet.
    func end(_ connection: Connection, _ cause: ConnectionCloseCause) {
        connection.phase = .ended
        connection.closeCause = cause
    }
}
