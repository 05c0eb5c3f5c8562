internal import Graph
internal import HTTP1
internal import HTTPServer
internal import Sockets

/// The requests of one worker that wait for Graph.
///
/// The worker never waits: the request is parked while another thread asks, and is answered when that has its outcome.
final class GraphRequests {
    /// The most requests of one worker that wait for Graph: more than all threads and their queue together take.
    static let waitingLimit = 256
    /// How much longer than its call a request waits: the call's own error says more than that the time is over, and a
    /// login that was revoked at its end is remembered before the answer.
    private static let grace = Duration.milliseconds(250) + FirstUse.patience

    private let workers: GraphWorkers?
    let jobs = BackgroundJobs<GraphCall, GraphOutcome>(capacity: GraphRequests.waitingLimit)

    init(workers: GraphWorkers?) { self.workers = workers }

    /// Goes on with a request that asked Graph before.
    /// - Returns: nil where it has not.
    func revisit(_ context: RequestContext, _ response: inout HTTPResponse) throws(Problem) -> Outcome? {
        switch jobs.visit(context) {
        case .none: return nil
        case .waiting(let moment): return .wait(until: moment)
        case .expired: throw Problem(GraphFailure(.timedOut))
        case .done(_, .failure(.graph(let failure))): throw Problem(failure)
        case .done(_, .failure(.notRemembered)): throw RevocationRequests.unavailable
        case .done(let call, .success(let permissions)):
            Self.write(call, permissions, to: &response)
            return .done
        }
    }

    /// Has Graph asked for a request.
    /// - Parameter trace: the request's `traceparent`.
    func begin(_ call: GraphCall, _ context: RequestContext, trace: String?) throws(Problem) -> Outcome {
        let busy = Problem(.overloaded, "Too many requests are waiting for Graph; try again shortly.")
        guard let workers else { throw busy }
        let deadline = context.now + workers.callTimeout
        let patience = deadline + Self.grace
        let isBegun = jobs.begin(context, keeping: call, until: patience) { request in
            workers.submit(call, until: deadline, trace: trace) { [jobs] outcome in
                jobs.finish(request, outcome, now: MonotonicClock.now())
            }
        }
        guard isBegun else { throw busy }
        return .wait(until: patience)
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
