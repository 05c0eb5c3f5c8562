import LLBytes
import LLJOSE
import LLTestSupport
import Testing

@testable import LimitedLogin

@Suite("The issuer's own tokens")
struct TokenIssuerTests {
    private static let login = login()

    private static func login(app: String = "42", user: String = "7", at seconds: Int64 = 1_000) -> TokenIssuer.Login {
        TokenIssuer.Login(
            appID: app,
            userID: user,
            authenticatedAt: date(seconds),
            expiresAt: date(5_000),
            keyThumbprint: "thumb",
            claims: [.name: "Jane \"J\" Doe", .email: "jane@example.com", .picture: ""]
        )
    }

    private static func date(_ seconds: Int64) -> NumericDate { NumericDate(secondsSince1970: seconds) ?? .beginning }

    private static func issuer(_ keys: [SigningKey] = [], lifetime: Int = 600) throws -> TokenIssuer {
        let policy = try TokenIssuerPolicy(
            issuer: "https://a.example",
            audiences: ["b", "c"],
            lifetime: .seconds(lifetime),
            claims: [.name, .email, .picture]
        )
        let keys = keys.isEmpty ? [try SigningKey(generating: .es256)] : keys
        return TokenIssuer(policy: policy, keys: try SigningKeySet(keys))
    }

    private static func token(_ issuer: TokenIssuer, _ kind: TokenIssuer.Kind = .accessToken) throws -> String {
        try issuer.token(for: login, kind: kind, tokenID: "t", now: date(2_000)).value
    }

    private static func judge(_ issuer: TokenIssuer, _ token: String, app: String? = nil, now: Int64 = 2_001) throws
        -> OwnToken
    {
        let verifier = OwnTokenVerifier(issuer, verification: try VerificationPolicy(appIDs: ["42"]))
        let app = app.map { Array($0.utf8) }
        return try verifier.judge(token.utf8.span, appID: app, isSigned: false, now: date(now))
    }

    @Test(
        "A token describes the login, with only the configured claims",
        arguments: [SigningKey.Algorithm.rs256, .es256]
    )
    func content(algorithm: SigningKey.Algorithm) throws {
        let issuer = try Self.issuer([SigningKey(generating: algorithm)])
        let token = try issuer.token(for: Self.login, audience: "c", tokenID: "t", now: Self.date(2_000))
        #expect(token.lifetime == .seconds(600))
        let payload = String(decoding: try Self.judge(issuer, token.value).payload, as: UTF8.self)
        let expected =
            #"{"iss":"https://a.example","sub":"7","aud":"c","client_id":"42","iat":2000,"exp":2600,"auth_time":1000,"jti":"t","#
            + #""idp":"facebook","cnf":{"jkt":"thumb"},"name":"Jane \"J\" Doe","email":"jane@example.com","email_verified":false}"#
        #expect(payload == expected)
    }

