import LLHTTP
import LLStandIn
import LLTestSupport
import LimitedLogin
import LimitedLoginKeys
import Testing

@testable import LLService
@testable import LLStores

/// An issuer of tokens for tests.
enum OwnTokens {
    static let issuer = "https://login.example.com"
    static let audience = "https://api.example.com"
    static let rsa = try? SigningKey(generating: .rs256)
    static let p256 = try? SigningKey(generating: .es256)

    static func settings(
        _ keys: [SigningKey?] = [rsa, p256],
        issuer: String = issuer,
        claims: [TokenIssuer.Claim] = [.name, .email],
        extraClaims: String = #"{"role":"user"}"#,
        scope: String = ""
    ) throws -> TokenSettings {
        let policy = try TokenIssuerPolicy(
            issuer: issuer,
            audiences: [audience, "other"],
            claims: claims,
            extraClaims: extraClaims,
            scope: scope
        )
        return TokenSettings(TokenIssuer(policy: policy, keys: try SigningKeySet(keys.compactMap { $0 })))
    }
}

@Suite("POST /token: exchanges any login for one standard token (RFC 8693)", .live)
struct OwnTokenTests {
    static let form = "Content-Type: application/x-www-form-urlencoded"
    static let key = "Authorization: Bearer secret"
    static let idToken = "urn:ietf:params:oauth:token-type:id_token"
    static let accessToken = "urn:ietf:params:oauth:token-type:access_token"

    static func service(
        keys: [SigningKey?] = [OwnTokens.rsa, OwnTokens.p256],
        minters: [TokenMinter]? = [StandInKeys.current],
        nonces: NonceIssuer? = nil,
        replayStore: ReplayStore? = nil,
        tokens: TokenSettings? = nil
    ) async throws -> InProcessService {
        try await InProcessService(
            minters: minters,
            clients: ClientKeysTests.backend(),
            gatewayIsEnabled: true,
            nonces: nonces,
            replayStore: replayStore,
            tokens: try tokens ?? OwnTokens.settings(keys)
        )
    }

    static func body(_ token: String, _ more: String = "nonce=n-1", type: String = idToken) -> String {
        "grant_type=\(TokenRequest.grantType)&subject_token_type=\(type)&subject_token=\(token)&\(more)"
    }

    static func exchange(_ service: InProcessService, _ body: String, fields: [String] = [form, key]) throws
        -> TestResponse
    {
        try service.answer("POST", "/token", fields: fields, body: body)
    }

    static func issued(_ service: InProcessService, _ more: String = "nonce=n-1") throws -> String {
        let answer = try exchange(service, body(try Tokens.mint(Tokens.claims()), more))
        try #require(answer.status == 200, "\(answer.text)")
        return try token(answer)
    }

    static func token(_ answer: TestResponse) throws -> String {
        try #require(answer.object["access_token"] as? String, "\(answer.text)")
    }

    static func auth(_ service: InProcessService, _ token: String, _ query: String = "") throws -> TestResponse {
        try service.answer("GET", "/auth\(query)", fields: ["Authorization: Bearer \(token)"])
    }

