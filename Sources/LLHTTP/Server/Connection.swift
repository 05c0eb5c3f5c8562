internal import LLBytes

/// One HTTP/1.1 connection, without any I/O: ``received(_:by:)`` adds to the one buffer; `process` parses it, asks the
/// handler and encodes the answers into the host's output. Then ``next(_:)`` alone decides what the worker does.
///
/// Properties that change with every request are not visible in other modules: the compiler then omits the checks at
/// run time.
package final class Connection {
    enum Phase {
        case idle
        case head
        /// Within a body that a handler asked for.
        case body
        /// Within a body that is dropped; its response is already made.
        case discarding
        /// A whole request waits for its handler's answer.
        case parked
        /// The last response is made. It is sent, then the sending direction ends.
        case closing
        /// The sending direction has ended. Further input is dropped until the peer ends its direction.
        case lingering
        /// Nothing more can be sent: the connection is to be closed at once.
        case ended
        /// Before the first request over TLS: no byte has come, or the handshake waits until earlier ones are done, or it
        /// is in progress.
        case silent, waiting, handshaking
    }

    package enum Interest: Sendable { case input, outputSpace, hangUp, nothing }

    /// The worker's next step, after the output of an event is sent or waits for space.
    package enum Step: Equatable, Sendable {
        case wait
        /// Serve other connections first, then call ``resume(_:)``.
        case resume
        /// End the sending direction, then wait for input and drop it.
        case shutdownWrite
        case close(ConnectionCloseCause)
    }

    /// No other connection of the process has had this number.
    package let id: UInt64
    let descriptor: Int32
    /// A connection beyond the limit gets one answer.
    let isOverLimit: Bool
    /// After this moment the next response ends the connection.
    private(set) var endsAt: MonotonicInstant
    /// The moment at which the connection last ceased to be wholly idle. A client that begins each request before the
    /// previous one has ended cannot make itself look new.
    var busySince: MonotonicInstant

    var phase = Phase.idle
    var requestsServed = 0
    private var writeIsBlocked = false
    var phaseDeadline: MonotonicInstant
    private var writeDeadline = MonotonicInstant.never
    private var writeProgress = 0
    var requestStart: MonotonicInstant
    /// The peer ended its direction while a request was parked. Bytes sent before that may still be unread, so this
    /// flag only stops further reports; reading finds the end itself.
    private var hangUpSeen = false
    private(set) var closeCause = ConnectionCloseCause.finished
    private var lingerBytesLeft = 0
    /// An incomplete or parked request, or pipelined requests that wait; nil while idle.
    var buffer: HeldBuffer?

    // The worker's own bookkeeping.
    var tls: TLSConnection?
    /// The event that TLS waits for, if it is not the one that the connection waits for.
    var tlsInterest: Interest?
    var tlsHasFailed = false
    var slot = -1
    /// The output that waits for space in the socket, in order.
    var pending: [PendingOutput] = []
    /// The bytes that ``ConnectionHost/account(_:)`` last counted for this connection.
    var accountedBytes = 0
    var registeredEvents = 0
    /// True while it is among those that continue once others were served.
    var isQueued = false

    package init(id: UInt64, descriptor: Int32, isOverLimit: Bool, _ host: borrowing ConnectionHost) {
        self.id = id
        self.descriptor = descriptor
        self.isOverLimit = isOverLimit
        endsAt = host.now + host.limits.connectionAge
        phaseDeadline = host.now.adding(nanoseconds: host.idleNanoseconds)
        busySince = host.now
        requestStart = host.now
    }

    package var isWriting: Bool { writeIsBlocked }

    package var hasEnded: Bool { phase == .ended }

    /// True until the TLS handshake is over: no request can have come.
    var isHandshaking: Bool { phase == .silent || phase == .waiting || phase == .handshaking }

    /// While a write is blocked, only the write's deadline and a parked request's own count: no input is read then.
    package var deadline: MonotonicInstant {
        guard isWriting else { return phaseDeadline }
        return phase == .parked ? min(phaseDeadline, writeDeadline) : writeDeadline
    }

    package var interest: Interest {
        if isWriting { return .outputSpace }
        switch phase {
        case .parked: return hangUpSeen ? .nothing : .hangUp
        case .closing, .ended, .waiting: return .nothing
        case .idle, .head, .body, .discarding, .lingering, .silent, .handshaking: return .input
        }
    }

    var request: ParkedRequest { ParkedRequest(connectionID: id, requestsBefore: requestsServed, slot: slot) }

    package var hasBufferedInput: Bool { buffer != nil }

    /// True if a part of a request has come, or if whole requests wait.
    var hasPartialInput: Bool { hasBufferedInput || tls?.holdsPartialInput == true }

    /// The number of bytes that may be received now.
    package func room(_ limits: HTTPServerLimits) -> Int {
        max(0, min(limits.receiveBytes, limits.requestBytes - (buffer?.content.count ?? 0)))
    }

    /// True if a request, or the answer to one, takes so long that the connection may make room for another.
    func isSlow(_ limits: HTTPServerLimits, at now: MonotonicInstant) -> Bool {
        now > busySince + limits.slowRequestAge
    }

    package func received(_ bytes: Span<UInt8>, by host: inout ConnectionHost) {
        if phase == .lingering || phase == .closing {
            lingerBytesLeft -= bytes.count
            if phase == .lingering, lingerBytesLeft <= 0 { phase = .ended }
            return
        }
        if buffer == nil { busySince = host.now }
        let buffer = self.buffer.take() ?? host.makeBuffer(context(.first, host))
        buffer.content.append(bytes)
        process(buffer, &host)
    }

    package func resume(_ host: inout ConnectionHost) {
        guard phase == .idle, !isWriting, let buffer = buffer.take() else { return }
        process(buffer, &host)
    }

    package func wake(_ host: inout ConnectionHost) {
        if phase == .parked { visit(.woken, &host) }
    }

    /// The next step, after the host's output was sent or waits for space in the socket; called once after each event.
    package func next(_ host: inout ConnectionHost) -> Step {
        switch phase {
        case .ended: return .close(closeCause)
        case .closing where !isWriting:
            releaseBuffer(&host)
            // RFC 9112 §9.6: close in stages, so that a reset does not take the last response with it.
            phase = .lingering
            lingerBytesLeft = host.limits.lingerBytes
            phaseDeadline = host.now + host.limits.lingerTimeout
            return .shutdownWrite
        case .idle where hasBufferedInput && !isWriting: return .resume
        default: return .wait
        }
    }

    package func outputSent(_ host: borrowing ConnectionHost) {
        writeIsBlocked = false
        writeDeadline = .never
        // A connection with a slow reader lives no longer than an idle one.
        if phase == .idle {
            phaseDeadline = min(host.now, endsAt).adding(nanoseconds: host.idleNanoseconds)
            beginDrain(host)
        }
        let isTooOld = host.now >= endsAt.adding(nanoseconds: host.idleNanoseconds)
        if isTooOld, [.idle, .head, .body].contains(phase) { end(.idle) }
        // The client is not charged for the time in which the server did not read.
        if phase == .head { phaseDeadline = host.now + host.limits.headDeadline }
        if phase == .body { phaseDeadline = host.now + host.limits.bodyDeadline }
    }

    /// The socket took `count` bytes and no more; the rest waits for space.
    package func outputBlocked(sent count: Int, _ host: borrowing ConnectionHost) {
        writeProgress += count
        if !isWriting || writeProgress >= host.limits.writeProgressBytes {
            writeIsBlocked = true
            writeProgress = 0
            writeDeadline = host.now + host.limits.writeStall
        }
    }

    package func deadlinePassed(_ host: inout ConnectionHost) {
        if isWriting, host.now >= writeDeadline { return end(.writeStalled) }
        switch phase {
        case .silent, .waiting, .handshaking: end(host.isDraining ? .stopped : .handshake)
        case .idle: end(host.isDraining ? .stopped : .idle)
        case .head, .body:
            // If only empty lines have come, there is no request to answer.
            guard let buffer, phase == .body || buffer.content.hasBegun else { return end(.idle) }
            fail(&buffer.content, .timedOut, .requestTimeout, &host)
        case .discarding: close(.requestTimeout)
        case .parked: visit(.expired, &host)
        case .lingering: phase = .ended
        case .closing, .ended: break
        }
    }

    /// The peer ended its direction, and every byte before the end was read; while a request is parked, the end was
    /// only reported. Complete requests are answered, then the connection closes (RFC 9112 §9.5).
    package func inputEnded() {
        switch phase {
        case .idle: end(.client)
        case .head, .body, .discarding, .silent, .waiting, .handshaking: end(.disconnected)
        case .lingering: phase = .ended
        case .parked: hangUpSeen = true
        case .closing, .ended: break
        }
    }

    /// The TLS handshake is over. An old connection would not notice that its client's certificate has expired, so the
    /// events after the last answer that keeps it open must fit into its age.
    package func secured(clientIsVerified: Bool, _ host: borrowing ConnectionHost) {
        if clientIsVerified {
            let limits = host.limits
            // The rest of an unread body, the idle time, and the last request.
            let rest = limits.bodyDeadline + limits.idleTimeout + limits.headDeadline + limits.bodyDeadline
            endsAt = min(endsAt, host.now + (limits.verifiedConnectionAge - rest))
        }
        phase = .idle
        becomeIdle(host)
    }

    func becomeIdle(_ host: borrowing ConnectionHost) {
        phaseDeadline = host.now.adding(nanoseconds: host.idleNanoseconds)
        beginDrain(host)
    }

    /// If stopping has begun, an idle connection stays for a moment, since a request may already be on its way.
    package func beginDrain(_ host: borrowing ConnectionHost) {
        if host.isDraining, phase == .idle || isHandshaking, !isWriting {
            phaseDeadline = min(phaseDeadline, host.now + host.limits.drainIdleWait)
        }
    }

    /// Ends the connection at once and drops its unsent output.
    func end(_ cause: ConnectionCloseCause) {
        phase = .ended
        closeCause = cause
    }

    /// RFC 9112 §9.6: no request is processed after a response with `close`.
    func close(_ cause: ConnectionCloseCause) {
        phase = .closing
        phaseDeadline = .never
        closeCause = cause
    }

    package var heldBytes: Int {
        var held = Self.ownBytes + (buffer?.content.heldBytes ?? 0)
        for output in pending where !output.isShared { held += output.bytes.capacity }
        guard let tls else { return held }
        if isHandshaking { return held + Self.handshakeBytes }
        held += Self.sessionBytes
        if tls.holdsPartialInput { held += Self.recordBytes }
        // The answer to a key update (RFC 8446 section 4.6.3) also needs a record if the socket does not take it.
        if isWriting || tlsInterest == .outputSpace { held += Self.recordBytes }
        return held
    }

    /// The connection itself, with its entries in the worker's tables: 1 KiB.
    static let ownBytes = 1_024
    /// OpenSSL's memory within a handshake: 46 KiB, and after it 11 KiB; measured with OpenSSL 3.0. A client cannot
    /// make its handshake larger: ``TLSContext`` bounds its messages.
    static let handshakeBytes = 46 * 1_024
    private static let sessionBytes = 11 * 1_024
    /// An incomplete record, in either direction: 16 KiB and its framing (RFC 8446 section 5.1).
    private static let recordBytes = 17 * 1_024

    func releaseBuffer(_ host: inout ConnectionHost) {
        guard let buffer = buffer.take() else { return }
        host.release(buffer)
        host.account(self)
    }
}

