package import LLHTTP1
package import LLSockets

/// What a worker asks about each request. One handler serves one worker and is only ever called on its thread.
///
/// Every span is valid during the call alone: what must outlive it is copied.
package protocol HTTPRequestHandler: AnyObject {
    /// Called once, before any request: with this the handler's background work wakes a request it parked.
    func attach(_ waker: RequestWaker)

    /// The head is complete and valid, the body not yet read.
    ///
    /// Answer at once where the head decides (404, 405, 413, 415, 401 …), or ask for the body. A request without a
    /// body may be answered here too; the body of a request answered here is read and dropped, or the connection closed.
    /// - Parameters:
    ///   - head: Ranges into `bytes`.
    ///   - response: Empty; to be filled in for ``HeadDecision/respond``.
    func receiveHead(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> HeadDecision

    /// The whole request is there. Called again on the same bytes after parking, with another
    /// ``RequestContext/visit``.
    /// - Parameters:
    ///   - body: The content, chunked coding removed; empty where there is none.
    ///   - response: Empty; to be filled in for ``RequestDecision/respond``.
    func receiveRequest(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        body: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> RequestDecision

    /// The server itself refuses the request. `response` has its status set and the fields that status needs
    /// (`Retry-After` …); the handler adds the body and its `Content-Type`.
    /// - Parameter head: The request's; empty where it was not read to its end.
    func renderFailure(
        _ failure: HTTPFailure,
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    )

    /// True for requests that are answered even where the server refuses others for overload: health checks.
    func isExemptFromOverload(_ head: borrowing RequestHead, bytes: Span<UInt8>) -> Bool

    /// The response to a request of this handler has been encoded, to be sent next; for durations and metrics.
    /// - Parameters:
    ///   - status: The status sent.
    ///   - context: That of the request's first call, `now` the present moment.
    func didRespond(status: UInt16, context: RequestContext)

    /// The connection of a parked request is gone: nobody waits for its answer any more.
    func didAbandon(_ request: ParkedRequest)
}

extension HTTPRequestHandler {
    package func isExemptFromOverload(_ head: borrowing RequestHead, bytes: Span<UInt8>) -> Bool { false }
    package func didRespond(status: UInt16, context: RequestContext) {}
    package func attach(_ waker: RequestWaker) {}
    package func didAbandon(_ request: ParkedRequest) {}

    /// The failure's sentence as plain text.
    package func renderFailure(
        _ failure: HTTPFailure,
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) {
        response.addField("Content-Type: text/plain; charset=utf-8")
        response.body.append(contentsOf: "\(failure.sentence)\n".utf8)
    }
}

/// What to do after a request head.
package enum HeadDecision: Equatable, Sendable {
    /// `response` is the answer.
    case respond
    /// Read the body; more than so many bytes is 413. ``HTTPLimits/bodyBytes`` bounds it further.
    case readBody(atMost: Int)
    /// The head is the whole request, whatever body it declares: for callers that pass on somebody's head alone. Where
    /// one is declared, it may or may not be in the stream, so the connection ends after the answer.
    case ignoreBody
}

/// What to do after a whole request.
package enum RequestDecision: Equatable, Sendable {
    /// `response` is the answer.
    case respond
    /// The answer waits for something: call again when ``HTTPServer/wakeParked()`` or ``RequestWaker/wake(_:)`` is
    /// called, and at this moment at the latest. On a visit that is ``RequestVisit/expired`` parking again is an error answered 503.
    case park(until: MonotonicInstant)
}

/// Why a handler sees a request.
package enum RequestVisit: Equatable, Sendable {
    case first
    /// The parked request was woken.
    case woken
    /// The parked request's time is over: it must be answered now.
    case expired
}

/// The facts about a request besides its bytes.
package struct RequestContext: Sendable {
    /// When the first byte of the request was read.
    package let firstByteAt: MonotonicInstant
    /// The present moment, as of the last event of this worker.
    package var now: MonotonicInstant
    /// Why the handler sees the request.
    package var visit: RequestVisit
    /// The worker that serves the connection, from 0.
    package let worker: Int
    /// The name of this request: what wakes it once it is parked.
    package let request: ParkedRequest
    /// True once stopping has begun.
    package let isDraining: Bool
    let descriptor: Int32

    package init(
        firstByteAt: MonotonicInstant,
        now: MonotonicInstant,
        visit: RequestVisit = .first,
        worker: Int,
        request: ParkedRequest,
        isDraining: Bool,
        descriptor: Int32
    ) {
        self.firstByteAt = firstByteAt
        self.now = now
        self.visit = visit
        self.worker = worker
        self.request = request
        self.isDraining = isDraining
        self.descriptor = descriptor
    }

    /// The facts for another look within the same call, once what the request waits for has begun.
    package var again: RequestContext {
        var context = self
        context.visit = .woken
        return context
    }

    /// The client's address; asks the system, so it costs a call. Nil where the client is gone, or there is no
    /// socket, or a Unix one, whose clients have no address.
    package var peerAddress: SocketAddress? { Socket.peerAddress(of: descriptor) }
}

/// A refusal by the server itself, before or instead of its handler.
package enum HTTPFailure: Equatable, Sendable {
    /// The grammar refuses the request: 400, 413, 414, 417, 431, 501 or 505.
    case refused(RequestRefusal)
    /// The body exceeds what the handler asked for: 413.
    case bodyTooLarge
    /// Head or body did not arrive in time: 408.
    case timedOut
    /// Requests wait too long, or there are too many connections: 503 with Retry-After.
    case overloaded
    /// The handler broke its contract (a status out of range, parking for ever): 500.
    case handlerFailed

    package var status: UInt16 { facts.status }
    package var sentence: String { facts.sentence }

    private var facts: (status: UInt16, sentence: String) {
        switch self {
        case .refused(let refusal): (refusal.status, refusal.rawValue)
        case .bodyTooLarge: (413, "The body is larger than this path takes.")
        case .timedOut: (408, "The request did not arrive whole in time.")
        case .overloaded: (503, "Too many requests are waiting; try again shortly.")
        case .handlerFailed: (500, "The service failed to answer.")
        }
    }
}

/// The name of one request while it is parked: no other request of this server has or had the same.
package struct ParkedRequest: Hashable, Sendable {
    /// The connection it came on: a number no other connection of the process has had.
    package let connectionID: UInt64
    /// How many requests came before it on that connection.
    package let requestsBefore: Int
    /// Where the worker finds the connection without a search; another may stand there later, hence the two above.
    let slot: Int

    package init(connectionID: UInt64, requestsBefore: Int, slot: Int = -1) {
        self.connectionID = connectionID
        self.requestsBefore = requestsBefore
        self.slot = slot
    }
}

/// Wakes single parked requests of one worker, from any thread.
///
/// Requests nobody parks cost nothing for it. A wake of a request that was answered meanwhile, or whose client left, does
/// nothing; one that comes before the request has been parked (its handler has not returned yet) is kept until it is.
package struct RequestWaker: Sendable {
    private let handle: WorkerHandle

    init(_ handle: WorkerHandle) { self.handle = handle }

    /// Has the worker call the handler again with ``RequestVisit/woken`` for this request and no other.
    package func wake(_ request: ParkedRequest) { handle.wake(request) }
}
