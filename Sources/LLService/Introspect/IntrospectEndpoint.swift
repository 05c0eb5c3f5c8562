internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LimitedLogin

/// `POST /introspect`: OAuth 2.0 Token Introspection (RFC 7662) of an id token.
enum IntrospectEndpoint {
    static let answer: Route.Answer = { worker, exchange, bytes throws(Rejection) in
        let form = try worker.form(&exchange, bytes)
        worker.subject = .idToken
        let request = try IntrospectRequest(form)
        do throws(Rejection) {
            let verdict = try worker.judgeUnbound(request.token.span, request.expectation, .all, &exchange, bytes)
            guard let token = verdict else { return .later(until: worker.judge.waitsUntil) }
            VerifyEndpoint.addFields(to: &exchange.response)
            IntrospectAnswer.write(token, to: &exchange.response.body)
            return .done()
        } catch {
            // A malformed request or an outage is not the token's fault.
            guard error.code.kind == .token || error.code == .invalidNonce || error.code == .unknownApp else {
                throw error
            }
            // If a token fails a check, the caller learns only that it is not active (RFC 7662 section 2.2).
            VerifyEndpoint.addFields(to: &exchange.response)
            JSONWriter.raw("{\"active\":false}", to: &exchange.response.body)
            return .inactive(error.code)
        }
    }
}

/// The form of `POST /introspect` (RFC 7662 section 2.1), with a part of the context that `/verify` takes.
struct IntrospectRequest: Sendable {
    static let parameters: [StaticString] = [
        "token", "token_type_hint", "nonce", "raw_nonce", "subject", "app_id", "client_id", "client_secret",
    ]
    /// The parameters that `/verify` alone judges. Other unknown parameters are ignored (RFC 6749 section 3.2). These
    /// are refused, because a caller that sends one would believe that `active` includes it.
    private static let demandsOfVerify: [StaticString] = [
        "issued_nonce", "auth_nonce", "key_thumbprint", "access_token", "permissions",
    ]

    let token: [UInt8]
    private(set) var expectation = TokenExpectation()

    init(_ form: FormParameters) throws(Rejection) {
        // RFC 6749 section 3.1: a parameter must not be repeated.
        for name in Self.parameters where form.count(of: name) > 1 {
            throw Rejection(.invalidRequest, "The form has the parameter \(name) more than once.")
        }
        for name in Self.demandsOfVerify where form.count(of: name) > 0 {
            throw Rejection(.invalidRequest, "The parameter \(name) is judged by /verify alone.")
        }
        guard let token = form.first("token"), !token.isEmpty else {
            throw Rejection(.invalidRequest, "The form has no parameter token.")
        }
        self.token = token
        let ties: [StaticString] = ["nonce", "raw_nonce", "subject"]
        guard ties.count(where: { form.count(of: $0) > 0 }) <= 1 else {
            throw Rejection(.invalidRequest, "Only one of nonce, raw_nonce and subject may be given.")
        }
        for name in ties + ["app_id"] where form.first(name)?.isEmpty == true {
            throw Rejection(.invalidRequest, "The parameter \(name) is empty.")
        }
        let raw = form.first("raw_nonce")
        // A token is asked about again and again within its life, so the age of its nonce does not count here.
        expectation.binding = TokenBinding(nonce: raw ?? form.first("nonce"), isRaw: raw != nil, issue: .ignored)
        expectation.binding.subject = form.first("subject")
        expectation.appIDBytes = form.first("app_id")
    }
}

/// Writes the answer of `POST /introspect` about an active token (RFC 7662 section 2.2).
enum IntrospectAnswer {
    static func write(_ token: UnboundToken, to bytes: inout [UInt8]) {
        let (claims, payload) = (token.claims, token.payload)
        JSONWriter.raw("{\"active\":true", to: &bytes)
        if token.isOwn {
            // Every claim of the token, as it was written.
            bytes.append(UInt8(ascii: ","))
            bytes += payload.dropFirst().dropLast()
            let type: StaticString = claims.isBoundToKey ? ",\"token_type\":\"DPoP\"}" : ",\"token_type\":\"Bearer\"}"
            return JSONWriter.raw(type, to: &bytes)
        }
        text("iss", claims.issuer, payload, &bytes)
        text("sub", claims.subject, payload, &bytes)
        text("aud", claims.audience, payload, &bytes)
        text("client_id", token.client, payload, &bytes)
        // RFC 9449 section 6.2. No proof fits a token with an unreadable `cnf`.
        switch claims.keyBinding {
        case .none: JSONWriter.raw(",\"token_type\":\"Bearer\"", to: &bytes)
        case .unreadable: JSONWriter.raw(",\"token_type\":\"DPoP\"", to: &bytes)
        case .key(let thumbprint):
            JSONWriter.raw(",\"token_type\":\"DPoP\",\"cnf\":{", to: &bytes)
            text("jkt", thumbprint, payload, &bytes)
            bytes.append(UInt8(ascii: "}"))
        }
        text("jti", claims.tokenID, payload, &bytes)
        JSONWriter.member("exp", Int(claims.expiresAt.wholeSeconds), to: &bytes)
        JSONWriter.member("iat", Int(claims.issuedAt.wholeSeconds), to: &bytes)
        // The scope is derived from the claims; a token does not list the granted permissions.
        let scope = claims.permissions.permissions.map(\.rawValue).joined(separator: " ")
        JSONWriter.member("scope", scope, to: &bytes)
        text("nonce", claims[.nonce], payload, &bytes)
        for row in PersonalClaim.told {
            text(row.name, claims[row.claim], payload, &bytes)
            if row.claim == .email, claims[.email] != nil { JSONWriter.member("email_verified", false, to: &bytes) }
        }
        JSONWriter.raw("}", to: &bytes)
    }

    private static func text(_ name: StaticString, _ range: Range<Int>?, _ payload: [UInt8], _ bytes: inout [UInt8]) {
        guard let range else { return }
        JSONWriter.name(name, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
        bytes.append(payload.span, range)
        bytes.append(UInt8(ascii: "\""))
    }
}
