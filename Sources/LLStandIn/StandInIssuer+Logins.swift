internal import Dispatch
internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LimitedLoginTesting

/// The login behind a code of the dialog: the dialog's query, kept until the code is exchanged.
struct DialogCode {
    let query: [String: String]
    let expiresAt: Int64
    var isUsed = false
}

/// The web dialog and the exchange of its code, as far as Facebook documents them ("OIDC Token", "Manually Build a
/// Login Flow"). The person is always Jane. She is logged in and agrees at once.
extension StandInIssuer {
    /// `GET /dialog/oauth`: sends the browser back to the app with a code in the query.
    func answerDialog(_ request: StandInRequest) throws(StandInRefusal) -> StandInAnswer {
        let query = request.query
        guard query["client_id"] != nil, let target = query["redirect_uri"], target.contains("://"),
            target.utf8.allSatisfy(ASCII.isVisible), !target.contains("#")
        else { throw StandInRefusal("the dialog needs client_id and redirect_uri, a URL without a fragment") }
        guard query["code_challenge"] == nil || query["code_challenge_method"] == "S256",
            ["code", nil].contains(query["response_type"])
        else { throw StandInRefusal("response_type is code, and code_challenge_method is S256") }
        // A code lives for ten minutes.
        let code = DialogCode(query: query, expiresAt: request.now + 600)
        let name = "AQ" + .random(64)
        graph.codes.withLock { StandInGraph.keep(code, as: name, in: &$0) }
        let answer = [(name: "code", value: name)] + (query["state"].map { [(name: "state", value: $0)] } ?? [])
        let location = target + (target.contains("?") ? "&" : "?") + FormParameters.encode(answer)
        return StandInAnswer(status: 302, fields: [("Location", location), ("Cache-Control", "no-store")])
    }

    /// `GET /oauth/access_token`: the exchange of a code by its verifier. It needs no secret.
    func exchange(_ request: StandInRequest) throws(StandInAnswer) -> StandInAnswer {
        let (query, now) = (request.query, request.now)
        let name = query["code"] ?? ""
        let code = graph.codes.withLock { codes in
            defer { codes[name]?.isUsed = true }
            return codes[name]
        }
        guard let code, code.query["client_id"] == query["client_id"] else {
            throw .error(100, "Invalid verification code format.")
        }
        guard !code.isUsed else { throw .error(100, subcode: 36_009, "This authorization code has been used.") }
        guard code.expiresAt > now else { throw .error(100, subcode: 36_007, "This authorization code has expired.") }
        guard code.query["redirect_uri"] == query["redirect_uri"] else {
            throw .error(
                100,
                subcode: 36_008,
                "Error validating verification code. Please make sure your redirect_uri is identical to the one you used in "
                    + "the OAuth dialog request"
            )
        }
        guard Self.isAnswered(code.query["code_challenge"], by: query["code_verifier"]) else {
            throw .error(
                100,
                "Invalid code verifier. Code verifier should be a cryptographic random string using the characters A-Z, a-z, "
                    + "0-9, and the punctuation characters -._~, between 43 and 128 characters long."
            )
        }
        guard let tokens = try? mint(code.query, now: now) else { throw .error(2, "The stand-in failed.") }
        var members: [FacebookJSON.Member] = [
            ("access_token", FacebookJSON.string(tokens.access)), ("token_type", "\"bearer\""),
            ("expires_in", "5184000"),
        ]
        if let token = tokens.id { members.append(("id_token", FacebookJSON.string(token))) }
        return .object(members)
    }

    /// True if the verifier belongs to the challenge, which is its SHA-256 in base64url (RFC 7636 section 4.2). A code
    /// without a challenge needs no verifier.
    private static func isAnswered(_ challenge: String?, by verifier: String?) -> Bool {
        guard let challenge else { return true }
        guard let verifier, (43...128).contains(verifier.utf8.count),
            let digest = try? SHA256.digest(of: Array(verifier.utf8).span)
        else { return false }
        return digest.base64URL == challenge
    }

