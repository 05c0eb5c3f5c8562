internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LLStores
internal import LimitedLogin

/// `POST /token`: OAuth 2.0 Token Exchange (RFC 8693). It exchanges any Facebook login for a short-lived standard
/// token.
///
/// The verdict is the same as at `POST /verify`, with binding, single use and revocation.
enum TokenEndpoint {
    static let bodyLimit = VerifyEndpoint.bodyLimit

    static let answer: Route.Answer = { (worker, exchange, bytes) throws(Rejection) in
        // A refusal before the form is read is not a refusal of a token.
        let form = try IntrospectEndpoint.form(worker, &exchange, bytes)
        guard let tokens = worker.settings.tokens else { throw Requirement.tokenIssuer.problem }
        let request = try TokenRequest(form, tokens.issuer.policy)
        guard request.isIDToken else {
            let asked = try request.accessToken()
            return AccessTokenEndpoint.answer(worker, asked, &exchange, bytes) {
                verified,
                _,
                worker throws(Rejection) in
                let token = try issue(try login(verified, worker), request, worker)
                return { write(token, request, &$0) }
            }
        }
        return try answer(request)(worker, &exchange, bytes)
    }

    /// Answers a request about an id token; after a wait it begins here again.
    private static func answer(_ request: TokenRequest) -> Route.Answer {
        { worker, exchange, bytes in
            do throws(Rejection) {
                return try judge(request, worker, &exchange, bytes)
            } catch {
                return .refused(.idToken, error)
            }
        }
    }

    /// The login of an access token. A token without a birth has an estimate that may lie before a callback, though Graph has
    /// just called it newer: it then begins after the callback, or `/auth` would refuse it at once.
    private static func login(
        _ verified: VerifiedAccessToken,
        _ worker: WorkerContext
    ) throws(Rejection) -> TokenIssuer.Login {
        let now = try ServiceClock.now()
        var login = TokenIssuer.Login(verified, now: now)
        let token = verified.inspection
        if token.issuedAt == nil,
            let last = worker.revocations.latest(app: token.appID.utf8.span, user: token.userID.utf8.span),
            last.kind == .callback, login.authenticatedAt.wholeSeconds <= last.moment
        {
            login.authenticatedAt = NumericDate(secondsSince1970: last.moment + 1) ?? now
        }
        return login
    }

    private static func judge(
        _ request: TokenRequest,
        _ worker: WorkerContext,
        _ exchange: inout HTTPExchange,
        _ bytes: Span<UInt8>
    ) throws(Rejection) -> Outcome {
        try VerifyEndpoint.requireNonces(request.expectation, worker.settings)
        let verdict = try worker.judge.judge(
            request.token.span,
            request.expectation,
            verifier: worker.settings.verifier,
            context: exchange.context,
            trace: TraceParent.passedOn(exchange.head, bytes)
        )
        guard let claims = verdict else { return .later(until: worker.judge.waitsUntil, then: answer(request)) }
        let login = try TokenIssuer.Login(
            claims,
            payload: worker.judge.workspace.payload.span,
            telling: worker.settings.tokens?.issuer.policy.claims ?? []
        )
        let token = try issue(login, request, worker)
        let person = worker.auditName(login.appID, login.userID)
        worker.count(request.expectation.binding.givenNonce, &exchange, bytes)
        let answer: ReplayGuard.Writer = { response in
            VerifyEndpoint.addFields(to: &response)
            write(token, request, isBound: login.keyThumbprint != nil, &response)
        }
        guard let uses = try VerifyEndpoint.uses(claims, request.expectation, worker) else {
            answer(&exchange.response)
            return .accepted(.idToken, person: person)
        }
        return try ReplayGuard.consume(uses, of: .idToken, person, worker, &exchange, bytes, write: answer)
    }

    private static func issue(
        _ login: TokenIssuer.Login,
        _ request: TokenRequest,
        _ worker: WorkerContext
    ) throws(Rejection) -> TokenIssuer.Token {
        guard let issuer = worker.settings.tokens?.issuer, let name = try? RandomBytes.make(count: 16) else {
            throw Rejection(.internalError, "No token can be made.")
        }
        let now = try ServiceClock.now()
        return try Rejection.judging {
            try issuer.token(
                for: login,
                kind: request.wanted == .idToken ? .idToken : .accessToken,
                audience: request.audience,
                scope: request.scope,
                tokenID: Base64URL.encode(name),
                now: now
            )
        }
    }

