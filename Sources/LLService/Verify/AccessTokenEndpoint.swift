internal import FoundationEssentials
internal import LLHTTP
internal import LLJOSE
internal import LLStores
package import LimitedLogin

/// An access token at `POST /verify`: the service asks Graph and judges its answer.
enum AccessTokenEndpoint {
    /// The time that a request waits longer than its calls. The error of a call says more than a timeout.
    private static let grace = Duration.milliseconds(250)

    /// Prepares the answer to a token that is good. Every step that can fail is taken here, before the token is used up.
    typealias Preparation = @Sendable (VerifiedAccessToken, WorkerContext) throws(Rejection) -> ReplayGuard.Writer

    /// Answers one request, which waits for Graph and perhaps for the replay store.
    /// - Parameter prepare: Nil for the answer of `POST /verify`.
    static func answer(
        _ worker: WorkerContext,
        _ request: LoginRequest,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>,
        prepare: Preparation? = nil
    ) throws(Rejection) -> Outcome {
        worker.subject = .accessToken
        let question = try AccessTokenQuestion(request, worker.settings)
        // The status is not 503, because any client can make up access tokens: load balancers would remove the
        // service.
        let busy = Rejection(.tooManyAccessTokens)
        guard let graph = worker.core.graph else { throw busy }
        let deadline = exchange.context.now + graph.client.callTimeout
        // All callers share the queue of waiting requests.
        let (owner, trace) = (worker.owner(&exchange, bytes), TraceParent.passedOn(exchange.head, bytes))
        let late = GraphFailure(.graphTimedOut).ofAccessToken.problem
        worker.count(request.expectation.binding.givenNonce, &exchange, bytes)
        return try worker.wait(&exchange, bytes, until: deadline + grace, late: late, busy: busy) { waiting in
            let drop = { @Sendable in waiting.finish { _, _, _ throws(Rejection) in throw busy } }
            return graph.accessTokens.submit(owner: owner, drop: drop) {
                // Skip the call if the client has disconnected.
                guard waiting.isAwaited else { return }
                let outcome = CallTrace.$parent.withValue(trace) {
                    Result { () throws(Rejection) in
                        try question.ask(graph.client, until: deadline) { .now }
                    }
                }
                waiting.finish { worker, exchange, bytes throws(Rejection) in
                    let verified = try outcome.get()
                    return try accept(verified, request, worker, &exchange, bytes, prepare)
                }
            }
        }
    }

    private static func accept(
        _ verified: VerifiedAccessToken,
        _ request: LoginRequest,
        _ worker: WorkerContext,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>,
        _ prepare: Preparation?
    ) throws(Rejection) -> Outcome {
        // Refuses the token of a login that was revoked since it was issued.
        guard worker.revocations.isKnown else { throw TokenJudge.unknownRevocations }
        let (token, now) = (verified.inspection, NumericDate.now)
        let revocation = worker.revocations.latest(app: token.appID.utf8.span, user: token.userID.utf8.span)
        if let revocation, let problem = refusal(of: token, revocation.moment, revocation.kind, now) {
            throw worker.revocations.doubt(revocation) ?? problem
        }
        let body = try prepare?(verified, worker)
        let usesToken = worker.settings.rejectsReplays
        return try ReplayGuard.accept(
            worker.auditName(token.appID, token.userID),
            using: ReplayEntry.all(request.token, verified, usesToken: usesToken, now: now),
            birthIsKnown: token.issuedAt != nil,
            worker,
            &exchange,
            bytes
        ) { response in
            VerifyEndpoint.addFields(to: &response)
            if let body { return body(&response) }
            AccessTokenAnswer.write(verified, asked: request.permissions, to: &response.body)
        }
    }
}

extension AccessTokenEndpoint {
    /// The refusal of a token that was, or may have been, issued before its login was revoked; nil if it is newer.
    private static func refusal(
        of token: AccessTokenInspection,
        _ moment: Int64,
        _ kind: RevocationKind,
        _ now: NumericDate
    ) -> Rejection? {
        let earliest = token.earliestIssue(now: now)
        guard earliest.wholeSeconds <= moment else { return nil }
        if token.issuedAt != nil { return Rejection(.loginRevoked) }
        // Facebook ended every token from before its callback, and Graph has just called this one valid.
        if kind == .callback { return nil }
        // Without an estimate the token is refused until the revocation is forgotten.
        let isEstimated = earliest.secondsSince1970 > 0
        let wait = isEstimated ? Int64(AccessTokenInspection.shortLifeSeconds) : Revocations.lifetimeSeconds
        let (revoked, good) = (Self.text(moment), Self.text(moment + wait))
        return Rejection(
            .loginRevoked,
            "The login was revoked at \(revoked), and Graph does not tell when this access token was issued, so it may be older. "
                + "A token like it is good for certain if its login begins after \(good); an id token is good at once.",
            hint: Rejection.Code.refuseTheLogin
        )
    }

    private static func text(_ moment: Int64) -> String {
        Date(timeIntervalSince1970: Double(moment)).formatted(Date.ISO8601FormatStyle())
    }
}

/// Writes the answer to an accepted access token: Graph's data about the token, then the person, with the same members
/// as in the answer to an id token.
package enum AccessTokenAnswer {
    package static func write(_ verified: VerifiedAccessToken, asked: [String]?, to body: inout [UInt8]) {
        let token = verified.inspection
        JSONWriter.raw("{\"access_token\":{", to: &body)
        JSONWriter.member("app_id", token.appID, to: &body)
        JSONWriter.member("user_id", token.userID, to: &body)
        JSONWriter.member("issued_at", seconds(token.issuedAt), to: &body)
        JSONWriter.member("expires_at", seconds(token.expiresAt), to: &body)
        JSONWriter.member("data_access_expires_at", seconds(token.dataAccessExpiresAt), to: &body)
        JSONWriter.member("permissions", token.permissions, to: &body)
        JSONWriter.member("nonce", verified.nonce?.value, to: &body)
        JSONWriter.raw("}", to: &body)
        verified.profile.write(token.permissions, to: &body)
        if let asked {
            JSONWriter.member("missing_permissions", asked.filter { !token.permissions.contains($0) }, to: &body)
        }
        JSONWriter.raw("}", to: &body)
    }

    /// Whole seconds. Graph never sends a fraction; it would be cut off.
    private static func seconds(_ date: NumericDate?) -> Int? { date.map { Int(clamping: $0.wholeSeconds) } }
}
