internal import Dispatch
internal import LLHTTP
internal import LimitedLogin

/// The result of a call: the permissions if they were requested, nil after a revocation. It may be a failure although
/// Graph succeeded: the other replicas or the backend could then not be told of it.
typealias GraphOutcome = Result<UserPermissions?, Rejection>

/// The queues that call Graph. Calls about permissions and calls about access tokens have different ones, so that
/// neither kind waits for the other.
package final class GraphWorkers: Sendable {
    /// The greatest number of calls about permissions at a time. 4: with Graph's usual tenth of a second these make 40
    /// calls a second, far more than people change their permissions.
    package static let threadLimit = 4
    /// The greatest number of calls that wait for a thread. 64: even if Graph takes ten times as long, it answers them
    /// within the deadline; calls beyond that are refused at once.
    package static let queueLimit = 64
    /// The greatest number of checks of access tokens at a time. 16: with two calls of a tenth of a second each, 80
    /// logins a second.
    package static let accessTokenThreadLimit = 16
    /// The greatest number of access tokens that wait for a thread. 240: at 80 a second they are checked within three
    /// of the deadline's five seconds.
    package static let accessTokenQueueLimit = 240

    private let client: GraphClient
    private let metrics: ServiceMetrics
    private let permissions: SharedPlaces
    private let accessTokens: SharedPlaces
    /// The calls about permissions without a delivered outcome.
    private let unfinished = DispatchGroup()

    package init(client: GraphClient, metrics: ServiceMetrics) {
        self.client = client
        self.metrics = metrics
        permissions = SharedPlaces("graph", placeLimit: Self.threadLimit, queueLimit: Self.queueLimit)
        accessTokens = SharedPlaces(
            "graph-tokens",
            placeLimit: Self.accessTokenThreadLimit,
            queueLimit: Self.accessTokenQueueLimit
        )
    }

    var callTimeout: Duration { client.callTimeout }

    /// Calls Graph for a request. The worker never waits: the request is parked while another thread makes the call,
    /// and is answered when the outcome is there.
    static func ask(
        _ call: GraphCall,
        _ worker: WorkerContext,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>
    ) throws(Rejection) -> Outcome {
        let busy = Rejection(.overloaded, "Too many requests are waiting for Graph; try again shortly.")
        guard let graph = worker.core.graph else { throw busy }
        let deadline = exchange.context.now + graph.callTimeout
        let trace = TraceParent.passedOn(exchange.head, bytes)
        let order = RevocationOrder(worker)
        let late = call.continuation(.failure(Rejection(GraphFailure(.timedOut))))
        // A login that was revoked at the last moment is remembered, and the backend told, before the answer.
        let until = deadline + order.time + RevocationOrder.grace
        return try worker.wait(&exchange, bytes, until: until, late: late, busy: busy) { waiting in
            graph.unfinished.enter()
            let leave = { @Sendable [unfinished = graph.unfinished] in unfinished.leave() }
            // A revocation is carried out even if the client has disconnected.
            let isWanted = { @Sendable in !call.isQuestion || waiting.isAwaited }
            let isTaken = graph.permissions.submit(drop: leave, isWanted: isWanted) {
                CallTrace.$parent.withValue(trace) {
                    graph.perform(call, order, until: deadline, trace: trace) { outcome in
                        waiting.finish(call.continuation(outcome))
                        leave()
                    }
                }
            }
            if !isTaken { leave() }
            return isTaken
        }
    }

    /// Checks an access token with Graph on another thread.
    /// - Parameters:
    ///   - owner: The caller. Callers share threads and queue fairly, because any client can make up access tokens.
    ///   - drop: Called in place of the job if another caller gets its place.
    func submit(
        owner: JobOwner,
        trace: String?,
        drop: @escaping @Sendable () -> Void,
        isWanted: @escaping @Sendable () -> Bool,
        _ job: @escaping @Sendable (GraphClient) -> Void
    ) -> Bool {
        accessTokens.submit(owner: owner, drop: drop, isWanted: isWanted) { [client] in
            CallTrace.$parent.withValue(trace) { job(client) }
        }
    }

    /// Ends the running calls, and every later one at once. It then waits until the logins that they may have ended are
    /// remembered, no longer than a request would wait. Requests cannot do this: the clients may have disconnected.
    package func stop() {
        client.cancel()
        _ = unfinished.wait(timeout: .now() + .nanoseconds(Int(clamping: ReplayGuard.patience.wholeNanoseconds)))
    }

    private func perform(
        _ call: GraphCall,
        _ order: RevocationOrder,
        until deadline: MonotonicInstant,
        trace: String?,
        _ done: @escaping @Sendable (GraphOutcome) -> Void
    ) {
        let outcome: GraphOutcome
        do throws(GraphFailure) {
            let answer = try ServiceMetrics.counting(call.operation, in: metrics) { () throws(GraphFailure) in
                // After the deadline the caller has been answered 504, so the call is not made.
                guard MonotonicClock.now() < deadline else { throw GraphFailure(.timedOut) }
                return try call.perform(client, until: deadline)
            }
            outcome = .success(answer)
        } catch {
            outcome = .failure(Rejection(error))
            // If Graph may have ended the login, refusing its tokens is the safe choice, and the caller asked for it.
            guard error.mayBeDone else { return done(outcome) }
        }
        guard let login = call.revokedLogin else { return done(outcome) }
        // This thread does it, not the request: the client may have disconnected, and the login is revoked in any case.
        let event = CallbackEvent(revoking: login.user, of: login.app)
        order.perform(event, until: MonotonicClock.now() + order.time, trace: trace) { told, _ in
            done(told.flatMap { _ in outcome })
        }
    }
}