    @Test("Eight tasks sign with one key at once", arguments: [SigningKey.Algorithm.rs256, .es256])
    func sharing(algorithm: SigningKey.Algorithm) async throws {
        let issuer = try Self.issuer([SigningKey(generating: algorithm)])
        await withTaskGroup(of: Int.self) { group in
            for task in 0..<8 {
                group.addTask {
                    (0..<40).count { round in
                        let name = "\(task)-\(round)"
                        guard let token = try? issuer.token(for: Self.login, tokenID: name, now: Self.date(2_000)),
                            let judged = try? Self.judge(issuer, token.value)
                        else { return false }
                        return JSONText.value(judged.payload.span, judged.claims[.tokenID] ?? 0..<0) == name
                    }
                }
            }
            for await good in group { #expect(good == 40) }
        }
    }

    @Test("A token expires no later than its login, and none is made for an expired login")
    func ends() throws {
        let issuer = try Self.issuer(lifetime: 3_600)
        #expect(try issuer.token(for: Self.login, tokenID: "t", now: Self.date(4_000)).lifetime == .seconds(1_000))
        for now: Int64 in [5_000, 5_001] {
            #expect(throws: Rejection(.expired, "The subject token has ended.")) {
                try issuer.token(for: Self.login, tokenID: "t", now: Self.date(now))
            }
        }
        #expect(throws: InvalidExpectation.self) {
            try issuer.token(for: Self.login, audience: "d", tokenID: "t", now: Self.date(2_000))
        }
    }

    @Test("No token is made for an empty ID or for a login in the future")
    func absurd() throws {
        let issuer = try Self.issuer()
        let cases: [(TokenIssuer.Login, String, isGood: Bool)] = [
            (Self.login(), "t", true), (Self.login(app: ""), "t", false), (Self.login(user: ""), "t", false),
            (Self.login(), "", false), (Self.login(at: 2_600), "t", true), (Self.login(at: 2_601), "t", false),
            (Self.login(at: 9_000_000_000), "t", false),
        ]
        for (login, tokenID, isGood) in cases {
            let make = { try issuer.token(for: login, tokenID: tokenID, now: Self.date(2_000)) }
            if isGood { _ = try make() } else { #expect(throws: InvalidExpectation.self) { try make() } }
        }
    }

    @Test("The key binding of a verified login is carried over, and one that cannot be read makes no token")
    func binding() throws {
        let thumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
        let bound = try TokenIssuer.Login(Login.verify(Login.token("cnf", #"{"jkt":"\#(thumbprint)"}"#)))
        #expect(bound.keyThumbprint == thumbprint)
        #expect(try TokenIssuer.Login(Login.verify(Login.token("cnf", nil))).keyThumbprint == nil)
        for json in ["{}", "null", #""x""#, #"{"jkt":5}"#, #"{"jkt":""}"#, #"{"x5t#S256":"abc"}"#] {
            let verified = try Login.verify(Login.token("cnf", json))
            #expect(throws: InvalidExpectation.self, "\(json)") { try TokenIssuer.Login(verified) }
        }
    }

    @Test("The public verifier of own tokens reads one for its audience, and refuses any other")
    func verification() throws {
        let issuer = try Self.issuer()
        let token = try Self.token(issuer)
        let policy = try VerificationPolicy(appIDs: ["42"])
        let verified = try issuer.verify(token, audience: "b", policy: policy, now: Self.date(2_001))
        #expect(verified.userID == "7" && verified.appID == "42" && verified.tokenID == "t")
        #expect(verified.keyThumbprint == "thumb" && verified.authenticatedAt == Self.date(1_000))
        #expect(verified.expiresAt == Self.date(2_600) && verified.claimsJSON.contains("\"idp\":\"facebook\""))
        #expect(throws: Rejection.otherAudience("b")) {
            try issuer.verify(token, audience: "c", policy: policy, now: Self.date(2_001))
        }
    }

    @Test("A token is refused if expired, ahead, for another app, an id token, or under another issuer's key")
    func refused() throws {
        let (issuer, other) = (try Self.issuer(), try Self.issuer())
        let (token, id) = (try Self.token(issuer), try Self.token(issuer, .idToken))
        let elsewhere = try issuer.token(for: Self.login(app: "43"), tokenID: "t", now: Self.date(2_000)).value
        let header = #"{"alg":"RS256","typ":"at+jwt","kid":"\#(issuer.keys.keys[0].keyID)"}"#
        let confused = try Self.token(header, Self.payload, ("own", issuer.keys.keys[0].key.signature))
        let end = Self.date(2_600)
        let cases: [(Rejection?, () throws -> OwnToken)] = [
            (nil, { try Self.judge(issuer, token, now: 2_599) }),
            (.expired(at: end, now: end), { try Self.judge(issuer, token, now: 2_600) }),
            (
                .notYetValid(.issuedAt, at: Self.date(2_000), now: Self.date(1_900)),
                { try Self.judge(issuer, token, now: 1_900) }
            ),
            (Rejection(.unknownApp), { try Self.judge(issuer, token, app: "43") }),
            (.unknownKey(issuer.keys.keys[0].keyID.utf8), { try Self.judge(other, token) }),
            (.ownIDToken, { try Self.judge(issuer, id) }),
            (.otherAudience("43"), { try Self.judge(issuer, elsewhere) }),
            (.algorithmOfAnotherKey, { try Self.judge(issuer, confused) }),
            (.emptyToken, { try Self.judge(issuer, "") }), (.wrongPartCount(2), { try Self.judge(issuer, "a.b") }),
        ]
        for (refusal, judge) in cases { #expect(Login.rejection(judge) == refusal) }
    }

    @Test("A bad issuer, extra claim or lifetime is refused")
    func policies() {
        for issuer in [
            "", "http://a.example", "https://", "https://a.example?x", "https://a.example#x", "https://u@a.example",
            "https://a.example/", "https://a b", "https:///x", "http://localhost.example.com", "http://localhost",
            "https://:443", "https://a.example:", "https://a.example:0", "https://a.example:65536/x",
            "https://a.example:x", "https://a.example:+1",
        ] {
            #expect(throws: InvalidConfiguration.self, "\(issuer)") { try TokenIssuerPolicy(issuer: issuer) }
        }
        for issuer in ["https://a.example:65535/x:y", "https://[::1]", "https://[::1]:8443/x"] {
            #expect(throws: Never.self, "\(issuer)") { try TokenIssuerPolicy(issuer: issuer) }
        }
        for extra in [
            #"{"sub":"1"}"#, "[]", "{", #"{"a":1,"a":2}"#, #"{"email":"x"}"#, "\"\"", #"{"azp":"x"}"#, #"{"cnf":{}}"#,
            #"{"client_id":"x"}"#, #"{"\u0061zp":"x"}"#, #"{"a":"\#(String(repeating: "x", count: 1_024))"}"#,
        ] {
            #expect(throws: InvalidConfiguration.self, "\(extra)") {
                try TokenIssuerPolicy(issuer: "https://a.example", extraClaims: extra)
            }
        }
        for seconds in [0, 59, 3_601] {
            #expect(throws: InvalidConfiguration.self) {
                try TokenIssuerPolicy(issuer: "https://a.example", lifetime: .seconds(seconds))
            }
        }
    }

    @Test("Keys are read back from PEM; a repeated key and any other kind are refused")
    func keys() throws {
        let (rsa, p256) = (try SigningKey(generating: .rs256), try SigningKey(generating: .es256))
        let text = try rsa.privatePEM() + "words between\n" + p256.privatePEM()
        let set = try SigningKeySet(pem: text)
        #expect(set.keys.map(\.keyID) == [rsa.keyID, p256.keyID])
        #expect(set.keys.map(\.algorithm) == [.rs256, .es256])
        #expect(set.jwkSet.contains(#""kty":"RSA","use":"sig","alg":"RS256","kid":"\#(rsa.keyID)","n":"#))
        #expect(!set.jwkSet.contains(#""d""#))
        var dumped = "\(set)"
        dump(set, to: &dumped)
        for line in try (rsa.privatePEM() + p256.privatePEM()).split(separator: "\n") where !line.hasPrefix("-----") {
            #expect(!dumped.contains(line))
        }
        // The first key lost its end; the second one must not replace it as the signing key.
        let cut = try rsa.privatePEM().split(separator: "\n").dropLast().joined(separator: "\n") + "\n"
        let bad = [
            "", "no key", try cut + p256.privatePEM(), try rsa.publicPEM(), text + (try p256.privatePEM()),
            String(text.dropLast(40)),
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        ]
        for pem in bad {
            #expect(throws: InvalidConfiguration.self, "\(pem.prefix(40))") { try SigningKeySet(pem: pem) }
        }
    }

    private typealias Signer = (name: String, sign: ([UInt8]) throws -> [UInt8])

    private static func mac(under secret: String) -> Signer {
        (
            "HMAC under \(secret.prefix(30))",
            { input in
                let code = try HMACSHA256.authenticationCode(for: input.span, key: Array(secret.utf8).span)
                return code.bytes.indices.map { code.bytes[$0] }
            }
        )
    }

    private static func token(_ header: String, _ payload: String, _ signer: Signer) throws -> String {
        let input = Base64URL.encode(header.utf8) + "." + Base64URL.encode(payload.utf8)
        return input + "." + Base64URL.encode(try signer.sign(Array(input.utf8)))
    }

    private static func isAccepted(_ issuer: TokenIssuer, _ token: String) -> Bool {
        (try? judge(issuer, token)) != nil
    }

    private static let payload =
        #"{"iss":"https://a.example","sub":"7","aud":"b","client_id":"42","iat":2000,"exp":2600,"auth_time":1000,"jti":"t"}"#

    @Test("The key decides the algorithm: for each key one pair of header and signer is accepted")
    func algorithmConfusion() throws {
        let (rsa, p256) = (try SigningKey(generating: .rs256), try SigningKey(generating: .es256))
        let stranger = try SigningKey(generating: .rs256)
        let issuer = try Self.issuer([rsa, p256])
        var signers: [Signer] = [
            ("RSA", rsa.key.signature), ("P-256", p256.key.signature), ("stranger", stranger.key.signature),
            ("nothing", { _ in [] }),
        ]
        for key in [rsa, p256] {
            let pem = try key.publicPEM()
            signers += [pem, String(pem.dropLast()), key.jsonWebKey, key.keyID].map { Self.mac(under: $0) }
        }
        signers += ["", issuer.keys.jwkSet].map { Self.mac(under: $0) }
        let algorithms = [
            "RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "ES512", "ES256K", "EdDSA", "HS256", "HS384", "none",
            "None", "NONE", "nOnE", "rs256", "RS256 ", "",
        ]
        for (name, key) in [("RSA", rsa), ("P-256", p256)] {
            for algorithm in algorithms {
                for signer in signers {
                    let header = #"{"alg":"\#(algorithm)","typ":"at+jwt","kid":"\#(key.keyID)"}"#
                    let isGood = algorithm == key.algorithm.rawValue && signer.name == name
                    let isAccepted = Self.isAccepted(issuer, try Self.token(header, Self.payload, signer))
                    #expect(isAccepted == isGood, "\(name), \(algorithm), \(signer.name)")
                }
            }
        }
    }

    @Test("No mutation of a token is accepted", arguments: [SigningKey.Algorithm.rs256, .es256])
    func mutations(algorithm: SigningKey.Algorithm) throws {
        let issuer = try Self.issuer([SigningKey(generating: algorithm)])
        let token = Array(try Self.token(issuer).utf8)
        let verifier = OwnTokenVerifier(issuer, verification: try VerificationPolicy(appIDs: ["42"]))
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.".utf8)
        var random = RepeatableGenerator(seed: 7)
        var accepted = 0
        for _ in 0..<5_000 {
            var mutated = token
            let place = Int.random(in: token.indices, using: &random)
            let digit = digits[Int.random(in: digits.indices, using: &random)]
            switch Int.random(in: 0..<3, using: &random) {
            case 0: mutated[place] = digit
            case 1: mutated.remove(at: place)
            default: mutated.insert(digit, at: place)
            }
            let judged = try? verifier.judge(mutated.span, appID: nil, isSigned: false, now: Self.date(2_001))
            if judged != nil, mutated != token { accepted += 1 }
        }
        #expect(accepted == 0)
        #expect(Self.isAccepted(issuer, String(decoding: token, as: UTF8.self)))
    }

    @Test("A wrong header or payload is refused even with the issuer's own signature")
    func forgeries() throws {
        let (key, stranger) = (try SigningKey(generating: .es256), try SigningKey(generating: .es256))
        let issuer = try Self.issuer([key])
        let own: Signer = ("own", key.key.signature)
        let names = #""alg":"ES256","typ":"at+jwt","kid":"\#(key.keyID)""#
        #expect(Self.isAccepted(issuer, try Self.token("{\(names)}", Self.payload, own)))
        // A key inside the token is not the issuer's.
        for more in [#""jwk":\#(stranger.jsonWebKey)"#, #""jku":"https://b.example""#, #""x5u":"https://b.example""#] {
            let token = try Self.token("{\(names),\(more)}", Self.payload, ("stranger", stranger.key.signature))
            #expect(!Self.isAccepted(issuer, token), "\(more)")
        }
        let kid = #""kid":"\#(key.keyID)""#
        let headers = [
            #"{"typ":"at+jwt",\#(kid)}"#, #"{"alg":["ES256"],"typ":"at+jwt",\#(kid)}"#,
            #"{"alg":7,"typ":"at+jwt",\#(kid)}"#, "{\(names),\"alg\":\"ES256\"}", #"{"alg":"ES256","typ":"at+jwt"}"#,
            #"{"alg":"ES256","typ":"at+jwt","kid":""}"#, #"{"alg":"ES256","typ":"at+jwt","kid":7}"#,
            #"{"alg":"ES256","typ":"at+jwt","kid":"../\#(key.keyID)"}"#,
            #"{"alg":"ES256","typ":"at+jwt","kid":"\#(stranger.keyID)"}"#, #"{"alg":"ES256",\#(kid)}"#,
            #"{"alg":"ES256","typ":"dpop+jwt",\#(kid)}"#, #"{"alg":"ES256","typ":"AT+JWT",\#(kid)}"#,
            #"{"alg":"ES256","typ":7,\#(kid)}"#, #"{\#(names),"crit":["exp"]}"#, #"{\#(names),"b64":false}"#,
            #"{\#(names),"cty":"JWT"}"#, #"{\#(names),"zip":"DEF"}"#, #"{\#(names),"enc":"A128GCM"}"#,
            "[\(names)]", "", "{\(names)", "null",
        ]
        for header in headers {
            #expect(!Self.isAccepted(issuer, try Self.token(header, Self.payload, own)), "\(header)")
        }
        let changes = [
            (#""exp":2600"#, #""exp":2001"#), (#""exp":2600"#, #""exp":"2600""#), (#""exp":2600,"#, ""),
            (#""exp":2600"#, #""exp":-1"#), (#""exp":2600"#, #""exp":null"#),
            (#""exp":2600"#, #""exp":2600,"exp":9999"#), (#""jti""#, #""nbf":"2000","jti""#),
            (#""jti""#, #""nbf":2062,"jti""#),
            (#""jti""#, #""nbf":null,"jti""#), (#""jti""#, #""nbf":-1,"jti""#), (#""iat":2000"#, #""iat":2100"#),
            (#""iat":2000,"#, ""), (#""iat":2000"#, #""iat":"2000""#),
            (#""aud":"b""#, #""aud":"d""#), (#""aud":"b""#, #""aud":["b"]"#), (#""aud":"b","#, ""),
            (#""aud":"b""#, #""aud":"""#), (#""aud":"b""#, #""aud":"B""#), (#""aud":"b""#, #""aud":"42""#),
            ("https://a.example", "https://a.example/"), ("https://a.example", "https://A.example"),
            ("https://a.example", "https://www.facebook.com"), (#""iss":"https://a.example","#, ""),
            (#""sub":"7","#, ""), (#""sub":"7""#, #""sub":"""#), (#""sub":"7""#, #""sub":7"#),
            (#""sub":"7""#, #""sub":"7","sub":"8""#), (#""client_id":"42","#, ""),
            (#""client_id":"42""#, #""azp":"42""#),
            (#""client_id":"42""#, #""client_id":"43""#), (#""client_id":"42""#, #""client_id":42"#),
            (#""client_id":"42""#, #""client_id":["42"]"#), (#""auth_time":1000,"#, ""),
            (#""auth_time":1000"#, #""auth_time":"1000""#), (#","jti":"t""#, ""), (#""jti":"t""#, #""jti":"""#),
            ("}", ""), (Self.payload, "[]"), (Self.payload, ""), (Self.payload, "{}"),
        ]
        for (old, new) in changes {
            let payload = Self.payload.replacing(old, with: new)
            #expect(payload != Self.payload)
            #expect(!Self.isAccepted(issuer, try Self.token("{\(names)}", payload, own)), "\(payload)")
        }
    }
}
