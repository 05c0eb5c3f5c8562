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

/// Jobs on other threads, and the requests of one worker that wait for them, parked. When a job has ended, its request
/// alone is woken and takes the outcome, with the results that it had before it parked. The outcome is dropped if no
/// request waits for it any more (its client disconnected, or its time was over).
package final class BackgroundJobs<Kept: Sendable, Outcome: Sendable>: Sendable {
    package enum Visit {
        case none
        /// Its job is not over: park again, until this moment.
        case waiting(until: MonotonicInstant)
        /// Its job is over: the kept results, and the job's outcome.
        case done(Kept, Outcome)
        /// Its time is over: the kept results.
        case expired(Kept)
    }

    private struct Entry {
        let kept: Kept
        let deadline: MonotonicInstant
        var outcome: Outcome?
    }

    package let capacity: Int
    private let state = Locked<(entries: [ParkedRequest: Entry], waker: RequestWaker?)>(([:], nil))

    package init(capacity: Int) { self.capacity = capacity }

    /// Sets the waker of the requests; called once, before the first job.
    package func attach(_ waker: @escaping RequestWaker) { state.withLock { $0.waker = waker } }

    package var count: Int { state.withLock { $0.entries.count } }

    /// Begins the job of a request, which the handler then parks until this moment.
    /// - Parameter start: Hands the job to another thread; false if that thread takes no more.
    /// - Returns: False if too many requests wait already, or if the request's time is over: it may not wait again.
    package func begin(
        _ context: RequestContext,
        keeping kept: Kept,
        until deadline: MonotonicInstant,
        start: (ParkedRequest) -> Bool
    ) -> Bool {
        let request = context.request
        // Store the entry first: the job may end before this function returns.
        let isEntered = state.withLock { state in
            guard context.visit != .expired, state.entries.count < capacity else { return false }
            state.entries[request] = Entry(kept: kept, deadline: deadline)
            return true
        }
        guard isEntered else { return false }
        if start(request) { return true }
        abandon(request)
        return false
    }

    package func isAwaited(_ request: ParkedRequest) -> Bool { state.withLock { $0.entries[request] != nil } }

    /// The job of a request is over; may be called on any thread.
    /// - Returns: False if no request waits for it any more.
    @discardableResult
    package func finish(_ request: ParkedRequest, _ outcome: Outcome, now: MonotonicInstant) -> Bool {
        let waker = state.withLock { state -> RequestWaker? in
            guard let entry = state.entries[request], entry.outcome == nil, now < entry.deadline else { return nil }
            state.entries[request]?.outcome = outcome
            return state.waker
        }
        // Wake it outside the lock: the worker may visit the entry at once.
        waker?(request)
        return waker != nil
    }

    /// The state of the visited request. Its entry is removed, unless the request must wait longer.
    package func visit(_ context: RequestContext) -> Visit {
        let request = context.request
        return state.withLock { state in
            guard let entry = state.entries[request] else { return .none }
            if entry.outcome == nil, context.visit != .expired { return .waiting(until: entry.deadline) }
            state.entries[request] = nil
            guard let outcome = entry.outcome else { return .expired(entry.kept) }
            return .done(entry.kept, outcome)
        }
    }

    package func abandon(_ request: ParkedRequest) { state.withLock { $0.entries[request] = nil } }
}
