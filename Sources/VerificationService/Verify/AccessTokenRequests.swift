internal import Graph
internal import HTTPServer
internal import LimitedLogin
internal import Sockets

/// What came of asking Graph about an access token.
typealias AccessTokenOutcome = Result<VerifiedAccessToken, AccessTokenQuestion.Failure>

/// The requests of one worker that wait for Graph's word on an access token.
///
/// The worker never waits: the request is parked while another thread asks, and is answered when that has its outcome.
final class AccessTokenRequests {
    /// How much longer than its calls a request waits: their own error says more than that the time is over.
    private static let grace = Duration.milliseconds(250)

    private let workers: GraphWorkers?
    /// The threads and their queue bound how many wait, for all workers together.
    let jobs = BackgroundJobs<Void, AccessTokenOutcome>(
        capacity: GraphWorkers.accessTokenThreadLimit + GraphWorkers.accessTokenQueueLimit
    )

    init(workers: GraphWorkers?) { self.workers = workers }

    /// Goes on with a request that asked Graph before.
    func revisit(_ context: RequestContext) throws(Problem) -> Revisit<VerifiedAccessToken> {
        switch jobs.visit(context) {
        case .none: return .none
        case .waiting(let moment): return .wait(until: moment)
        case .expired: throw Problem(GraphFailure(.timedOut).ofAccessToken)
        case .done(_, .success(let verified)): return .done(verified)
        case .done(_, .failure(.rejected(let rejection))): throw Problem(rejection)
        case .done(_, .failure(.graph(let failure))): throw Problem(failure.ofAccessToken)
        }
    }

    /// Has Graph asked for a request.
    /// - Parameter trace: the request's `traceparent`.
    /// - Returns: until when it waits.
    func begin(
        _ question: AccessTokenQuestion,
        _ context: RequestContext,
        trace: String?
    ) throws(Problem) -> MonotonicInstant {
        let busy = Problem(.overloaded, "Too many access tokens are waiting for Graph; try again shortly.")
        guard let workers else { throw busy }
        let deadline = context.now + workers.callTimeout
        let isBegun = jobs.begin(context, keeping: (), until: deadline + Self.grace) { request in
            workers.submit(trace: trace) { [jobs, metrics = workers.metrics] client in
                // Nobody is asked on behalf of a client that has left.
                guard jobs.isAwaited(request) else { return }
                let outcome: AccessTokenOutcome
                do throws(AccessTokenQuestion.Failure) {
                    guard MonotonicClock.now() < deadline else { throw .graph(GraphFailure(.timedOut)) }
                    outcome = .success(
                        try question.ask(client, metrics: metrics, until: deadline) { try? ServiceClock.now() }
                    )
                } catch {
                    outcome = .failure(error)
                }
                jobs.finish(request, outcome, now: MonotonicClock.now())
            }
        }
        guard isBegun else { throw busy }
        return deadline + Self.grace
    }
}

extension Problem {
    /// The problem of a refused access token.
    init(_ rejection: AccessTokenRejection) {
        self.init(ProblemCode(rejection), rejection.description)
    }
}

extension ProblemCode {
    init(_ rejection: AccessTokenRejection) {
        self =
            switch rejection.code {
            case "access_token_expired": .accessTokenExpired
            case "access_token_revoked": .accessTokenRevoked
            case TokenRejection.Code.invalidAudience.rawValue: .rejectedToken(.invalidAudience)
            case TokenRejection.Code.subjectMismatch.rawValue: .rejectedToken(.subjectMismatch)
            default: .accessTokenInvalid
            }
    }
}
