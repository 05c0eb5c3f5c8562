internal import Graph
internal import HTTP1
internal import HTTPServer
internal import LimitedLogin
internal import LoginStores
internal import Sockets

/// An access token at `POST /verify`: Graph is asked, and what it says is judged.
///
/// The worker never waits: the request is parked while another thread asks, and is answered when that has its outcome.
enum AccessTokenEndpoint {
    /// How much longer than its calls a request waits: their own error says more than that the time is over.
    private static let grace = Duration.milliseconds(250)

    /// Answers one request, which waits for Graph, and perhaps for the store of what was used.
    /// - Parameter trace: the request's `traceparent`.
    static func answer(
        _ worker: WorkerParts,
        _ request: AccessTokenRequest,
        _ context: RequestContext,
        trace: String?
    ) -> Outcome {
        do throws(Problem) {
            let question = try request.question(worker.settings.accessTokenApps)
            let busy = Problem(.overloaded, "Too many access tokens are waiting for Graph; try again shortly.")
            guard let graph = worker.core.graph else { throw busy }
            let deadline = context.now + graph.callTimeout
            let (jobs, metrics) = (worker.accessTokens, worker.core.metrics)
            let late: WorkerParts.Continuation = { _, _, _ in
                .refused(.accessToken, Problem(GraphFailure(.timedOut).ofAccessToken))
            }
            let isBegun = jobs.begin(context, keeping: late, until: deadline + grace) { name in
                graph.submit(trace: trace) { client in
                    // Nobody is asked on behalf of a client that has left.
                    guard jobs.isAwaited(name) else { return }
                    let outcome = outcome(of: question, client, metrics, until: deadline)
                    let next: WorkerParts.Continuation = { worker, context, response in
                        do throws(Problem) {
                            return try accept(outcome.get(), request, worker, context, &response)
                        } catch {
                            return .refused(.accessToken, error)
                        }
                    }
                    jobs.finish(name, next, now: MonotonicClock.now())
                }
            }
            guard isBegun else { throw busy }
            return .wait(until: deadline + grace)
        } catch {
            return .refused(.accessToken, error)
        }
    }

    private static func outcome(
        of question: AccessTokenQuestion,
        _ client: GraphClient,
        _ metrics: ServiceMetrics,
        until deadline: MonotonicInstant
    ) -> Result<VerifiedAccessToken, Problem> {
        do throws(AccessTokenQuestion.Failure) {
            guard MonotonicClock.now() < deadline else { throw .graph(GraphFailure(.timedOut)) }
            return .success(
                try question.ask(client, metrics: metrics, until: deadline) { try? ServiceClock.now() }
            )
        } catch {
            switch error {
            case .rejected(let rejection): return .failure(Problem(rejection))
            case .graph(let failure): return .failure(Problem(failure.ofAccessToken))
            }
        }
    }

    private static func accept(
        _ verified: VerifiedAccessToken,
        _ request: AccessTokenRequest,
        _ worker: WorkerParts,
        _ context: RequestContext,
        _ response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        // Refuses the token of a login that was revoked since it was issued.
        guard worker.revocations.isKnown else { throw TokenJudge.unknownRevocations }
        let (token, now) = (verified.inspection, try ServiceClock.now())
        let isRevoked = worker.revocations.isRevoked(
            app: token.appID.utf8.span,
            user: token.userID.utf8.span,
            issuedAt: token.earliestIssue(now: now).wholeSeconds
        )
        if isRevoked { throw Problem(Refusal.loginRevoked) }
        VerifyEndpoint.addFields(to: &response)
        AccessTokenAnswer.write(verified, asked: request.permissions, to: &response.body)
        guard worker.settings.rejectsReplays else { return .accepted(.accessToken) }
        let question = ReplayQuestion(request.token, token, now: now)
        return try VerifyEndpoint.useUp(worker, question, of: .accessToken, context, response.body)
    }
}

extension Problem {
    init(_ rejection: AccessTokenRejection) {
        let code: ProblemCode =
            switch rejection.code {
            case "access_token_expired": .accessTokenExpired
            case "access_token_revoked": .accessTokenRevoked
            case TokenRejection.Code.invalidAudience.rawValue: .rejectedToken(.invalidAudience)
            case TokenRejection.Code.subjectMismatch.rawValue: .rejectedToken(.subjectMismatch)
            default: .accessTokenInvalid
            }
        self.init(code, rejection.description)
    }
}
