internal import LLBytes
internal import LLHTTP1
internal import LLHTTPServer
internal import LLJOSE
internal import LimitedLogin

/// `POST /introspect`: OAuth 2.0 Token Introspection (RFC 7662) of an id token.
enum IntrospectEndpoint {
    /// Greatest body, in bytes: the greatest token, and half as much again for the rest of the body.
    static let bodyLimit = 49_152

    static let answer: Route.Answer = { worker, head, bytes, body, context, response in
        let form = try form(body, worker, head, bytes, context)
        if let tokens = worker.settings.tokens, let token = form.first("token"),
            worker.ownTokens.isOwn(token.span, tokens, worker.settings)
        {
            return answer(form, worker, &response)
        }
        let claims: VerifiedClaims?
        let outcome: Outcome
        do throws(Problem) {
            let request = try IntrospectRequest(form)
            let verdict = try worker.judge.judge(
                request.token.span,
                request.question,
                signatures: worker.signatures,
                verifier: worker.settings.unboundVerifier,
                context: context,
                trace: TraceParent.passedOn(head, bytes)
            )
            switch verdict {
            case .wait(let moment): return .wait(until: moment)
            case .verified(let verified): (claims, outcome) = (verified, .accepted(.idToken))
            }
        } catch {
            switch error.code {
            // The caller of a token that fails any check learns only that the token is not active (section 2.2).
            case .rejectedToken, .invalidNonce, .unknownApp: (claims, outcome) = (nil, .inactive(error.code))
            // The request's form or an outage is no fault of the token.
            default: return .refused(.idToken, error)
            }
        }
        VerifyEndpoint.addFields(to: &response)
        IntrospectAnswer.write(claims, payload: worker.judge.workspace.payload, to: &response.body)
        return outcome
    }

    /// Answers about a token that was issued here.
    private static func answer(
        _ form: FormParameters,
        _ worker: WorkerParts,
        _ response: inout HTTPResponse
    ) -> Outcome {
        let outcome: Outcome
        do throws(Problem) {
            let request = try IntrospectRequest(form)
            let token = try worker.ownTokens.judge(request.token.span, appID: request.question.appID)
            let subject = JSONText.value(token.payload.span, token.claims.subject)
            let binding = request.question.binding
            guard
                binding == .unbound || binding == .subject && subject.utf8.elementsEqual(request.question.bindingValue)
            else {
                throw Problem(
                    .rejectedToken(binding == .subject ? .subjectMismatch : .nonceMismatch),
                    "It has no nonce."
                )
            }
            VerifyEndpoint.addFields(to: &response)
            IntrospectAnswer.write(token.claims, payload: token.payload, client: token.clientID, to: &response.body)
            return .accepted(.idToken)
        } catch {
            switch error.code {
            case .rejectedToken, .invalidNonce, .unknownApp: outcome = .inactive(error.code)
            default: return .refused(.idToken, error)
            }
        }
        VerifyEndpoint.addFields(to: &response)
        IntrospectAnswer.write(nil, payload: [], to: &response.body)
        return outcome
    }

    /// The form of a caller that may ask.
    static func form(
        _ body: Span<UInt8>,
        _ worker: WorkerParts,
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ context: RequestContext
    ) throws(Problem) -> FormParameters {
        guard let form = FormParameters(body, 0..<body.count) else {
            throw Problem(.invalidRequest, "The form has a broken escape or too many parameters.")
        }
        // A request that comes again after a wait was let in before.
        if context.visit == .first { try worker.requireCaller(form, head, bytes) }
        return form
    }
}

/// The form of `POST /introspect`: `token`, perhaps `token_type_hint` (RFC 7662 section 2.1), and as further context
/// what `/verify` takes: one of `nonce`, `raw_nonce` and `subject`, and `app_id`.
struct IntrospectRequest {
    static let parameters: [StaticString] = [
        "token", "token_type_hint", "nonce", "raw_nonce", "subject", "app_id", "client_id", "client_secret",
    ]
    /// What `/verify` alone judges. Any other unknown parameter is not looked at (RFC 6749 section 3.2), but a caller that
    /// sends one of these would take `active` for a yes to it.
    private static let demandsOfVerify: [StaticString] = [
        "issued_nonce", "key_thumbprint", "access_token", "permissions",
    ]

    let token: [UInt8]
    private(set) var question = TokenQuestion(texts: .all)

