internal import HTTP1
internal import HTTPServer
internal import LimitedLogin
internal import LoginStores

/// `POST /verify`: reads the request, has the token judged, answers from the verified bytes.
struct VerifyEndpoint {
    /// Greatest body, in bytes: twice the greatest token, with room for its JSON.
    static let bodyLimit = 16_384

    let worker: WorkerParts

    /// Answers one request; it may have to wait for keys or for Graph, and for the store of what was used.
    func answer(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ body: Span<UInt8>,
        _ context: RequestContext,
        _ response: inout HTTPResponse
    ) -> Outcome {
        do throws(Problem) {
            try worker.verifyRequest.read(body)
            if let asked = worker.verifyRequest.accessToken {
                return answer(asked, context, trace: TraceParent.passedOn(head, bytes), &response)
            }
            if context.visit != .first, let outcome = try goOn(context, .idToken, &response) { return outcome }
            return try judge(worker.verifyRequest, head, bytes, context, &response)
        } catch {
            return .refused(.idToken, error)
        }
    }

    /// Goes on with a request that waited for the store; nil for one that did not.
    private func goOn(
        _ context: RequestContext,
        _ credential: Credential,
        _ response: inout HTTPResponse
    ) throws(Problem) -> Outcome? {
        switch try worker.firstUse.revisit(context) {
        case .none: return nil
        case .wait(let moment): return .wait(until: moment)
        case .done(let answer):
            Self.addFields(to: &response)
            response.body += answer
            return .accepted(credential)
        }
    }

    private func judge(
        _ request: borrowing VerifyRequestReader,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ context: RequestContext,
        _ response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        let settings = worker.settings
        if request.binding == .issuedNonce, settings.verifier.nonces == nil { throw Self.noIssuer }
        let outcome = try worker.judge.judge(
            request.token.span,
            binding: request.binding,
            value: request.bindingValue.span,
            appID: request.appID.span,
            added: request.added,
            verifier: settings.verifier,
            context: context,
            trace: TraceParent.passedOn(head, bytes)
        )
        switch outcome {
        case .wait(let moment): return .wait(until: moment)
        case .verified(let claims):
            Self.addFields(to: &response)
            VerifyAnswer.write(
                claims,
                payload: worker.judge.workspace.payload.span,
                keyID: worker.judge.workspace.keyID.span,
                asked: request.permissions,
                isRefresh: request.isRefresh,
                to: &response.body
            )
            // A refreshed token bears the nonce that was used up at its login.
            let usesNonce = request.binding == .issuedNonce && !request.isRefresh
            guard usesNonce || settings.rejectsReplays else { return .accepted(.idToken) }
            return try useUp(claims, usesNonce: usesNonce, settings, context, response.body)
        }
    }

    private static func addFields(to response: inout HTTPResponse) {
        response.addField("Content-Type: application/json")
        response.addField("Cache-Control: no-store")
    }

    /// The very last step: nothing is used up by a token that is refused for anything else.
    private func useUp(
        _ claims: VerifiedClaims,
        usesNonce: Bool,
        _ settings: RuntimeSettings,
        _ context: RequestContext,
        _ answer: [UInt8]
    ) throws(Problem) -> Outcome {
        let question = ReplayQuestion(
            claims,
            worker.judge.workspace.payload.span,
            nonce: usesNonce ? worker.judge.workspace.recognizedNonce : nil,
            usesToken: settings.rejectsReplays,
            skewSeconds: settings.verifier.policy.clockSkewSeconds
        )
        // An issued nonce that is not among what is used up would be good for ever.
        guard let question, !usesNonce || question.nonce != nil else { throw FirstUse.unavailable }
        return try worker.firstUse.use(question, answer: answer, context: context, of: .idToken)
    }

    private static var noIssuer: Problem {
        Problem(
            .invalidRequest,
            "No nonces are issued here, so none can be recognised: set nonce_secret_file (LIMITED_LOGIN_NONCE_SECRET_FILE)."
        )
    }
}

/// An access token: Graph is asked, and what it says is judged.
extension VerifyEndpoint {
    /// Answers one request, which waits for Graph, and perhaps for the store of what was used.
    private func answer(
        _ request: AccessTokenRequest,
        _ context: RequestContext,
        trace: @autoclosure () -> String?,
        _ response: inout HTTPResponse
    ) -> Outcome {
        do throws(Problem) {
            if let outcome = try goOn(context, .accessToken, &response) { return outcome }
            switch try worker.accessTokens.revisit(context) {
            case .none: break
            case .wait(let moment): return .wait(until: moment)
            case .done(let verified): return try accept(verified, request, context, &response)
            }
            let question = try request.question(worker.settings.accessTokenApps)
            return .wait(until: try worker.accessTokens.begin(question, context, trace: trace()))
        } catch {
            return .refused(.accessToken, error)
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
        guard worker.settings.rejectsReplays else { return .accepted(.accessToken) }
        let question = ReplayQuestion(request.token, verified.inspection, now: try ServiceClock.now())
        guard let question else { throw FirstUse.unavailable }
        return try worker.firstUse.use(question, answer: response.body, context: context, of: .accessToken)
    }

    /// Refuses the token of a login that was revoked since it was issued.
    private func refuseRevoked(_ token: AccessTokenInspection) throws(Problem) {
        guard worker.revocations.isKnown else { throw TokenJudge.unknownRevocations }
        let isRevoked = worker.revocations.isRevoked(
            app: token.appID.utf8.span,
            user: token.userID.utf8.span,
            issuedAt: token.earliestIssue(now: try ServiceClock.now()).wholeSeconds
        )
        if isRevoked { throw Problem(Refusal.loginRevoked) }
    }
}