    /// The tokens of a login: an id token only with the scope `openid`, bound to the access token by `at_hash`.
    private func mint(_ query: [String: String], now: Int64) throws -> (access: String, id: String?) {
        let appID = query["client_id"] ?? ""
        let scopes = (query["scope"] ?? "").split { " ,".contains($0) }
        let isEmailGranted = scopes.contains("email")
        var request: [FacebookJSON.Member] = [
            ("name", "\"Jane Q Doe\""), ("email", "\"jane.doe@example.com\""),
            ("scopes", FacebookJSON.list(["public_profile"] + (isEmailGranted ? ["email"] : []))),
        ]
        // Graph tells the nonce only for a login with a new authentication.
        if let nonce = query["auth_nonce"], query["auth_type"]?.split(separator: ",").contains("reauthenticate") == true
        {
            request.append(("auth_nonce", FacebookJSON.string(nonce)))
        }
        let text = Array(FacebookJSON.object(request).utf8)
        let access = try graph.mintAccessToken(text, fate: "", appID: appID, now: now)
        guard scopes.contains("openid") else { return (access, nil) }
        let digest = try SHA256.digest(of: Array(access.utf8).span).bytes
        var claims: [FacebookJSON.Member] = [
            ("aud", FacebookJSON.string(appID)), ("nonce", FacebookJSON.string(query["nonce"] ?? "")),
            ("at_hash", FacebookJSON.string(Base64URL.encode((0..<16).map { digest[$0] }))), ("name", "\"Jane Q Doe\""),
        ]
        if isEmailGranted { claims.append(("email", "\"jane.doe@example.com\"")) }
        return (access, try token(claims: Array(FacebookJSON.object(claims).utf8), now: now))
    }
}

/// The stand-in's callbacks. Like Facebook, it signs a request and sends it to the service.
extension StandInIssuer {
    /// The greatest number of callbacks at a time, each on its own queue.
    static let callbackLimit = 64
    /// The greatest time for the service's answer: twice the time that the service promises.
    private static let patience = Duration.seconds(18)

    /// Removes the app from the person's account, then sends the callback, in the same order as Facebook. The answer is
    /// the service's own. `?app_id=` names another app, `?issued_at=` another time.
    func callBack(_ name: String, _ userID: String, _ request: StandInRequest) throws -> StandInAnswer {
        switch callbacks.visit(request.context) {
        case .none: break
        case .waiting(let moment): return StandInAnswer(pause: moment)
        case .expired: return .text(502, "the service did not answer")
        case .done(_, let answer): return answer
        }
        let appID = request.query["app_id"] ?? template.audience
        _ = graph.revoke(nil, of: StandInGraph.Person(appID: appID, userID: userID))
        let issuedAt = request.query["issued_at"].flatMap { Int64($0) } ?? request.now
        guard let service = service.withLock({ $0 }), let url = try? HTTPURL(parsing: "\(service)/callbacks/\(name)")
        else { return .text(503, "the stand-in does not know the service: start it with --service-url") }
        let signed = try SignedRequestMinter.mint(userID: userID, issuedAt: issuedAt, appSecret: graph.appSecret)
        let deadline = MonotonicClock.now() + Self.patience
        let isBegun = callbacks.begin(request.context, keeping: (), until: deadline) { request in
            DispatchQueue(label: "callback").async {
                self.callbacks.finish(request, self.send(signed, url), now: MonotonicClock.now())
            }
            return true
        }
        return isBegun ? StandInAnswer(pause: deadline) : .text(503, "too many callbacks are under way")
    }

    private func send(_ signed: String, _ url: HTTPURL) -> StandInAnswer {
        var limits = HTTPSClientLimits()
        limits.fetchTimeout = Self.patience
        do throws(ClientError) {
            let form = HTTPSRequest(.post, url, body: .form([("signed_request", signed)]))
            let response = try client.send(form, limits: limits)
            let body = String(decoding: response.body, as: UTF8.self)
            return StandInAnswer(status: UInt16(clamping: response.status), body: body)
        } catch { return StandInAnswer(status: 502, body: "\(error)\n") }
    }
}

extension StandInRequest {
    /// The answer to `POST` at `/users/{id}/deauthorize` and `/users/{id}/data-deletion`; nil for any other path.
    var callback: StandInIssuer.Handler? {
        let parts = parts
        guard parts.count == 3, parts[0] == "users", ["deauthorize", "data-deletion"].contains(parts[2]),
            DecimalNumber.isIdentifier(parts[1].utf8)
        else { return nil }
        return { try $0.callBack(parts[2], parts[1], $1) }
    }
}