    private static func write(
        _ token: TokenIssuer.Token,
        _ request: TokenRequest,
        isBound: Bool = false,
        _ response: inout HTTPResponse
    ) {
        // RFC 9449 section 5: the client must show a proof with a bound token.
        let type = request.wanted == .idToken ? "N_A" : isBound ? "DPoP" : "Bearer"
        JSONWriter.raw("{", to: &response.body)
        JSONWriter.member("access_token", token.value, to: &response.body)
        JSONWriter.member("issued_token_type", request.wanted.rawValue, to: &response.body)
        JSONWriter.member("token_type", type, to: &response.body)
        JSONWriter.member("expires_in", Int(token.lifetime.components.seconds), to: &response.body)
        JSONWriter.member("scope", token.scope, to: &response.body)
        JSONWriter.raw("}", to: &response.body)
    }
}

/// The form of `POST /token` (RFC 8693 section 2.1), with the members of `POST /verify` about the login.
struct TokenRequest: Sendable {
    static let grantType = "urn:ietf:params:oauth:grant-type:token-exchange"

    enum TokenType: String, Sendable, CaseIterable {
        case accessToken = "urn:ietf:params:oauth:token-type:access_token"
        case idToken = "urn:ietf:params:oauth:token-type:id_token"
        case plain = "urn:ietf:params:oauth:token-type:jwt"
    }

    let token: [UInt8]
    let isIDToken: Bool
    let audience: String?
    let scope: String?
    let wanted: TokenType
    private(set) var expectation = TokenExpectation()
    private(set) var hasAuthNonce = false

    init(_ form: FormParameters, _ policy: TokenIssuerPolicy) throws(Rejection) {
        guard !form.hasRepeatedName else {
            throw Rejection(.invalidRequest, "The form has a parameter more than once.")
        }
        guard let grant = form.text("grant_type") else { throw Self.missing("grant_type") }
        guard grant == Self.grantType else {
            throw Rejection(.unsupportedGrantType, "The grant_type must be \(Self.grantType).")
        }
        guard let token = form.value("subject_token") else { throw Self.missing("subject_token") }
        guard let type = form.text("subject_token_type") else { throw Self.missing("subject_token_type") }
        self.token = token
        switch TokenType(rawValue: type) {
        case .idToken: isIDToken = true
        case .accessToken: isIDToken = false
        default:
            throw Rejection(
                .invalidRequest,
                "The subject_token_type must be \(TokenType.idToken.rawValue) or \(TokenType.accessToken.rawValue)."
            )
        }
        let wanted = form.text("requested_token_type").map { TokenType(rawValue: $0) } ?? .accessToken
        guard let wanted else {
            let known = TokenType.allCases.map(\.rawValue).joined(separator: ", ")
            throw Rejection(.invalidRequest, "The requested_token_type must be one of \(known).")
        }
        self.wanted = wanted
        // RFC 8693 section 2.1: with an actor the token would say who acts for whom, which none of these does.
        guard form.value("actor_token") == nil, form.value("actor_token_type") == nil else {
            throw Rejection(.invalidRequest, "No delegation is offered: leave actor_token and actor_token_type out.")
        }
        // RFC 8707 section 2: another name of the audience.
        let resource = form.text("resource")
        audience = form.text("audience") ?? resource
        guard resource == nil || resource == audience else {
            throw Rejection(.invalidTarget, "The audience and the resource differ.")
        }
        scope = form.text("scope")
        if let audience, !policy.audiences.contains(where: { $0.utf8.elementsEqual(audience.utf8) }) {
            throw Rejection(.invalidTarget)
        }
        _ = try Rejection.judging { try policy.grantedScope(form.text("scope")) }
        try readLogin(form)
    }

