internal import HTTP1
internal import LimitedLogin
internal import Networking
internal import ReplayStores

/// `POST /verify`: reads the request, has the token judged, answers from the verified bytes.
final class VerifyEndpoint {
    /// Greatest body, in bytes: twice the greatest token, with room for its JSON.
    static let bodyLimit = 16_384

    private let judge: TokenJudge
    private let workerSettings: WorkerSettings
    private var request = VerifyRequestReader()
    /// Uses up nonces and tokens.
    let firstUse: FirstUse

    init(core: ServiceCore, workerSettings: WorkerSettings, judge: TokenJudge) {
        self.workerSettings = workerSettings
        self.judge = judge
        firstUse = FirstUse(core: core)
    }

    /// The body must be declared as uncompressed JSON (RFC 9110 sections 8.3, 8.4, 15.5.16).
    static func requireJSON(
        _ head: borrowing RequestHead,
        bytes: Span<UInt8>,
        response: inout HTTPResponse
    ) throws(Problem) {
        if let coding = head.value(of: "content-encoding", in: bytes),
            !bytes.equalIgnoringCase(coding, "identity")
        {
            response.addField("Accept-Encoding: identity")
            throw Problem(.unsupportedMediaType, "The body must not be compressed.")
        }
        guard let type = head.value(of: "content-type", in: bytes), MediaType.isJSON(bytes, type) else {
            response.addField("Accept: application/json")
            throw Problem(.unsupportedMediaType, "The body must be application/json in UTF-8.")
        }
    }

    /// Answers one request, or says until when it must wait for keys, or for the store of what was used.
    ///
    /// - Returns: nil when `response` is the answer; else the moment until which to park the request.
    func answer(
        _ body: Span<UInt8>,
        visit: RequestVisit,
        context: RequestContext,
        response: inout HTTPResponse
    ) throws(Problem) -> MonotonicInstant? {
        if visit != .first {
            switch try firstUse.revisit(context, visit) {
            case .none: break
            case .wait(let moment): return moment
            case .accepted(let answer):
                Self.addFields(to: &response)
                response.body += answer
                return nil
            }
        }
        try request.read(body)
        return try judge(request, visit, context, &response)
    }

    private func judge(
        _ request: borrowing VerifyRequestReader,
        _ visit: RequestVisit,
        _ context: RequestContext,
        _ response: inout HTTPResponse
    ) throws(Problem) -> MonotonicInstant? {
        let settings = workerSettings.settings
        if request.binding == .issuedNonce, settings.verifier.nonces == nil { throw Self.noIssuer }
        let outcome = try judge.judge(
            request.token.span,
            binding: request.binding,
            value: request.bindingValue.span,
            appID: request.appID.span,
            verifier: settings.verifier,
            visit: visit,
            context: context
        )
        switch outcome {
        case .wait(let moment): return moment
        case .verified(let claims):
            Self.addFields(to: &response)
            VerifyAnswer.write(
                claims,
                payload: judge.workspace.payload.span,
                keyID: judge.workspace.keyID.span,
                asked: request.permissions,
                to: &response.body
            )
            guard request.binding == .issuedNonce || settings.rejectsReplays else { return nil }
            return try useUp(claims, settings, context, response.body)
        }
    }

    private static func addFields(to response: inout HTTPResponse) {
        response.addField("Content-Type: application/json")
        response.addField("Cache-Control: no-store")
    }

    /// The very last step: nothing is used up by a token that is refused for anything else.
    private func useUp(
        _ claims: VerifiedClaims,
        _ settings: RuntimeSettings,
        _ context: RequestContext,
        _ answer: [UInt8]
    ) throws(Problem) -> MonotonicInstant? {
        let question = ReplayQuestion(
            claims,
            judge.workspace.payload.span,
            nonce: request.binding == .issuedNonce ? judge.workspace.recognizedNonce : nil,
            usesToken: settings.rejectsReplays,
            skewSeconds: settings.verifier.policy.clockSkewSeconds
        )
        // An issued nonce that is not among what is used up would be good for ever.
        guard let question, request.binding != .issuedNonce || question.nonce != nil else { throw FirstUse.unavailable }
        switch try firstUse.use(question, answer: answer, context: context) {
        case .accepted: return nil
        case .wait(let moment): return moment
        }
    }

    private static var noIssuer: Problem {
        Problem(
            .invalidRequest,
            "No nonces are issued here, so none can be recognised: set nonce_secret_file (LIMITED_LOGIN_NONCE_SECRET_FILE)."
        )
    }
}
