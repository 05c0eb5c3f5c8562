internal import HTTP1
internal import HTTPServer
internal import LimitedLogin
internal import LoginStores

/// `POST /verify` with an access token: Graph is asked, and what it says is judged.
extension VerifyEndpoint {
    /// Answers one request, which waits for Graph, and perhaps for the store of what was used.
    func answer(
        _ request: AccessTokenRequest,
        _ context: RequestContext,
        trace: @autoclosure () -> String?,
        _ response: inout HTTPResponse
    ) -> Outcome {
        do throws(Problem) {
            switch try firstUse.revisit(context) {
            case .none: break
            case .wait(let moment): return .wait(until: moment)
            case .accepted(let answer):
                Self.addFields(to: &response)
                response.body += answer
                return .accessToken(nil)
            }
            switch try accessTokens.revisit(context) {
            case .none: break
            case .wait(let moment): return .wait(until: moment)
            case .verified(let verified): return try accept(verified, request, context, &response)
            }
            let question = try request.question(workerSettings.settings.accessTokenApps)
            return .wait(until: try accessTokens.begin(question, context, trace: trace()))
        } catch {
            return .accessToken(error)
        }
    }

    private func accept(
        _ verified: VerifiedAccessToken,
        _ request: AccessTokenRequest,
        _ context: RequestContext,
        _ response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        try refuseRevoked(verified.inspection)
        Self.addFields(to: &response)
        AccessTokenAnswer.write(verified, asked: request.permissions, to: &response.body)
        guard workerSettings.settings.rejectsReplays else { return .accessToken(nil) }
        let question = ReplayQuestion(request.token, verified.inspection, now: try ServiceClock.now())
        guard let question else { throw FirstUse.unavailable }
        switch try firstUse.use(question, answer: response.body, context: context) {
        case .accepted: return .accessToken(nil)
        case .wait(let moment): return .wait(until: moment)
        }
    }

    /// Refuses the token of a login that was revoked since it was issued.
    private func refuseRevoked(_ token: AccessTokenInspection) throws(Problem) {
        guard revocations.isKnown else { throw TokenJudge.unknownRevocations }
        let isRevoked = revocations.isRevoked(
            app: token.appID.utf8.span,
            user: token.userID.utf8.span,
            issuedAt: token.earliestIssue(now: try ServiceClock.now()).wholeSeconds
        )
        if isRevoked { throw Problem(Refusal.loginRevoked) }
    }
}
