internal import Graph
internal import HTTP1
internal import JOSE
internal import LimitedLogin
internal import Networking

/// `/users/{user_id}/permissions` and below, and `POST /uninstall`: what needs Graph. One for each worker.
///
/// The worker never waits: the request is parked while another thread asks, and is answered when that has its outcome.
final class GraphEndpoint {
    /// The most requests of one worker that wait for Graph: more than all threads and their queue together take.
    static let waitingLimit = 256
    /// How much longer than its call a request waits: the call's own error says more than that the time is over.
    private static let grace = Duration.milliseconds(250)

    private let workers: GraphWorkers?
    private let judge: TokenJudge
    private let jobs = BackgroundJobs<GraphCall, GraphOutcome>(capacity: GraphEndpoint.waitingLimit)

    init(workers: GraphWorkers?, judge: TokenJudge) {
        self.workers = workers
        self.judge = judge
    }

    func attach(_ waker: RequestWaker) { jobs.attach(waker) }

    func abandon(_ request: ParkedRequest) { jobs.abandon(request) }

    /// The routes are there only where the service has a secret to ask with.
    static func require(_ settings: RuntimeSettings) throws(Problem) -> AppSecrets {
        guard let secrets = settings.appSecrets else {
            throw Problem(
                .notFound,
                "The routes for permissions are disabled; see LIMITED_LOGIN_APP_SECRETS_FILE."
            )
        }
        return secrets
    }

    /// Answers one request, or says until when it must wait for keys or for Graph.
    func answer(
        _ route: Route,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ body: Span<UInt8>,
        _ settings: RuntimeSettings,
        visit: RequestVisit,
        context: RequestContext,
        response: inout HTTPResponse
    ) throws(Problem) -> MonotonicInstant? {
        switch jobs.visit(context.request, visit) {
        case .waiting(let moment): return moment
        case .done(let call, .success(let permissions)):
            Self.write(call, permissions, to: &response)
            return nil
        case .done(_, .failure(let failure)): throw Problem(failure)
        case .expired: throw Problem(GraphFailure(.timedOut))
        case .none: break
        }
        let call: GraphCall
        if route == .uninstall {
            switch try readUninstall(body, settings, visit, context) {
            case .wait(let moment): return moment
            case .call(let one): call = one
            }
        } else {
            call = try Self.readPermissions(head, bytes, settings)
        }
        return try begin(call, visit, context)
    }

    private func begin(
        _ call: GraphCall,
        _ visit: RequestVisit,
        _ context: RequestContext
    ) throws(Problem) -> MonotonicInstant {
        let busy = Problem(.overloaded, "Too many requests are waiting for Graph; try again shortly.")
        // A request whose time is over may not wait anew.
        guard visit != .expired, let workers else { throw busy }
        let request = context.request
        let deadline = context.now + workers.callTimeout
        let patience = deadline + Self.grace
        guard jobs.begin(request, keeping: call, until: patience) else { throw busy }
        let jobs = jobs
        let isQueued = workers.submit(call, until: deadline) { outcome in
            jobs.finish(request, outcome, now: MonotonicClock.now())
        }
        guard isQueued else {
            jobs.abandon(request)
            throw busy
        }
        return patience
    }

    private enum Reading {
        case call(GraphCall)
        case wait(MonotonicInstant)
    }

    /// The token is judged first: one that is not good never leaves the service.
    private func readUninstall(
        _ body: Span<UInt8>,
        _ settings: RuntimeSettings,
        _ visit: RequestVisit,
        _ context: RequestContext
    ) throws(Problem) -> Reading {
        let request = try UninstallRequest(body)
        let verdict = try judge.judge(
            request.token.span,
            TokenJudge.Question(appID: request.appID),
            verifier: settings.unboundVerifier,
            visit: visit,
            context: context
        )
        switch verdict {
        case .wait(let moment): return .wait(moment)
        case .verified(let claims):
            let audience = Self.text(judge.workspace.payload[claims.audience])
            return .call(.uninstall(idToken: String(decoding: request.token, as: UTF8.self), appID: audience))
        }
    }

    /// The value of a JSON string whose text, escapes and all, stands between its quotes.
    private static func text(_ escaped: ArraySlice<UInt8>) -> String {
        let quoted = [UInt8(ascii: "\"")] + escaped + [UInt8(ascii: "\"")]
        var document = JSONDocument()
        // It was parsed as part of the payload already.
        guard (try? document.parse(quoted.span)) != nil else { return "" }
        return document.string(document.root, in: quoted.span)
    }

    private static func readPermissions(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ settings: RuntimeSettings
    ) throws(Problem) -> GraphCall {
        let secrets = try require(settings)
        let request = try PermissionsRequest(head, bytes)
        let app: AppSecret
        do throws(AppSecrets.Missing) {
            app = try secrets.secret(of: request.appID)
        } catch {
            switch error {
            case .unnamed:
                throw Problem(.invalidRequest, "Several apps are configured, so the query must name one: app_id.")
            case .unknown: throw Problem(.unknownApp, "The app_id in the query is not a configured app's.")
            case .noSecret: throw Problem(.unknownApp, "No secret of the app is configured: see app_secrets_file.")
            }
        }
        if head.method == .delete { return .revoke(request.permission, request.user, app) }
        return .list(request.user, app, needed: request.needed)
    }

    private static func write(_ call: GraphCall, _ permissions: UserPermissions?, to response: inout HTTPResponse) {
        response.addField("Cache-Control: no-store")
        guard case .list(let user, let app, let needed) = call, let permissions else {
            response.status = 204
            return
        }
        response.addField("Content-Type: application/json")
        PermissionsAnswer.write(permissions, user: user, appID: app.appID, needed: needed, to: &response.body)
    }
}
