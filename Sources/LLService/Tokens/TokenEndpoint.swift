internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LLStores
internal import LimitedLogin

/// `POST /token`: OAuth 2.0 Token Exchange (RFC 8693) of any Facebook login for a short-lived standard token. The verdict
/// is the same as at `POST /verify`, with binding, single use and revocation.
enum TokenEndpoint {
    static let answer: Route.Answer = { (worker, exchange, bytes) throws(Rejection) in
        // A refusal before the form is read is not a refusal of a token.
        let form = try worker.form(&exchange, bytes)
        guard let tokens = worker.settings.tokens else { throw Requirement.tokenIssuer.problem }
        let request = try TokenRequest(form, tokens.issuer.policy)
        guard !request.login.isAccessToken else {
            return try AccessTokenEndpoint.answer(worker, request.login, &exchange, bytes) {
                verified,
                worker throws(Rejection) in
                let token = try request.token(for: TokenEndpoint.login(verified, worker), worker)
                return { response in request.write(token, to: &response.body) }
            }
        }
        worker.subject = .idToken
        guard let claims = try worker.judge(request.login, &exchange, bytes) else {
            return .later(until: worker.judge.waitsUntil)
        }
        let payload = worker.judge.workspace.payload.span
        let login = try TokenIssuer.Login(claims, payload: payload, telling: tokens.issuer.policy.claims)
        let token = try request.token(for: login, worker)
        let person = worker.auditName(login.appID, login.userID)
        let uses = worker.uses(claims, request.login.expectation)
        return try ReplayGuard.accept(person, using: uses, worker, &exchange, bytes) { response in
            VerifyEndpoint.addFields(to: &response)
            request.write(token, isBound: login.keyThumbprint != nil, to: &response.body)
        }
    }

    /// The login of an access token. A token without a birth has an estimate that may lie before a callback, though Graph has
    /// just called it newer: it then begins after the callback, or `/auth` would refuse it at once.
    private static func login(_ verified: VerifiedAccessToken, _ worker: WorkerContext) -> TokenIssuer.Login {
        let now = NumericDate.now
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
}

extension TokenRequest {
    fileprivate func token(for login: TokenIssuer.Login, _ worker: WorkerContext) throws(Rejection) -> TokenIssuer.Token
    {
        guard let issuer = worker.settings.tokens?.issuer, let name = try? RandomBytes.make(count: 16) else {
            throw Rejection(.internalError, "No token can be made.")
        }
        return try Rejection.judging {
            try issuer.token(
                for: login,
                kind: wanted == .idToken ? .idToken : .accessToken,
                audience: audience,
                scope: scope,
                tokenID: Base64URL.encode(name),
                now: .now
            )
        }
    }

    fileprivate func write(_ token: TokenIssuer.Token, isBound: Bool = false, to body: inout [UInt8]) {
        // RFC 9449 section 5: the client must show a proof with a bound token.
        let type = wanted == .idToken ? "N_A" : isBound ? "DPoP" : "Bearer"
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("access_token", token.value, to: &body)
        JSONWriter.member("issued_token_type", wanted.rawValue, to: &body)
        JSONWriter.member("token_type", type, to: &body)
        JSONWriter.member("expires_in", Int(token.lifetime.components.seconds), to: &body)
        JSONWriter.member("scope", token.scope, to: &body)
        JSONWriter.raw("}", to: &body)
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

    private(set) var login = LoginRequest()
    let audience: String?
    let scope: String?
    let wanted: TokenType

    init(_ form: FormParameters, _ policy: TokenIssuerPolicy) throws(Rejection) {
        guard !form.hasRepeatedName else {
            throw Rejection(.invalidRequest, "The form has a parameter more than once.")
        }
        func required(_ name: StaticString) throws(Rejection) -> [UInt8] {
            guard let value = form.value(name) else {
                throw Rejection(.invalidRequest, "The form has no parameter \(name).")
            }
            return value
        }
        guard try required("grant_type") == Array(Self.grantType.utf8) else {
            throw Rejection(.unsupportedGrantType, "The grant_type must be \(Self.grantType).")
        }
        login.token = try required("subject_token")
        switch TokenType(rawValue: String(decoding: try required("subject_token_type"), as: UTF8.self)) {
        case .idToken: break
        case .accessToken: login.isAccessToken = true
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
        // RFC 8693 section 2.1: with an actor the token would name somebody acting for the person; these do not.
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
        _ = try Rejection.judging { [scope] in try policy.grantedScope(scope) }
        try readLogin(form)
    }

    private mutating func readLogin(_ form: FormParameters) throws(Rejection) {
        let (nonce, raw) = (form.value("nonce"), form.value("raw_nonce"))
        let issue: TokenBinding.Issue = try form.flag("issued_nonce") ? .required : .recognized
        login.hasAuthNonce = try form.flag("auth_nonce")
        guard login.isAccessToken || !login.hasAuthNonce else {
            throw Rejection(
                .invalidRequest,
                "The parameter auth_nonce is for access tokens; an id token has its nonce in it."
            )
        }
        guard nonce == nil || raw == nil else { throw RequestMistake.severalNonces }
        login.expectation.binding = TokenBinding(nonce: nonce ?? raw, isRaw: raw != nil, issue: issue)
        login.expectation.binding.subject = form.value("subject")
        login.expectation.keyThumbprintBytes = form.value("key_thumbprint")
        login.expectation.appIDBytes = form.value("app_id")
        guard login.isAccessToken else { return }
        // An access token contains no nonce. With `auth_nonce` Graph returns the nonce of its login, as at `POST /verify`.
        guard AccessTokenInspection.shape(login.token.span) != .jwt else {
            throw Rejection(
                .invalidRequest,
                "The subject_token is a JWT: send it with subject_token_type \(TokenType.idToken.rawValue)."
            )
        }
        let binding = login.expectation.binding
        guard login.hasAuthNonce == binding.requiresNonce, !binding.isRaw, login.expectation.keyThumbprintBytes == nil
        else {
            throw Rejection(
                .invalidRequest,
                "Beside an access token give auth_nonce=true and nonce, issued_nonce or both, or none of them; raw_nonce and "
                    + "key_thumbprint cannot be given with one."
            )
        }
        if let nonce = binding.nonce, !Nonce.isValid(nonce.span) {
            throw Rejection(.invalidNonce, "The parameter nonce has white space.")
        }
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
    init(_ claims: VerifiedClaims, payload: Span<UInt8>, telling wanted: [TokenIssuer.Claim]) throws(Rejection) {
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
