internal import Graph
internal import HTTP1
internal import HTTPServer
internal import JOSE
internal import LoginStores
internal import Sockets

/// `POST /revocations`: refuses every token of a person and app that was issued until now ("log out everywhere").
struct RevocationsEndpoint {
    let worker: WorkerParts

    func answer(
        _ body: Span<UInt8>,
        _ context: RequestContext,
        _ response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        let requests = worker.revocationRequests
        var visit = try requests.revisit(context)
        if case .none = visit {
            let request = try RevocationRequest(body)
            let app = try worker.settings.app(named: request.appID)
            visit = try requests.begin(app: app, user: request.user.text, at: WallClock.unixSeconds(), context)
        }
        if case .wait(let moment) = visit { return .wait(until: moment) }
        response.status = 204
        response.addField("Cache-Control: no-store")
        return .done
    }
}

/// The requests of one worker that wait until a revocation is remembered.
final class RevocationRequests {
    /// Requests of one worker that wait: what the store lets wait of all workers together.
    static let waitingLimit = 8_192

    private let revocations: Revocations
    let jobs = BackgroundJobs<Void, RevocationAnswer>(capacity: waitingLimit)

    init(_ revocations: Revocations) { self.revocations = revocations }

    /// Goes on with a request that was parked here.
    func revisit(_ context: RequestContext) throws(Problem) -> Revisit<Void> {
        switch jobs.visit(context) {
        case .none: return .none
        case .waiting(let moment): return .wait(until: moment)
        case .expired: throw Self.unavailable
        case .done(_, let answer):
            guard answer == .remembered else { throw Self.unavailable }
            return .done(())
        }
    }

    /// Revokes a login. It holds when this returns or the request is answered, whatever the answer is.
    /// - Parameter moment: whole seconds since 1970, at most the present.
    func begin(app: String, user: String, at moment: Int64, _ context: RequestContext) throws(Problem) -> Revisit<Void>
    {
        let deadline = MonotonicClock.now() + FirstUse.patience
        let isBegun = jobs.begin(context, keeping: (), until: deadline) { request in
            revocations.revoke(app: app.utf8.span, user: user.utf8.span, at: moment) { [jobs] answer in
                jobs.finish(request, answer, now: MonotonicClock.now())
            }
            return true
        }
        guard isBegun else { throw Self.unavailable }
        // In memory the answer is there already.
        return try revisit(context.again)
    }

    /// It may hold on this replica, but not on all of them.
    static var unavailable: Problem {
        Problem(
            .replayStoreUnavailable,
            "The revocation cannot be told to the other replicas now, or there is no room for it; send it again shortly."
        )
    }
}

/// The body of `POST /revocations`: `user_id`, and `app_id` where several apps are configured.
struct RevocationRequest {
    /// Greatest body, in bytes.
    static let bodyLimit = 1_024

    let user: GraphUserID
    /// Nil where the only app is meant.
    let appID: String?

    init(_ body: Span<UInt8>) throws(Problem) {
        let members = try JSONDocument.texts(body, known: ["user_id", "app_id"])
        guard let text = members["user_id"] else { throw Problem(.invalidRequest, "The member user_id is missing.") }
        guard let user = GraphUserID(text) else {
            throw Problem(.invalidRequest, "The member user_id must be 1 to 32 decimal digits.")
        }
        self.user = user
        appID = members["app_id"]
    }
}
