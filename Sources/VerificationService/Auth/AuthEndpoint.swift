internal import Bytes
internal import HTTP1
internal import HTTPServer
internal import LimitedLogin
internal import LoginStores

/// `/auth` and every path below it: tells a gateway whether the request it holds comes with a good token.
///
/// The head alone decides, whatever the method and the path. The status is one of 200, 401, 403 and 503, or 400 where the
/// gateway's own query has a parameter that does not exist: gateways turn any other into a failure of their own. What the
/// token says goes back in the fields of the setting `auth_headers`; fields of those names that came with the request are
/// not looked at.
final class AuthEndpoint: Endpoint {
    private let judge: TokenJudge
    private let signatures: SignatureMemory
    private let workerSettings: WorkerSettings
    /// Uses up the names of DPoP proofs.
    private let firstUse: FirstUse

    init(_ parts: WorkerParts) {
        judge = parts.judge
        signatures = parts.signatures
        workerSettings = parts.settings
        firstUse = parts.firstUse
    }

    /// Answers one request; it may have to wait for keys, or for the store of what was used.
    func answer(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        body: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) -> Outcome {
        if context.visit != .first, let outcome = revisit(context, &response) { return outcome }
        let settings = workerSettings.settings
        // A reload may have closed the routes while the request waited for keys.
        guard let gateway = settings.gateway else { return .refused(Problem(.notFound, Requirement.gateway.sentence)) }
        var scheme = AuthScheme.bearer
        do throws(Problem) {
            let credentials = try AuthCredentials(head, bytes, gateway.dpop)
            scheme = credentials.scheme
            let token = bytes.extracting(credentials.token)
            let demand = try AuthDemand(head, bytes)
            var question = TokenJudge.Question(appID: demand.appID, texts: gateway.texts)
            // What a proof is compared with.
            if scheme == .dpop { question.texts.insert(.keyThumbprint) }
            switch try verdict(token, question, settings, context, TraceParent.passedOn(head, bytes)) {
            case .wait(let moment): return .wait(until: moment)
            case .verified(let claims):
                let payload = judge.workspace.payload
                let proof = try credentials.judgeProof(
                    head,
                    bytes,
                    claims,
                    payload: payload.span,
                    gateway: gateway,
                    policy: settings.verifier.policy
                )
                try demand.require(claims)
                try export(claims, payload.span, gateway.fields, &response)
                // The very last step: a proof is used up by a request that is good otherwise.
                return try proof.map { proof throws(Problem) in try useUp(proof, context, response.fields) }
                    ?? .accepted
            }
        } catch {
            var problem = error
            problem.scheme = scheme
            return .refused(problem)
        }
    }

    /// Goes on with a request that waited for the store; nil for one that waited for keys.
    private func revisit(_ context: RequestContext, _ response: inout HTTPResponse) -> Outcome? {
        do throws(Problem) {
            switch try firstUse.revisit(context) {
            case .none: return nil
            case .wait(let moment): return .wait(until: moment)
            case .accepted(let fields):
                response.addFields(fields)
                return .accepted
            }
        } catch {
            return .refused(error)
        }
    }

    private func verdict(
        _ token: Span<UInt8>,
        _ question: TokenJudge.Question,
        _ settings: RuntimeSettings,
        _ context: RequestContext,
        _ trace: @autoclosure () -> String?
    ) throws(Problem) -> TokenJudge.Outcome {
        do throws(Problem) {
            return try judge.judge(
                token,
                question,
                signatures: signatures,
                verifier: settings.unboundVerifier,
                context: context,
                trace: trace()
            )
        } catch {
            throw error.code == .unknownApp ? AuthDemand.unknownApp : error
        }
    }

    private func useUp(
        _ proof: DPoPProof,
        _ context: RequestContext,
        _ fields: [UInt8]
    ) throws(Problem) -> Outcome {
        guard let question = ReplayQuestion(proof) else { throw FirstUse.unavailable }
        switch try firstUse.use(question, answer: fields, context: context) {
        case .accepted: return .accepted
        case .wait(let moment): return .wait(until: moment)
        }
    }

    private func export(
        _ claims: VerifiedClaims,
        _ payload: Span<UInt8>,
        _ fields: [AuthField],
        _ response: inout HTTPResponse
    ) throws(Problem) {
        response.addField("Cache-Control: no-store")
        for field in fields {
            guard let text = field.claim.text else {
                let moment = field.claim == .expiration ? claims.expiresAt : claims.issuedAt
                // Whole seconds since 1970: a sign and the digits of 64 bits.
                response.addField(field.fieldName, atMost: 21) { output in
                    output.append(decimal: Int(moment.wholeSeconds))
                    return true
                }
                continue
            }
            let range = claims[text] ?? 0..<0
            let isTold = response.addField(field.fieldName, atMost: AuthFieldValue.room(for: range)) { output in
                AuthFieldValue.append(range, in: payload, to: &output)
            }
            if !isTold, text == .subject {
                // Without its subject an answer would be nobody's.
                throw Problem(
                    .rejectedToken(.malformedClaim),
                    "The claim sub is longer than \(AuthFieldValue.byteLimit) bytes.",
                    claim: "sub"
                )
            }
        }
    }
}