    init(_ form: FormParameters) throws(Problem) {
        // RFC 6749 section 3.1: no parameter more than once.
        for name in Self.parameters where form.count(of: name) > 1 {
            throw Problem(.invalidRequest, "The form has the parameter \(name) more than once.")
        }
        for name in Self.demandsOfVerify where form.count(of: name) > 0 {
            throw Problem(.invalidRequest, "The parameter \(name) is judged by /verify alone.")
        }
        guard let token = form.first("token"), !token.isEmpty else {
            throw Problem(.invalidRequest, "The form has no parameter token.")
        }
        self.token = token
        let bindings: [(StaticString, BindingKind)] = [
            ("nonce", .nonce), ("raw_nonce", .rawNonce), ("subject", .subject),
        ]
        for (name, kind) in bindings {
            guard let value = form.first(name) else { continue }
            guard question.binding == .unbound else {
                throw Problem(.invalidRequest, "Only one of nonce, raw_nonce and subject may be given.")
            }
            guard !value.isEmpty else { throw Problem(.invalidRequest, "The parameter \(name) is empty.") }
            question.binding = kind
            question.bindingValue = value
        }
        if let appID = form.first("app_id") {
            guard !appID.isEmpty else { throw Problem(.invalidRequest, "The parameter app_id is empty.") }
            question.appID = appID
        }
    }
}

/// Writes the answer of `POST /introspect` (RFC 7662 section 2.2).
enum IntrospectAnswer {
    /// - Parameters:
    ///   - claims: nil for a token that is not active, of which nothing more is told.
    ///   - client: the client that the token was issued to; nil if it is the audience.
    static func write(
        _ claims: VerifiedClaims?,
        payload: [UInt8],
        client: Range<Int>? = nil,
        to bytes: inout [UInt8]
    ) {
        guard let claims else {
            JSONWriter.raw("{\"active\":false}", to: &bytes)
            return
        }
        JSONWriter.raw("{\"active\":true", to: &bytes)
        text(",\"iss\":\"", claims.issuer, payload, &bytes)
        text(",\"sub\":\"", claims.subject, payload, &bytes)
        text(",\"aud\":\"", claims.audience, payload, &bytes)
        // The client that one of Facebook's was issued to is its audience.
        text(",\"client_id\":\"", client ?? claims.audience, payload, &bytes)
        // RFC 9449 section 6.2. A token with an unreadable `cnf` is bound too: a Bearer token has none.
        JSONWriter.raw(claims.isBoundToKey ? ",\"token_type\":\"DPoP\"" : ",\"token_type\":\"Bearer\"", to: &bytes)
        if let thumbprint = claims[.keyThumbprint] {
            text(",\"cnf\":{\"jkt\":\"", thumbprint, payload, &bytes)
            bytes.append(UInt8(ascii: "}"))
        }
        text(",\"jti\":\"", claims.tokenID, payload, &bytes)
        JSONWriter.member("exp", Int(claims.expiresAt.wholeSeconds), to: &bytes)
        JSONWriter.member("iat", Int(claims.issuedAt.wholeSeconds), to: &bytes)
        // The claims show the scope; a token does not list the granted permissions.
        let scope = claims.permissions.permissions.map(\.rawValue).joined(separator: " ")
        JSONWriter.member("scope", scope, to: &bytes)
        text(",\"nonce\":\"", claims[.nonce], payload, &bytes)
        text(",\"name\":\"", claims[.name], payload, &bytes)
        text(",\"given_name\":\"", claims[.firstName], payload, &bytes)
        text(",\"middle_name\":\"", claims[.middleName], payload, &bytes)
        text(",\"family_name\":\"", claims[.lastName], payload, &bytes)
        text(",\"email\":\"", claims[.email], payload, &bytes)
        if claims[.email] != nil { JSONWriter.raw(",\"email_verified\":false", to: &bytes) }
        text(",\"picture\":\"", claims[.imageURL], payload, &bytes)
        JSONWriter.raw("}", to: &bytes)
    }

    private static func text(
        _ opening: StaticString,
        _ range: Range<Int>?,
        _ payload: [UInt8],
        _ bytes: inout [UInt8]
    ) {
        guard let range else { return }
        JSONWriter.raw(opening, to: &bytes)
        bytes.append(payload.span, range)
        bytes.append(UInt8(ascii: "\""))
    }
}
