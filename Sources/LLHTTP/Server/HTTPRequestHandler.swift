/// Answers the requests of one worker, on that worker's thread alone. A span is valid only during the call.
package protocol HTTPRequestHandler: AnyObject {
    /// Called once, before any request. The handler's background work wakes a parked request with `waker`.
    func attach(_ waker: @escaping RequestWaker)

    /// The head is complete and valid, the body not yet read. Fill in the empty response if the head decides (404, 405,
    /// 413, 415, 401 …), or ask for the body. The body of a request answered here is read and dropped, or the connection
    /// is closed.
    func receiveHead(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> HeadDecision

    /// The whole request is there: fill in the empty response, or park. Called again on the same bytes after parking,
    /// with another ``RequestContext/visit``.
    func receiveRequest(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> RequestDecision

    /// The server itself refuses the request. The response has its status and the fields that the status needs
    /// (`Retry-After` …); the handler adds the body and its `Content-Type`. A head that was not read completely is empty.
    func renderFailure(_ failure: HTTPRefusal, _ exchange: inout HTTPExchange, bytes: Span<UInt8>)

    /// True for requests that are answered even while the server refuses others for overload: health checks.
    func isExemptFromOverload(_ head: borrowing RequestHead, bytes: Span<UInt8>) -> Bool

    /// The response to a request of this handler has been encoded and is sent next; for durations and metrics.
    func didRespond(status: UInt16, context: RequestContext)

    /// The connection of a parked request is closed.
    func didAbandon(_ request: ParkedRequest)

    /// The client of a parked request has ended its direction, and has probably left.
    /// - Returns: True if the request is to be answered now, so that it gives up its place.
    func didHangUp(_ request: ParkedRequest) -> Bool

    /// The first bytes on a connection to a TLS listener are no TLS: plain HTTP, or a header of the PROXY protocol.
    func didReceiveNoTLS(at now: MonotonicInstant)

    /// The worker calls it before it waits for events. The handler does the work that is due without a request.
    /// - Returns: The moment at which the worker calls again even if no event comes.
    func willWait(at now: MonotonicInstant) -> MonotonicInstant
}

extension HTTPRequestHandler {
    package func isExemptFromOverload(_ head: borrowing RequestHead, bytes: Span<UInt8>) -> Bool { false }
    package func didRespond(status: UInt16, context: RequestContext) {}
    package func attach(_ waker: @escaping RequestWaker) {}
    package func didAbandon(_ request: ParkedRequest) {}
    package func didHangUp(_ request: ParkedRequest) -> Bool { false }
    package func didReceiveNoTLS(at now: MonotonicInstant) {}
    package func willWait(at now: MonotonicInstant) -> MonotonicInstant { .never }

    package func renderFailure(_ failure: HTTPRefusal, _ exchange: inout HTTPExchange, bytes: Span<UInt8>) {
        exchange.response.addField("Content-Type: text/plain; charset=utf-8")
        exchange.response.body.append(contentsOf: "\(failure.rawValue)\n".utf8)
    }
}

package enum HeadDecision: Equatable, Sendable {
    case respond
    /// Read the body; a body above this number of bytes is answered 413. ``HTTPLimits/bodyBytes`` bounds it further.
    case readBody(atMost: Int)
    /// The head is the whole request, whatever body it declares: for gateways that pass on only the head of a client's
    /// request. A declared body may or may not be in the stream, so the connection ends after the answer.
    case ignoreBody
}

package enum RequestDecision: Equatable, Sendable {
    case respond
    /// The answer is not ready: call again after ``HTTPServer/wakeParked()`` or a ``RequestWaker``, and at this
    /// moment at the latest. Parking again on a visit that is ``RequestVisit/expired`` is an error, answered 503.
    case park(until: MonotonicInstant)
}

package enum RequestVisit: Equatable, Sendable {
    case first
    case woken
    /// The parked request's time is over: it must be answered now.
    case expired
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

/// The facts of a request besides its bytes.
package struct RequestContext: Sendable {
    /// The moment at which the first byte of the request was read.
    package let firstByteAt: MonotonicInstant
    /// The present moment, read at the last event of this worker.
    package var now: MonotonicInstant
    package var visit = RequestVisit.first
    package let request: ParkedRequest
    let descriptor: Int32

    /// The client's address; each read costs a system call. Nil if the client has disconnected, if there is no socket,
    /// or if it is a Unix socket, since clients have no address there.
    package var peerAddress: SocketAddress? { Socket.peerAddress(of: descriptor) }
}

/// The identity of one parked request: no other request of this server has or had the same.
package struct ParkedRequest: Hashable, Sendable {
    package let connectionID: UInt64
    package let requestsBefore: Int
    /// The worker finds the connection in this slot. Another one may use it later, hence the two numbers above.
    var slot = -1
}

/// Wakes single parked requests of one worker, from any thread: the worker calls the handler again with
/// ``RequestVisit/woken``, unless the request was answered meanwhile or its client disconnected. A wake before the
/// request has been parked (its handler has not returned yet) is kept until then.
package typealias RequestWaker = @Sendable (ParkedRequest) -> Void