    @Test("The token has the claims of RFC 9068 and is good at /auth and /introspect", arguments: [0, 1])
    func exchanged(first: Int) async throws {
        let keys = first == 0 ? [OwnTokens.rsa, OwnTokens.p256] : [OwnTokens.p256, OwnTokens.rsa]
        let service = try await Self.service(keys: keys)
        let answer = try Self.exchange(service, Self.body(try Tokens.mint(Tokens.claims())))
        #expect(answer.status == 200 && answer["cache-control"] == "no-store")
        let (told, token) = (answer.object, try Self.token(answer))
        #expect(told["token_type"] as? String == "Bearer" && told["issued_token_type"] as? String == Self.accessToken)
        #expect((590...600).contains(told["expires_in"] as? Int ?? 0))
        let parts = token.split(separator: ".").map { Self.text($0) }
        let algorithm = first == 0 ? "RS256" : "ES256"
        #expect(parts[0].hasPrefix(#"{"alg":"\#(algorithm)","typ":"at+jwt","kid":""#))
        for part in [
            #""iss":"https://login.example.com""#, #""aud":"https://api.example.com""#, #""sub":"2954873201847263""#,
            #""client_id":"\#(InProcessService.appID)""#, #""idp":"facebook""#, #""role":"user""#, #""auth_time":"#,
        ] { #expect(parts[1].contains(part), "\(part): \(parts[1])") }
        let auth = try Self.auth(service, token)
        #expect(auth.status == 200 && auth["x-auth-subject"] == "2954873201847263")
        #expect(auth["x-auth-audience"] == OwnTokens.audience)
        // The signature is remembered the second time.
        #expect(try Self.auth(service, token).status == 200)
    }

    static func text(_ part: Substring) -> String {
        var bytes: [UInt8] = []
        let digits = Array(part.utf8)
        _ = Base64URL.decode(digits.span, digits.indices, into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("Until Redis was read once, own tokens and access tokens are 503: a revocation may be missing")
    func unread() async throws {
        let token = try Self.issued(try await Self.service())
        let redis = try RedisReplayStore.patient("redis://127.0.0.1:1")
        let store = ReplayStore.redis(redis)
        let service = try await Self.service(replayStore: store)
        let graph = try await GraphService(replayStore: store, script: GraphStory.script())
        let answers = try [Self.auth(service, token), service.introspect("token=\(token)"), graph.judge()]
        #expect(answers.map(\.status) == [503, 503, 503], "\(answers.map(\.text))")
        #expect(answers[0].code == "replay_store_unavailable")
        redis.revocations.didRead(at: MonotonicClock.now())
        #expect(try Self.auth(service, token).status == 200)
    }

    @Test("A refused login is 400 with OAuth's error and the code of /verify; a caller without a key is 401")
    func refusals() async throws {
        let service = try await Self.service()
        let good = try Tokens.mint(Tokens.claims())
        let now = WallClock.unixSeconds()
        let old = try Tokens.mint(Tokens.claims(issuedAt: now - 86_400))
        let foreign = try Tokens.mint(Tokens.claims(audience: "99"))
        for (body, code) in [
            (Self.body(good, "nonce=other"), "nonce_mismatch"), (Self.body(old), "expired"),
            (Self.body(good, "nonce=n-1&subject=42"), "subject_mismatch"), (Self.body(foreign), "invalid_audience"),
            (Self.body(good, "nonce=n-1&app_id=77"), "unknown_app"),
            (Self.body(good, type: Self.accessToken), "invalid_request"),
        ] {
            let answer = try Self.exchange(service, body)
            #expect(answer.status == 400 && answer.code == code, "\(body): \(answer.text)")
            #expect(answer.text.contains(#""error":"invalid_request""#), "\(body): \(answer.text)")
            #expect(answer["www-authenticate"] == nil, "\(body)")
        }
        let keyless = try Self.exchange(service, Self.body(good), fields: [Self.form])
        #expect(keyless.status == 401 && keyless.text.contains(#""error":"invalid_client""#))
        let posted = Self.body(good) + "&client_id=backend&client_secret=secret"
        #expect(try Self.exchange(service, posted, fields: [Self.form]).status == 200)
    }

    @Test("A bound login's token is bound to the same key; a login with an unreadable cnf gets no token")
    func bound() async throws {
        let service = try await Self.service()
        let thumbprint = try Proof.key.thumbprint()
        for confirmation in [#"{"jkt":"\#(thumbprint)"}"#, "{}", "null", #"{"jkt":5}"#, #""x""#, #"{"x5t#S256":"y"}"#] {
            let token = try StandInKeys.current.mint(members: Tokens.claims().members + [("cnf", confirmation)])
            let body = #"{"id_token":"\#(token)","nonce":"n-1"}"#
            let told = try service.answer(fields: ["Content-Type: application/json", Self.key], body: body).text
            let isUnreadable = !confirmation.contains(thumbprint)
            let facebooks = try service.introspect("token=\(token)").text
            #expect(facebooks.contains(#","token_type":"DPoP","#), "\(confirmation): \(facebooks)")
            #expect(told.contains(#","confirmation":"unreadable","#) == isUnreadable, "\(told)")
            let answer = try Self.exchange(service, Self.body(token))
            if isUnreadable {
                #expect(answer.status == 400 && answer.code == "invalid_request", "\(confirmation): \(answer.text)")
                continue
            }
            let own = try Self.token(answer)
            #expect(answer.object["token_type"] as? String == "DPoP", "\(answer.text)")
            let bearer = ["Authorization: Bearer \(own)", "DPoP: x"]
            #expect(try service.answer("GET", "/auth", fields: bearer).code == "invalid_dpop_proof")
            let active = try service.introspect("token=\(own)").text
            #expect(active.contains(#","cnf":{"jkt":"\#(thumbprint)"},"#), "\(active)")
            #expect(active.hasSuffix(#","token_type":"DPoP"}"#), "\(active)")
            let id = try Self.exchange(service, Self.body(token, "nonce=n-1&requested_token_type=\(Self.idToken)"))
            #expect(id.object["token_type"] as? String == "N_A")
        }
    }

    @Test("An outage is 503 with Retry-After and logs no user out")
    func outage() async throws {
        let service = try await Self.service(minters: nil)
        _ = await service.cache.refresh()
        let answer = try Self.exchange(service, Self.body(try Tokens.mint(Tokens.claims())))
        #expect(answer.status == 503 && answer["retry-after"] != nil)
        #expect(answer.text.contains(#""error":"temporarily_unavailable""#))
        // The service's own tokens need no key from Facebook.
        let now = try #require(NumericDate(secondsSince1970: WallClock.unixSeconds()))
        let login = TokenIssuer.Login(appID: InProcessService.appID, userID: "1", authenticatedAt: now, expiresAt: nil)
        let own = try OwnTokens.settings().issuer.token(for: login, tokenID: "t", now: now)
        #expect(try Self.auth(service, own.value).status == 200)
    }

    @Test("A revocation applies to own tokens of earlier logins, however late the token was made")
    func revoked() async throws {
        let service = try await Self.service()
        let old = try Tokens.mint(Tokens.claims(issuedAt: WallClock.unixSeconds() - 600))
        let late = try Self.token(Self.exchange(service, Self.body(old)))
        #expect(try Self.auth(service, late).status == 200)
        service.core.revoke("2954873201847263", at: WallClock.unixSeconds() - 300)
        #expect(try Self.auth(service, late).code == "login_revoked")
        let token = try Self.issued(service)
        #expect(try Self.auth(service, token).status == 200)
        let body = #"{"user_id":"2954873201847263","app_id":"\#(InProcessService.appID)"}"#
        let fields = ["Content-Type: application/json", Self.key]
        #expect(try service.answer("POST", "/revocations", fields: fields, body: body).status == 204)
        let answer = try Self.auth(service, token)
        #expect(answer.status == 401 && answer.code == "login_revoked")
        #expect(try service.introspect("token=\(token)").text == #"{"active":false}"#)
    }

    @Test("An id token is refused at /auth, a query narrows the accepted tokens, and no own token passes as Facebook's")
    func kinds() async throws {
        let service = try await Self.service()
        let id = try Self.issued(service, "nonce=n-1&requested_token_type=\(Self.idToken)")
        #expect(try Self.auth(service, id).status == 401)
        var claims = Tokens.claims()
        claims.name = "Jane Doe"
        let token = try Self.token(Self.exchange(service, Self.body(try Tokens.mint(claims))))
        #expect(try Self.auth(service, token, "?app_id=\(InProcessService.appID)").status == 200)
        #expect(try Self.auth(service, token, "?app_id=42").status == 401)
        // The app is not configured: this is the gateway's mistake, and it logs no user out.
        #expect(try Self.auth(service, token, "?app_id=7").status == 403)
        #expect(try Self.auth(service, token, "?permissions=email").status == 403)
        #expect(try Self.auth(service, token, "?permissions=public_profile").status == 200)
        let fields = ["Content-Type: application/json", Self.key]
        #expect(try Self.exchange(service, Self.body(token)).status == 400)
        // The service knows its own keys, whatever `typ` says, and asks the issuer for none of them.
        let fetches = service.source.fetchCount
        for (path, own, more) in [
            ("/verify", token, #","nonce":"n-1""#), ("/verify", id, #","nonce":"n-1""#), ("/uninstall", token, ""),
        ] {
            let answer = try service.answer("POST", path, fields: fields, body: #"{"id_token":"\#(own)"\#(more)}"#)
            #expect(answer.status == 401 && answer.code == "not_an_id_token", "\(answer.text)")
            #expect(answer.detail.contains("this service issued"), "\(answer.detail)")
        }
        #expect(service.source.fetchCount == fetches)
    }

    @Test("Discovery and the key set are public and may be cached for five minutes")
    func discovery() async throws {
        let service = try await Self.service()
        for path in ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"] {
            let answer = try service.answer("GET", path, fields: [])
            #expect(answer.status == 200 && answer["cache-control"] == "public, max-age=300")
            #expect(answer.text.contains(#""issuer":"https://login.example.com""#))
            #expect(answer.text.contains(#""jwks_uri":"https://login.example.com/.well-known/jwks.json""#))
            #expect(answer.text.contains(#""authorization_endpoint":"https://login.example.com/authorize""#))
        }
        let keys = try service.answer("GET", "/.well-known/jwks.json", fields: [])
        #expect(keys.text == (try OwnTokens.settings()).issuer.keys.jwkSet)
        let plain = try await InProcessService()
        #expect(try plain.answer("GET", "/.well-known/jwks.json", fields: []).status == 404)
        #expect(try plain.answer("POST", "/token", fields: [Self.form], body: "").status == 404)
    }

    @Test("An issuer with a path serves its documents at both places, and its endpoints below the path")
    func issuerPath() async throws {
        let service = try await Self.service(tokens: try OwnTokens.settings(issuer: "\(OwnTokens.issuer)/a/b"))
        let token = try Self.issued(service)
        for (path, status) in [
            ("/a/b/.well-known/openid-configuration", 200), ("/.well-known/openid-configuration/a/b", 200),
            ("/.well-known/oauth-authorization-server/a/b", 200), ("/a/b/.well-known/jwks.json", 200),
            ("/.well-known/openid-configuration", 200), ("/a/.well-known/openid-configuration", 404), ("/a/b", 404),
            ("/a/b/livez", 404), ("/token/a/b", 404), ("/a/b/a/b/.well-known/jwks.json", 404),
        ] {
            let answer = try service.answer("GET", path, fields: [])
            #expect(answer.status == status, "\(path): \(answer.text)")
            let isMetadata = status == 200 && !path.hasSuffix("jwks.json")
            #expect(answer.text.contains(#""issuer":"\#(OwnTokens.issuer)/a/b","#) == isMetadata, "\(path)")
        }
        let body = Self.body(try Tokens.mint(Tokens.claims()))
        #expect(try service.answer("POST", "/a/b/token", fields: [Self.form, Self.key], body: body).status == 200)
        let form = [Self.form, Self.key]
        let active = try service.answer("POST", "/a/b/introspect", fields: form, body: "token=\(token)")
        #expect(active.text.hasPrefix(#"{"active":true"#), "\(active.text)")
    }

    @Test("A former signing key still verifies; a removed key does not")
    func rotation() async throws {
        let service = try await Self.service(keys: [OwnTokens.rsa])
        let token = try Self.issued(service)
        func reload(_ keys: [SigningKey?]) throws {
            let (old, tokens) = (service.core.settings.value, try OwnTokens.settings(keys))
            service.core.settings.publish(
                RuntimeSettings(verifier: old.verifier, clients: old.clients, gateway: old.gateway, tokens: tokens)
            )
        }
        try reload([OwnTokens.p256, OwnTokens.rsa])
        #expect(try Self.auth(service, token).status == 200)
        try reload([OwnTokens.p256])
        let answer = try Self.auth(service, token)
        #expect(answer.status == 401 && answer.text.contains("unknown_key"))
    }

    @Test("/introspect checks an own token's subject, and the token has no nonce")
    func introspected() async throws {
        let service = try await Self.service()
        let token = try Self.issued(service)
        for (more, isActive) in [("&subject=2954873201847263", true), ("&subject=1", false), ("&nonce=n-1", false)] {
            let answer = try service.introspect("token=\(token)\(more)")
            #expect(answer.status == 200 && answer.text.hasPrefix(#"{"active":\#(isActive)"#), "\(answer.text)")
        }
    }

    @Test("A changed token is refused at /auth, before and after the good one, and inactive at /introspect")
    func forged() async throws {
        let service = try await Self.service()
        let good = try Self.issued(service)
        let parts = good.split(separator: ".")
        let other = Self.text(parts[1]).replacing("2954873201847263", with: "2954873201847264")
        let payload = Base64URL.encode(Array(other.utf8))
        let signature = "\(parts[2].first == "A" ? "B" : "A")\(parts[2].dropFirst())"
        let forgeries = ["\(parts[0]).\(payload).\(parts[2])", "\(parts[0]).\(parts[1]).\(signature)"]
        for _ in 0..<2 {
            for forged in forgeries {
                let answer = try Self.auth(service, forged)
                #expect(answer.status == 401 && answer.code == "invalid_signature", "\(answer.text)")
                #expect(try service.introspect("token=\(forged)").text == #"{"active":false}"#)
            }
            #expect(try Self.auth(service, good).status == 200)
        }
    }
}
