internal import LLBytes

extension Connection {
    /// Visits a parked request again, and continues with the requests pipelined behind it.
    func visit(_ visit: RequestVisit, _ host: inout ConnectionHost) {
        guard let buffer = buffer.take() else { return end(.failed) }
        decide(&buffer.content, visit, &host)
        // A blocked write comes first: no input is read meanwhile.
        if phase == .parked || isWriting { self.buffer = buffer } else { process(buffer, &host) }
    }

    /// Answers the requests in the buffer in order, until one is incomplete or other connections must be served. The buffer
    /// is put back if it is still needed.
    func process(_ held: HeldBuffer, _ host: inout ConnectionHost) {
        if process(&held.content, &host) {
            held.content.trim()
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
        do throws(HTTPRefusal) {
            while true {
                switch phase {
                case .idle:
                    if buffer.count == 0 {
                        becomeIdle(host)
                        return false
                    }
                    if budget == 0 || host.output.count >= host.limits.outputBytes || host.sharedOutput != nil {
                        return true
                    }
                    budget -= 1
                    phase = .head
                    requestStart = host.now
                    phaseDeadline = .never
                case .head:
                    guard try buffer.parseHead() else {
                        if phaseDeadline == .never { phaseDeadline = requestStart + host.limits.headDeadline }
                        return true
                    }
                    receiveHead(&buffer, arrivedAfter: earliest, &host)
                case .body:
                    guard try buffer.receiveBody() else { return true }
                    decide(&buffer, .first, &host)
                case .discarding:
                    guard try buffer.receiveBody() else { return true }
                    endRequest(&buffer, at: buffer.requestEnd)
                case .parked: return true
                case .closing, .lingering, .ended, .silent, .waiting, .handshaking: return false
                }
            }
        } catch {
            // A request whose body is dropped is answered already: it gets no second answer.
            if phase == .discarding { close(.refused) } else { fail(&buffer, error, .refused, &host) }
            return false
        }
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
        RequestContext(firstByteAt: requestStart, now: host.now, visit: visit, request: request, descriptor: descriptor)
    }

    /// Encodes the response and prepares for the bytes behind the request.
    private func respond(_ buffer: inout RequestBuffer, bodyIsRead: Bool, _ host: inout ConnectionHost) {
        if buffer.exchange.response.status < 200 || buffer.exchange.response.status > 599 {
            render(.handlerFailed, &buffer, host)
        }
        let bodyFollows = !bodyIsRead && buffer.exchange.head.hasBody
        // RFC 9112 §9.3: the rest of a body is read, or the connection is closed. A client that asked for `100 Continue`
        // may or may not send its body now, so its connection is closed, even if some bytes have already come.
        let bodyIsTooLong = (buffer.exchange.head.contentLength ?? 0) > host.limits.http.bodyBytes
        if bodyFollows, buffer.exchange.head.expectsContinue || bodyIsTooLong {
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

/// A request and its response. The ranges of the request are of its bytes, which go beside it: a span cannot be kept. One
/// value serves many requests. It is handed on `inout`, even to be read: a function that borrows it would be given a copy.
package struct HTTPExchange: ~Copyable {
    package internal(set) var head = RequestHead()
    /// The content, without chunked coding; empty before it is read, and if there is none.
    package internal(set) var body = 0..<0
    package var context: RequestContext
    package var response = HTTPResponse()

    package init(context: RequestContext) { self.context = context }

    mutating func prepare(_ context: RequestContext, body: Range<Int> = 0..<0) {
        response.reset()
        self.context = context
        self.body = body
    }
}

/// The received bytes of a connection, with their parser and the exchange of the current request. As a value it needs one
/// check of exclusive access for all of an event's uses.
package struct RequestBuffer: ~Copyable {
    /// Storage; the bytes before `start` belong to answered requests.
    private(set) var bytes: [UInt8] = []
    private(set) var start = 0
    private var parser: RequestParser
    var exchange: HTTPExchange
    private var decoder: ChunkedDecoder?
    /// Chunked: the length of the content found so far, which is moved to right behind the head.
    private var decodedCount = 0
    /// Chunked: the offset from `start` of the first byte not yet decoded.
    private var rawOffset = 0

    init(limits: HTTPLimits, _ exchange: consuming HTTPExchange) {
        self.exchange = exchange
        parser = RequestParser(limits: limits)
    }

    var count: Int { bytes.count - start }

    var hasBegun: Bool { parser.hasBegun }

    var bodyRange: Range<Int> {
        let head = exchange.head.byteCount
        return head..<head + (exchange.head.isChunked ? decodedCount : exchange.head.contentLength ?? 0)
    }

    /// The first byte behind the complete request, from `start`.
    var requestEnd: Int {
        exchange.head.isChunked ? rawOffset : exchange.head.byteCount + (exchange.head.contentLength ?? 0)
    }

    /// The memory of the storage, of an unfinished trailer section, and of the greatest list of fields: 100 of 32 bytes
    /// each, rounded up as arrays grow.
    var heldBytes: Int { bytes.capacity + (decoder?.trailer.capacity ?? 0) + 4_096 }

    /// Adds received bytes. Answered requests are removed first, which moves each byte at most once: the next request
    /// then begins at the front.
    mutating func append(_ received: Span<UInt8>) {
        if start > 0 {
            bytes.removeFirst(start)
            start = 0
        }
        let needed = bytes.count + received.count
        // The buffer grows by whole pages and does not double: it holds little more than the bytes that came.
        if needed > bytes.capacity { bytes.reserveCapacity((needed + 4_095) & ~4_095) }
        bytes.append(received)
    }

    /// Frees memory that earlier requests needed: a connection is about to keep the buffer.
    mutating func trim() {
        exchange.response = HTTPResponse()
        guard bytes.capacity - count > 8_192 else { return }
        bytes = Array(bytes[start...])
        start = 0
    }

    /// Skips the first `count` bytes of the current request: the next one begins behind them.
    mutating func advance(by count: Int) {
        start = min(start + count, bytes.count)
        parser.reset(&exchange.head)
        decodedCount = 0
        rawOffset = 0
    }

    /// Makes the head the whole request. Bytes behind a head that declares a body cannot be trusted to be that body or
    /// the next request (RFC 9112 §6.3, §11.2): they are dropped, and the connection is not to be kept.
    mutating func dropBody() {
        guard exchange.head.hasBody else { return }
        cut(at: min(start + exchange.head.byteCount, bytes.count))
        exchange.head.dropBody()
    }

    private mutating func cut(at end: Int) { bytes.removeLast(bytes.count - end) }

    mutating func clear() {
        bytes.removeAll(keepingCapacity: true)
        start = 0
        advance(by: 0)
    }

    /// - Returns: True once the head is complete.
    mutating func parseHead() throws(HTTPRefusal) -> Bool {
        let bytes = bytes
        return try parser.parse(bytes.span.extracting(start..<bytes.count), into: &exchange.head)
    }

    /// - Parameter end: The end of the bytes that the function gets, counted from `start`.
    @inline(__always)
    mutating func call<Answer>(upTo end: Int? = nil, _ function: (inout HTTPExchange, Span<UInt8>) -> Answer) -> Answer
    {
        // A second reference during the call: the bytes do not change meanwhile, so nothing is copied.
        let bytes = bytes
        return function(&exchange, bytes.span.extracting(start..<start + (end ?? count)))
    }

    private mutating func nextEvent() throws(HTTPRefusal) -> ChunkedDecoder.Event {
        let bytes = bytes
        var position = start + rawOffset
        let event = try decoder?.next(in: bytes.span, from: &position) ?? .needMore
        rawOffset = position - start
        return event
    }

    mutating func beginBody(atMost limit: Int) {
        rawOffset = exchange.head.byteCount
        if exchange.head.isChunked { decoder = ChunkedDecoder(limits: parser.limits, bodyLimit: limit) }
    }

    mutating func receiveBody() throws(HTTPRefusal) -> Bool {
        exchange.head.isChunked ? try decodeBody() : count >= requestEnd
    }

    /// Decodes the received bytes, and moves the content together right behind the head. It never moves forward, since
    /// coding only adds bytes.
    /// - Returns: True if the body is complete; it ends at ``rawOffset``.
    private mutating func decodeBody() throws(HTTPRefusal) -> Bool {
        while true {
            switch try nextEvent() {
            case .data(let range):
                moveDown(range, to: start + exchange.head.byteCount + decodedCount)
                decodedCount += range.count
            case .needMore:
                // All raw bytes are used; the next ones are received right behind the content.
                rawOffset = exchange.head.byteCount + decodedCount
                cut(at: start + rawOffset)
                return false
            case .complete: return true
            }
        }
    }

    private mutating func moveDown(_ range: Range<Int>, to target: Int) {
        guard target < range.lowerBound else { return }
        // target < range.lowerBound and range.upperBound <= bytes.count, so both areas lie within the array;
        // copyMemory allows them to overlap.
        unsafe bytes.withUnsafeMutableBytes { all in
            guard let base = all.baseAddress else { return }
            unsafe (base + target).copyMemory(from: base + range.lowerBound, byteCount: range.count)
        }
    }
}

/// A buffer that is handed between connections without a copy.
package final class HeldBuffer {
    var content: RequestBuffer

    init(_ content: consuming RequestBuffer) { self.content = content }
}
