internal import Dispatch
internal import LLHTTP
internal import LimitedLogin

/// The queues that call Graph: one for permissions and one for access tokens, so that neither kind waits for the other.
package final class GraphWorkers: Sendable {
    /// The greatest number of calls about permissions at a time. 4: 40 calls a second, with Graph's usual 0.1 s each.
    package static let threadLimit = 4
    /// The greatest number of calls that wait for a thread. 64: with 0.3 s each they end within the deadline.
    /// Calls beyond that are refused at once.
    package static let queueLimit = 64
    /// The greatest number of checks of access tokens at a time. 16: 80 logins a second, with two calls of 0.1 s each.
    package static let accessTokenThreadLimit = 16
    /// The greatest number of access tokens that wait for a thread. 240: at 80 a second they take 3 of the deadline's 5 s.
    package static let accessTokenQueueLimit = 240

    let client: GraphClient
    private let permissions: SharedPlaces
    /// Callers share threads and queue fairly, because any client can make up access tokens.
    let accessTokens: SharedPlaces
    /// The calls about permissions without a delivered outcome.
    private let unfinished = DispatchGroup()

    package init(client: GraphClient) {
        self.client = client
        permissions = SharedPlaces("graph", placeLimit: Self.threadLimit, queueLimit: Self.queueLimit)
        accessTokens = SharedPlaces(
            "graph-tokens",
            placeLimit: Self.accessTokenThreadLimit,
            queueLimit: Self.accessTokenQueueLimit
        )
    }

    /// Calls Graph for a request, which is parked meanwhile.
    /// - Parameters:
    ///   - login: The login that the call ends. It may be refused although Graph succeeded: the other replicas or the
    ///     backend could then not be told of it.
    ///   - isQuestion: True for a call that changes nothing at Facebook.
    ///   - call: Blocks its thread until Graph has answered or the time is over, and returns the writer of the answer.
    static func ask(
        revoking login: (app: String, user: String)? = nil,
        isQuestion: Bool = false,
        _ worker: WorkerContext,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>,
        _ call: @escaping @Sendable (GraphClient) throws(GraphFailure) -> ReplayGuard.Writer
    ) throws(Rejection) -> Outcome {
        let busy = Rejection(.overloaded, "Too many requests are waiting for Graph; try again shortly.")
        guard let graph = worker.core.graph else { throw busy }
        let deadline = exchange.context.now + graph.client.callTimeout
        let trace = TraceParent.passedOn(exchange.head, bytes)
        let order = RevocationOrder(worker)
        let late = GraphFailure(.graphTimedOut).problem
        // A login that was revoked at the last moment is remembered, and the backend told, before the answer.
        let until = deadline + order.time + RevocationOrder.grace
        return try worker.wait(&exchange, bytes, until: until, late: late, busy: busy) { waiting in
            graph.unfinished.enter()
            let leave = { @Sendable [unfinished = graph.unfinished] in unfinished.leave() }
            // A revocation is carried out even if the client has disconnected.
            let isWanted = { @Sendable in !isQuestion || waiting.isAwaited }
            let finish = { @Sendable (outcome: Result<ReplayGuard.Writer, Rejection>) in
                waiting.finish { _, exchange, _ throws(Rejection) in
                    let write = try outcome.get()
                    exchange.response.addField("Cache-Control: no-store")
                    write(&exchange.response)
                    return .done()
                }
                leave()
            }
            let isTaken = graph.permissions.submit(drop: leave, isWanted: isWanted) {
                let answer = CallTrace.$parent.withValue(trace) {
                    Result { () throws(GraphFailure) in try call(graph.client.until(deadline)) }
                }
                let outcome = answer.mapError(\.problem)
                guard let login else { return finish(outcome) }
                // If Graph may have ended the login, refusing its tokens is the safe choice, and the caller asked for it.
                if case .failure(let error) = answer, !error.mayBeDone { return finish(outcome) }
                // This thread does it, not the request: the client may have disconnected.
                let event = CallbackEvent(revoking: login.user, of: login.app)
                order.perform(event, until: MonotonicClock.now() + order.time, trace: trace) { told, _ in
                    finish(told.flatMap { _ in outcome })
                }
            }
            if !isTaken { leave() }
            return isTaken
        }
    }

    /// Ends the running calls, and every later one at once. It then waits until the logins that they may have ended are
    /// remembered, no longer than a request would wait. Requests cannot do this: the clients may have disconnected.
    package func stop() {
        client.cancel()
        _ = unfinished.wait(timeout: .now() + .nanoseconds(Int(clamping: ReplayGuard.patience.wholeNanoseconds)))
    }
}