    /// Reads the parameters that tie the token to a login. They mean the same as at `POST /verify`.
    private mutating func readLogin(_ form: FormParameters) throws(Rejection) {
        var nonces: [TokenBinding.LoginNonce] = []
        if let nonce = form.value("nonce") { nonces.append(.nonce(nonce)) }
        if let nonce = form.value("raw_nonce") { nonces.append(.rawNonce(nonce)) }
        let hasIssuedNonce = try form.flag("issued_nonce")
        hasAuthNonce = try form.flag("auth_nonce")
        guard !isIDToken || !hasAuthNonce else {
            throw Rejection(
                .invalidRequest,
                "The parameter auth_nonce is for access tokens; an id token has its nonce in it."
            )
        }
        guard nonces.count <= 1 else { throw RequestMistake.severalNonces }
        expectation.binding = TokenBinding(nonce: nonces.first, subject: form.value("subject"))
        expectation.binding.settle(issuedNonce: hasIssuedNonce)
        expectation.keyThumbprintBytes = form.value("key_thumbprint")
        expectation.appIDBytes = form.value("app_id")
    }

    /// The request about an access token. The token contains no nonce. With `auth_nonce` Graph returns the nonce of its
    /// login, as at `POST /verify`.
    func accessToken() throws(Rejection) -> AccessTokenRequest {
        guard AccessTokenInspection.shape(token.span) != .jwt else {
            throw Rejection(
                .invalidRequest,
                "The subject_token is a JWT: send it with subject_token_type \(TokenType.idToken.rawValue)."
            )
        }
        var nonce: Nonce?
        switch (expectation.binding.nonce, hasAuthNonce, expectation.keyThumbprintBytes) {
        case (nil, false, nil), (.issuedNonce?, true, nil): break
        case (.nonce(let bytes)?, true, nil):
            nonce = Nonce(String(decoding: bytes, as: UTF8.self))
            guard nonce != nil else { throw Rejection(.invalidNonce, "The parameter nonce has white space.") }
        default:
            throw Rejection(
                .invalidRequest,
                "Beside an access token give auth_nonce=true and nonce, issued_nonce or both, or none of them; raw_nonce and "
                    + "key_thumbprint cannot be given with one."
            )
        }
        return AccessTokenRequest(
            token: token,
            subject: expectation.binding.subject.map { String(decoding: $0, as: UTF8.self) },
            appID: expectation.appIDBytes,
            hasAuthNonce: hasAuthNonce,
            nonce: nonce,
            hasIssuedNonce: expectation.binding.requiresIssuedNonce
        )
    }

    private static func missing(_ name: StaticString) -> Rejection {
        Rejection(.invalidRequest, "The form has no parameter \(name).")
    }
}

extension FormParameters {
    /// The value of a parameter; nil if it has none (RFC 6749 section 3.2).
    func value(_ name: StaticString) -> [UInt8]? { first(name).flatMap { $0.isEmpty ? nil : $0 } }

    /// True if the parameter is `true`; it can be nothing else.
    func flag(_ name: StaticString) throws(Rejection) -> Bool {
        guard let text = text(name) else { return false }
        guard text == "true" else {
            throw Rejection(.invalidRequest, "The parameter \(name) can only be true; leave it out otherwise.")
        }
        return true
    }

    func text(_ name: StaticString) -> String? { value(name).map { String(decoding: $0, as: UTF8.self) } }
}

extension TokenIssuer.Login {
    /// The login of an id token.
    init(
        _ claims: VerifiedClaims,
        payload: Span<UInt8>,
        telling wanted: [TokenIssuer.Claim]
    ) throws(Rejection) {
        var thumbprint: String?
        switch claims.keyBinding {
        case .none: break
        case .key(let range): thumbprint = JSONText.value(payload, range)
        case .unreadable:
            throw Rejection(
                .invalidRequest,
                "The subject token's cnf has no readable thumbprint jkt, so no key could use a token made from it."
            )
        }
        var told: [TokenIssuer.Claim: String] = [:]
        for claim in wanted {
            if let range = claims[claim.name] { told[claim] = JSONText.value(payload, range) }
        }
        self.init(
            appID: JSONText.value(payload, claims.audience),
            userID: JSONText.value(payload, claims.subject),
            authenticatedAt: claims.issuedAt,
            expiresAt: claims.expiresAt,
            keyThumbprint: thumbprint,
            claims: told
        )
    }
}
