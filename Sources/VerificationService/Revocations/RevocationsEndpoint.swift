internal import Graph
internal import HTTP1
internal import HTTPServer
internal import JOSE
internal import LoginStores
internal import Sockets

/// `POST /revocations`: refuses every token of a person and app that was issued until now ("log out everywhere").
final class RevocationsEndpoint: Endpoint {
    private let requests: RevocationRequests
    private let workerSettings: WorkerSettings

    init(_ parts: WorkerParts) {
        requests = parts.revocationRequests
        workerSettings = parts.settings
    }

    func answer(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        body: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        switch try requests.revisit(context) {
        case .wait(let moment): return .wait(until: moment)
        case .done: break
        case nil:
            let request = try RevocationRequest(body)
            let app = try workerSettings.settings.app(named: request.appID)
            let now = WallClock.unixSeconds()
            if case .wait(let moment) = try requests.begin(app: app, user: request.user.text, at: now, context) {
                return .wait(until: moment)
            }
        }
        response.status = 204
        response.addField("Cache-Control: no-store")
        return .done
    }
}

/// The requests of one worker that wait until a revocation is remembered.
final class RevocationRequests {
    /// Requests of one worker that wait: what the store lets wait of all workers together.
    static let waitingLimit = 8_192

    enum Outcome {
        case wait(until: MonotonicInstant)
        case done
    }

    private let revocations: Revocations
    let jobs = BackgroundJobs<Void, RevocationAnswer>(capacity: waitingLimit)

    init(_ revocations: Revocations) { self.revocations = revocations }

    /// Goes on with a request that was parked here.
    /// - Returns: nil where it was not.
    func revisit(_ context: RequestContext) throws(Problem) -> Outcome? {
        switch jobs.visit(context) {
        case .none: return nil
        case .waiting(let moment): return .wait(until: moment)
        case .expired: throw Self.unavailable
        case .done(_, let answer):
            guard answer == .remembered else { throw Self.unavailable }
            return .done
        }
    }

    /// Revokes a login. It holds when this returns or the request is answered, whatever the answer is.
    /// - Parameter moment: whole seconds since 1970, at most the present.
    func begin(app: String, user: String, at moment: Int64, _ context: RequestContext) throws(Problem) -> Outcome {
        let deadline = MonotonicClock.now() + FirstUse.patience
        let isBegun = jobs.begin(context, keeping: (), until: deadline) { request in
            revocations.revoke(app: app.utf8.span, user: user.utf8.span, at: moment) { [jobs] answer in
                jobs.finish(request, answer, now: MonotonicClock.now())
            }
            return true
        }
        guard isBegun else { throw Self.unavailable }
        // In memory the answer is there already.
        return try revisit(context.again) ?? .wait(until: deadline)
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
        var limits = JSONLimits()
        limits.byteCount = Self.bodyLimit
        limits.depth = 2
        limits.nodeCount = 16
        limits.memberCount = 8
        var document = JSONDocument(limits: limits)
        try document.parseObject(body)
        var user: GraphUserID?
        var appID: String?
        for name in document.children(of: document.root) {
            let value = name + 1
            guard document.isString(value) else {
                throw Problem(.invalidRequest, "Every member of the body must be a string.")
            }
            if document.string(name, equals: "user_id", in: body) {
                user = GraphUserID(document.string(value, in: body))
                guard user != nil else {
                    throw Problem(.invalidRequest, "The member user_id must be 1 to 32 decimal digits.")
                }
            } else if document.string(name, equals: "app_id", in: body) {
                appID = document.string(value, in: body)
            } else {
                throw Problem(.invalidRequest, "The body has an unknown member; known are user_id and app_id.")
            }
        }
        guard let user else { throw Problem(.invalidRequest, "The member user_id is missing.") }
        self.user = user
        self.appID = appID
    }
}
