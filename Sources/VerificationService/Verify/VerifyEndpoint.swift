internal import HTTP1
internal import HTTPServer
internal import LimitedLogin
internal import LoginStores

/// `POST /verify`: reads the request, has the token judged, answers from the verified bytes.
final class VerifyEndpoint: Endpoint {
    /// Greatest body, in bytes: twice the greatest token, with room for its JSON.
    static let bodyLimit = 16_384

    private let judge: TokenJudge
    let workerSettings: WorkerSettings
    private var request = VerifyRequestReader()
    /// Uses up nonces and tokens.
    let firstUse: FirstUse
    /// Asks Graph about access tokens.
    let accessTokens: AccessTokenRequests
    let revocations: RevocationReader

    init(_ parts: WorkerParts) {
        workerSettings = parts.settings
        judge = parts.judge
        firstUse = parts.firstUse
        accessTokens = parts.accessTokens
        revocations = parts.revocations
    }

    /// Answers one request; it may have to wait for keys or for Graph, and for the store of what was used.
    func answer(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        body: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> Outcome {
        do throws(Problem) {
            try request.read(body)
            if let asked = request.accessToken {
                return answer(asked, context, trace: TraceParent.passedOn(head, bytes), &response)
            }
            if context.visit != .first {
                switch try firstUse.revisit(context) {
                case .none: break
                case .wait(let moment): return .wait(until: moment)
                case .accepted(let answer):
                    Self.addFields(to: &response)
                    response.body += answer
                    return .accepted
                }
            }
            return try judge(request, head, bytes, context, &response)
        } catch {
            return .refused(error)
        }
    }

    private func judge(
        _ request: borrowing VerifyRequestReader,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ context: RequestContext,
        _ response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        let settings = workerSettings.settings
        if request.binding == .issuedNonce, settings.verifier.nonces == nil { throw Self.noIssuer }
        let outcome = try judge.judge(
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
                payload: judge.workspace.payload.span,
                keyID: judge.workspace.keyID.span,
                asked: request.permissions,
                isRefresh: request.isRefresh,
                to: &response.body
            )
            // A refreshed token bears the nonce that was used up at its login.
            let usesNonce = request.binding == .issuedNonce && !request.isRefresh
            guard usesNonce || settings.rejectsReplays else { return .accepted }
            return try useUp(claims, usesNonce: usesNonce, settings, context, response.body)
        }
    }

    static func addFields(to response: inout HTTPResponse) {
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
            judge.workspace.payload.span,
            nonce: usesNonce ? judge.workspace.recognizedNonce : nil,
            usesToken: settings.rejectsReplays,
            skewSeconds: settings.verifier.policy.clockSkewSeconds
        )
        // An issued nonce that is not among what is used up would be good for ever.
        guard let question, !usesNonce || question.nonce != nil else { throw FirstUse.unavailable }
        switch try firstUse.use(question, answer: answer, context: context) {
        case .accepted: return .accepted
        case .wait(let moment): return .wait(until: moment)
        }
    }

    private static var noIssuer: Problem {
        Problem(
            .invalidRequest,
            "No nonces are issued here, so none can be recognised: set nonce_secret_file (LIMITED_LOGIN_NONCE_SECRET_FILE)."
        )
    }
}