enum GraphCall: Sendable {
    /// The person's permissions; `needed` are those that the caller asks about, nil if it named none.
    case list(GraphUserID, AppSecret, needed: [GraphPermission]?)
    case revoke(GraphPermission?, GraphUserID, AppSecret)
    /// Limited Login's own endpoint; the token was verified.
    case uninstall(idToken: String, appID: String, userID: String)

    enum Operation: String, CaseIterable, Sendable {
        case listPermissions = "list_permissions"
        case revokePermission = "revoke_permission"
        case revokeLogin = "revoke_login"
        case uninstall
        case debugToken = "debug_token"
        case me
        case accessTokenInfo = "access_token_info"
    }

    var operation: Operation {
        switch self {
        case .list: .listPermissions
        case .revoke(.some, _, _): .revokePermission
        case .revoke(nil, _, _): .revokeLogin
        case .uninstall: .uninstall
        }
    }

    /// True for a call that changes nothing at Facebook.
    fileprivate var isQuestion: Bool { operation == .listPermissions }

    var revokedLogin: (app: String, user: String)? {
        switch self {
        case .list, .revoke(.some, _, _): nil
        case .revoke(nil, let user, let app): (app.appID, user.text)
        case .uninstall(_, let appID, let userID): (appID, userID)
        }
    }

    /// Makes the call; blocks the thread until Graph has answered or the time is over.
    fileprivate func perform(
        _ client: GraphClient,
        until deadline: MonotonicInstant
    ) throws(GraphFailure) -> UserPermissions? {
        switch self {
        case .list(let user, let app, _): return try client.permissions(of: user, app: app, until: deadline)
        case .revoke(let permission, let user, let app):
            try client.revoke(permission, of: user, app: app, until: deadline)
        case .uninstall(let token, let appID, _):
            try client.uninstall(idToken: token, appID: appID, until: deadline)
        }
        return nil
    }

    fileprivate func continuation(_ outcome: GraphOutcome) -> Route.Answer {
        { _, exchange, _ throws(Rejection) in
            let permissions = try outcome.get()
            exchange.response.addField("Cache-Control: no-store")
            guard case .list(let user, let app, let needed) = self, let permissions else {
                exchange.response.status = 204
                return .done
            }
            exchange.response.addField("Content-Type: application/json")
            let appID = app.appID
            PermissionsAnswer.write(permissions, user: user, appID: appID, needed: needed, to: &exchange.response.body)
            return .done
        }
    }
}
