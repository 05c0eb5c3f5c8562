internal import Dispatch
package import Graph
package import LoginStores
package import Sockets

/// What came of a call: the permissions where they were asked for, nothing where something was taken back.
package typealias GraphOutcome = Result<UserPermissions?, GraphCallFailure>

/// Why a call did not do all that it should.
package enum GraphCallFailure: Error {
    case graph(GraphFailure)
    /// The login is revoked at Facebook and on this replica; the other replicas could not be told.
    case notRemembered
}

/// The threads on which Graph is asked: few, begun when there is something to do and ended when there is nothing.
package final class GraphWorkers: Sendable {
    /// The most calls at a time. 4: with Graph's usual tenth of a second these make 40 calls a second, far more than
    /// people change their minds about permissions.
    package static let threadLimit = 4
    /// The most calls that wait for a thread. 64: with ten times its usual slowness Graph answers them within the
    /// deadline; what is beyond is refused at once.
    package static let queueLimit = 64

    private struct Job: Sendable {
        let call: GraphCall
        let deadline: MonotonicInstant
        let done: @Sendable (GraphOutcome) -> Void
    }

    private struct State {
        var waiting: [Job] = []
        /// Calls that wait or are under way.
        var unfinished = 0
        var threads = 0
        /// Whether a timer is set that closes the connections nobody needs any more.
        var willClose = false
    }

    private let client: GraphClient
    private let metrics: GraphMetrics
    private let revocations: Revocations
    private let state = Locked(State())
    /// A queue of its own: on a global one libdispatch would watch its threads for ever after, once a second, where an
    /// idle server shall not wake at all.
    private let queue = DispatchQueue(label: "graph")

    /// - Parameter revocations: told of each login that was revoked at Facebook.
    package init(client: GraphClient, metrics: GraphMetrics, revocations: Revocations) {
        self.client = client
        self.metrics = metrics
        self.revocations = revocations
    }

    /// How long a call may take, waiting for a thread included.
    package var callTimeout: Duration { client.limits.callTimeout }

    /// Has a call made on another thread, which hands `done` its outcome.
    /// - Returns: False where too many wait already; then nothing is done.
    package func submit(
        _ call: GraphCall,
        until deadline: MonotonicInstant,
        _ done: @escaping @Sendable (GraphOutcome) -> Void
    ) -> Bool {
        enum Decision { case refused, queued, newThread }
        let decision: Decision = state.withLock { state in
            // Not by those that wait: a thread that was just begun has not taken its call yet.
            guard state.unfinished < Self.threadLimit + Self.queueLimit else { return .refused }
            state.unfinished += 1
            state.waiting.append(Job(call: call, deadline: deadline, done: done))
            guard state.threads < Self.threadLimit else { return .queued }
            state.threads += 1
            return .newThread
        }
        switch decision {
        case .refused: return false
        case .queued: return true
        case .newThread:
            // Where the system has no thread of its own to give, the pool has one.
            if (try? LoopThread.start("graph", { self.work() })) == nil { queue.async { self.work() } }
            return true
        }
    }

    /// Ends the calls under way, and every later one at once.
    package func stop() { client.cancel() }

    /// Does what there is to do, then ends.
    private func work() {
        while true {
            let job: Job? = state.withLock { state in
                guard !state.waiting.isEmpty else {
                    state.threads -= 1
                    return nil
                }
                return state.waiting.removeFirst()
            }
            guard let job else { break }
            perform(job)
            state.withLock { $0.unfinished -= 1 }
        }
        closeLater()
    }

    /// Closes kept connections once their time is over; no timer runs where there are none.
    private func closeLater() {
        guard client.keptConnectionCount > 0 else { return }
        let mustWait = state.withLock { state in
            defer { state.willClose = true }
            return !state.willClose
        }
        guard mustWait else { return }
        queue.asyncAfter(deadline: .now() + .seconds(Self.secondsUntilClosing)) {
            self.state.withLock { $0.willClose = false }
            self.client.closeIdleConnections()
            self.closeLater()
        }
    }

    /// One second more than connections are kept.
    private static let secondsUntilClosing = 16

    private func perform(_ job: Job) {
        let began = MonotonicClock.now()
        // Who asked has been answered already; nothing is taken back behind their back.
        guard began < job.deadline else { return finish(job, .failure(.graph(GraphFailure(.timedOut))), began) }
        do throws(GraphFailure) {
            finish(job, .success(try job.call.perform(client, until: job.deadline)), began)
        } catch {
            finish(job, .failure(.graph(error)), began)
        }
    }

    private func finish(_ job: Job, _ outcome: GraphOutcome, _ began: MonotonicInstant) {
        var error: GraphError?
        if case .failure(.graph(let failure)) = outcome { error = failure.error }
        metrics.count(
            job.call.operation,
            error,
            nanoseconds: MonotonicClock.now().nanoseconds(since: began)
        )
        guard error == nil, let login = job.call.revokedLogin else { return job.done(outcome) }
        // Here and not by the request: its client may have left, and the login is revoked all the same.
        revocations.revoke(app: login.app.utf8.span, user: login.user.utf8.span, at: WallClock.unixSeconds()) {
            answer in
            job.done(answer == .remembered ? outcome : .failure(.notRemembered))
        }
    }
}

/// What Graph is asked on behalf of one request.
package enum GraphCall: Sendable {
    /// The person's permissions; `needed` are those the caller wants to know about, nil where it did not say.
    case list(GraphUserID, AppSecret, needed: [GraphPermission]?)
    /// One permission back, or with nil the whole login.
    case revoke(GraphPermission?, GraphUserID, AppSecret)
    /// Limited Login's own endpoint; the token was verified.
    case uninstall(idToken: String, appID: String, userID: String)

    /// The label of the metrics.
    package enum Operation: String, CaseIterable, Sendable {
        case listPermissions = "list_permissions"
        case revokePermission = "revoke_permission"
        case revokeLogin = "revoke_login"
        case uninstall = "uninstall"
    }

    package var operation: Operation {
        switch self {
        case .list: .listPermissions
        case .revoke(.some, _, _): .revokePermission
        case .revoke(nil, _, _): .revokeLogin
        case .uninstall: .uninstall
        }
    }

    /// The login that is over once the call has done its work.
    var revokedLogin: (app: String, user: String)? {
        switch self {
        case .list, .revoke(.some, _, _): nil
        case .revoke(nil, let user, let app): (app.appID, user.text)
        case .uninstall(_, let appID, let userID): (appID, userID)
        }
    }

    /// Asks; blocks the thread until Graph has answered or the time is over.
    ///
    /// - Returns: the permissions where they were asked for.
    package func perform(
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
}