/// Bytes of an answer; a shared body is sent without a copy and counts for no connection.
struct PendingOutput {
    let bytes: [UInt8]
    var isShared = false
    var offset = 0
}

/// The part of a worker that its connections use: limits, handler, clock, and the output of the current event. As a
/// value it needs no check of exclusive access at each use.
package struct ConnectionHost: ~Copyable {
    package let limits: HTTPServerLimits
    let handler: any HTTPRequestHandler
    /// Response bytes of the current event; the worker sends them and empties it.
    package var output: [UInt8] = []
    /// A shared body that follows ``output``; the worker takes it. No further request is answered before it is sent.
    package var sharedOutput: [UInt8]?
    var counters = HTTPServerCounters()
    package var now: MonotonicInstant
    /// For `Date`, in seconds since 1970.
    package var unixSeconds: Int64 = 0
    /// True once stopping has begun: each response ends its connection.
    package var isDraining = false
    /// Requests handled now may have waited since this moment; ``HTTPServerLimits/queueDelay`` is measured from it.
    package var waitingSince = MonotonicInstant.never
    /// The start of the lateness: every turn since then had a late request. Nil while no request is late.
    private var lateSince: MonotonicInstant?
    private var sawLateRequest = false

    var encoder = ResponseEncoder()
    /// A buffer that a connection released: usually every request of a worker is read into it.
    private var spareBuffer: HeldBuffer?
    private let queueDelayNanoseconds: UInt64
    let idleNanoseconds: UInt64

    package init(limits: HTTPServerLimits, handler: any HTTPRequestHandler, now: MonotonicInstant) {
        self.limits = limits
        self.handler = handler
        self.now = now
        queueDelayNanoseconds = limits.queueDelay.wholeNanoseconds
        idleNanoseconds = limits.idleTimeout.wholeNanoseconds
    }

    /// The worker has handled all reported events. Lateness ends with a turn without a late request.
    package mutating func endTurn() {
        if !sawLateRequest { lateSince = nil }
        sawLateRequest = false
    }

    /// True if requests have been late for some time, and this one is late too. One pause (of the machine, for example)
    /// refuses no request; a queue that stays long does.
    mutating func isOverdue(arrivedAfter earliest: MonotonicInstant) -> Bool {
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
        counters.heldBytes += held - connection.accountedBytes
        connection.accountedBytes = held
    }

    mutating func makeBuffer(_ context: RequestContext) -> HeldBuffer {
        spareBuffer.take() ?? HeldBuffer(RequestBuffer(limits: limits.http, HTTPExchange(context: context)))
    }

    /// Stores a buffer for the next request; one of an unusually long request is freed.
    mutating func release(_ buffer: HeldBuffer) {
        guard buffer.content.bytes.capacity <= limits.receiveBytes else { return }
        buffer.content.clear()
        spareBuffer = buffer
    }
}
