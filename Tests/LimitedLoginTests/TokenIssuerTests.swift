import Testing

@testable import LimitedLogin

@Suite("Tokens of one's own: what is made, what is refused")
struct TokenIssuerTests {
    private static let login = TokenIssuer.Login(
        appID: "42",
        userID: "7",
        authenticatedAt: date(1_000),
        expiresAt: date(5_000),
        keyThumbprint: "thumb",
        claims: [.name: "Jane \"J\" Doe", .email: "jane@example.com", .picture: ""]
    )

    private static func date(_ seconds: Int64) -> NumericDate { NumericDate(secondsSince1970: seconds) ?? .beginning }

    private static func issuer(
        lifetime: Int = 600,
        claims: [TokenIssuer.Claim] = [.name, .email, .picture],
        key: SigningKey.Algorithm = .es256
    ) throws -> TokenIssuer {
        let policy = try TokenIssuerPolicy(
            issuer: "https://a.example",
            audiences: ["b", "c"],
            lifetimeSeconds: lifetime,
            claims: claims
        )
        return TokenIssuer(policy: policy, keys: try SigningKeySet([try SigningKey(generating: key)]))
    }

    private static func judge(_ issuer: TokenIssuer, _ token: String, app: String = "", now: Int64) throws -> OwnToken {
        let verifier = OwnTokenVerifier(issuer, verification: try VerificationPolicy(appIDs: ["42"]))
        return try verifier.judge(Array(token.utf8).span, appID: Array(app.utf8), isSigned: false, now: date(now))
    }

    @Test(
        "A token tells the login, and only the claims that were chosen",
        arguments: [SigningKey.Algorithm.rs256, .es256]
    )
    func content(algorithm: SigningKey.Algorithm) throws {
        let issuer = try Self.issuer(key: algorithm)
        let token = try issuer.token(for: Self.login, audience: "c", tokenID: "t", now: Self.date(2_000))
        #expect(token.lifetimeSeconds == 600)
        let payload = String(decoding: try Self.judge(issuer, token.value, now: 2_001).payload, as: UTF8.self)
        let expected =
            #"{"iss":"https://a.example","sub":"7","aud":"c","client_id":"42","iat":2000,"exp":2600,"auth_time":1000,"jti":"t","#
            + #""idp":"facebook","cnf":{"jkt":"thumb"},"name":"Jane \"J\" Doe","email":"jane@example.com","email_verified":false}"#
        #expect(payload == expected)
    }

    @Test("A token ends with the login's own at the latest, and none is made of a login that has ended")
    func ends() throws {
        let issuer = try Self.issuer(lifetime: 3_600)
        #expect(try issuer.token(for: Self.login, tokenID: "t", now: Self.date(4_000)).lifetimeSeconds == 1_000)
        for now: Int64 in [5_000, 5_001] {
            #expect(throws: TokenIssuer.Failure.loginEnded) {
                try issuer.token(for: Self.login, tokenID: "t", now: Self.date(now))
            }
        }
        #expect(throws: TokenIssuer.Failure.unknownAudience) {
            try issuer.token(for: Self.login, audience: "d", tokenID: "t", now: Self.date(2_000))
        }
    }

    @Test("A token is refused when it is over, ahead, for another app, an id token, or under another issuer's key")
    func refused() throws {
        let (issuer, other) = (try Self.issuer(), try Self.issuer())
        let token = try issuer.token(for: Self.login, tokenID: "t", now: Self.date(2_000)).value
        func code(_ issuer: TokenIssuer, _ token: String, now: Int64) -> TokenRejection.Code? {
            do { _ = try Self.judge(issuer, token, now: now) } catch { return (error as? Refusal)?.code }
            return nil
        }
        #expect(code(issuer, token, now: 2_599) == nil)
        #expect(code(issuer, token, now: 2_600) == .expired)
        #expect(code(issuer, token, now: 1_900) == .notYetValid)
        #expect(throws: Refusal.unknownApp) { try Self.judge(issuer, token, app: "43", now: 2_001) }
        #expect(code(other, token, now: 2_001) == .unknownKey)
        let id = try issuer.token(for: Self.login, kind: .idToken, tokenID: "t", now: Self.date(2_000)).value
        #expect(code(issuer, id, now: 2_001) == .notAnIDToken)
        var foreign = Self.login
        foreign.appID = "43"
        let elsewhere = try issuer.token(for: foreign, tokenID: "t", now: Self.date(2_000)).value
        #expect(code(issuer, elsewhere, now: 2_001) == .invalidAudience)
    }

    @Test("What the policy may not be is refused")
    func policies() {
        for issuer in [
            "", "http://a.example", "https://", "https://a.example?x", "https://a.example#x", "https://u@a.example",
            "https://a.example/", "https://a b", "https:///x", "http://localhost.example.com", "http://localhost",
        ] {
            #expect(throws: InvalidConfiguration.self, "\(issuer)") { try TokenIssuerPolicy(issuer: issuer) }
        }
        for extra in [
            #"{"sub":"1"}"#, "[]", "{", #"{"a":1,"a":2}"#, #"{"email":"x"}"#, "\"\"",
            #"{"a":"\#(String(repeating: "x", count: 1_024))"}"#,
        ] {
            #expect(throws: InvalidConfiguration.self, "\(extra)") {
                try TokenIssuerPolicy(issuer: "https://a.example", extraClaims: extra)
            }
        }
        for seconds in [0, 59, 3_601] {
            #expect(throws: InvalidConfiguration.self) {
                try TokenIssuerPolicy(issuer: "https://a.example", lifetimeSeconds: seconds)
            }
        }
    }

    @Test("Keys are read from PEM again, each once, and no other kind")
    func keys() throws {
        let (rsa, p256) = (try SigningKey(generating: .rs256), try SigningKey(generating: .es256))
        let text = try rsa.privatePEM() + "words between\n" + p256.privatePEM()
        let set = try SigningKeySet(pem: text)
        #expect(set.keys.map(\.keyID) == [rsa.keyID, p256.keyID])
        #expect(set.keys.map(\.algorithm) == [.rs256, .es256])
        #expect(set.jsonWebKeySet.contains(#""kty":"RSA","use":"sig","alg":"RS256","kid":"\#(rsa.keyID)","n":"#))
        #expect(!set.jsonWebKeySet.contains(#""d""#))
        var dumped = "\(set)"
        dump(set, to: &dumped)
        for line in try (rsa.privatePEM() + p256.privatePEM()).split(separator: "\n") where !line.hasPrefix("-----") {
            #expect(!dumped.contains(line))
        }
        // A first key that lost its end: the second one must not sign in its place.
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
}
