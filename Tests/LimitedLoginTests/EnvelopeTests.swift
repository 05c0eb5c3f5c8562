import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@Suite("The envelope of a token")
struct EnvelopeTests {
    @Test(
        "Text that is no JWS is refused with its own reason",
        arguments: [
            ("", .emptyToken), ("abc", .wrongPartCount(1)),
            ("a.b", .wrongPartCount(2)), ("a.b.c.d", .wrongPartCount(4)), ("a.b.c.d.e", .encryptedToken),
            ("{\"payload\":\"\"}", .jsonSerialization),
            ("EAABwzLixnjYBO0ZCZAmZBzZCdIZD", .accessTokenAsIDToken),
            ("1234567890123456|abcdefghij-_KLM", .accessTokenAsIDToken),
            ("eyJhbGciOiJSUzI1NiIsInR5cCI6", .wrongPartCount(1)),
            ("eyJh.eyJh.eyJh eyJh.eyJh.eyJh", .wrongPartCount(5)),
            ("not a token at all, is it now", .wrongPartCount(1)),
            ("...", .wrongPartCount(4)), (".a.b", .emptyPart(.header)), ("..", .emptyPart(.header)),
            ("e30.e30.", .emptyPart(.signature)),
            ("e30=.e30.AA", .invalidBase64URL(.header)), ("e30.e3+.AA", .invalidBase64URL(.payload)),
            ("e30.e30.A", .invalidBase64URL(.signature)), ("e30.e30.AB", .invalidBase64URL(.signature)),
            ("W10.e30.AA", .unreadable(.header, reason: nil)), ("bnVsbA.e30.AA", .unreadable(.header, reason: nil)),
            ("e30 .e30.AA", .invalidBase64URL(.header)), ("e30.e30.AA\n", .invalidBase64URL(.signature)),
        ] as [(String, Rejection)]
    )
    func shapes(token: String, rejection: Rejection) throws {
        #expect(try Login.rejection(of: token) == rejection)
    }

    @Test("A token of 32 KiB is accepted; one byte more is too long, not malformed")
    func size() throws {
        let good = try #require(try StandInKeys.current.mint(ofLength: 32_768, Login.claims))
        #expect(try Login.verify(good).profile.userID == Login.userID)
        let long = try #require(try StandInKeys.current.mint(ofLength: 32_769, Login.claims))
        let refusal = try Login.rejection(of: long)
        #expect(refusal == Rejection(.tokenTooLong) && refusal?.detail.contains("32,768 bytes") == true)
        // A million full stops are refused for their length; 32,768 are counted.
        let dots = String(repeating: ".", count: 1_000_000)
        #expect(try Login.rejection(of: dots) == Rejection(.tokenTooLong))
        #expect(try Login.rejection(of: String(dots.prefix(32_768))) == .wrongPartCount(32_769))
    }

    @Test("A person may have many friends, and the Profile lists each", arguments: [0, 1, 257, 258, 1_000, 1_100])
    func friends(count: Int) throws {
        var claims = Login.fullClaims
        claims.friendIDs = (0..<count).map { String(10_158_273_645_546_372 + $0) }
        let token = try StandInKeys.current.mint(claims)
        let profile = try Login.verify(token).profile
        #expect(profile.friendIDs == claims.friendIDs)
        // These claims follow the friends in the payload.
        #expect(profile.hometown?.name == "Martinez, California" && profile.gender == "female")
        #expect(profile.linkURL == claims.link)
    }

    @Test(
        "A header that is not one strict JSON object is refused",
        arguments: [
            "", "{", "{}{}", "{\"alg\":\"RS256\",\"x\":\"" + String(repeating: "x", count: 6_144) + "\"}",
            "{\"alg\":\"RS256\",}", "\u{FEFF}{\"alg\":\"RS256\"}", "{\"alg\":\"RS256\"}\u{0}",
        ]
    )
    func headers(header: String) throws {
        let rejection = try Login.rejection(of: Login.token(header: header))
        #expect(rejection?.code == .malformedToken)
        #expect(rejection?.check == (header.isEmpty ? .serialization : .header))
    }

    @Test(
        "Only the algorithm RS256 is accepted, in this spelling",
        arguments: [
            "\"none\"", "\"None\"", "\"NONE\"", "\"nOnE\"", "\"HS256\"", "\"RS384\"", "\"RS512\"", "\"PS256\"",
            "\"ES256\"", "\"EdDSA\"", "\"rs256\"", "\"RS256 \"", "\" RS256\"", "\"RS2567\"", "\"RS25\"", "\"\"",
            "\"RS256\\u0000\"", "null", "256", "[\"RS256\"]", "{\"alg\":\"RS256\"}", "true",
        ]
    )
    func algorithms(algorithm: String) throws {
        let header = "{\"alg\":\(algorithm),\"typ\":\"JWT\",\"kid\":\"\(StandInKeys.current.keyID)\"}"
        #expect(try Login.rejection(of: Login.token(header: header))?.code == .unsupportedAlgorithm)
    }

    @Test("A header without alg is refused, and an escaped one is read")
    func algorithmSpelling() throws {
        let kid = StandInKeys.current.keyID
        #expect(try Login.rejection(of: Login.token(header: "{\"kid\":\"\(kid)\"}")) == .unsupportedAlgorithm(nil))
        let escaped = try Login.token(header: #"{"\u0061lg":"RS\u0032\u00356","kid":"\#(kid)"}"#)
        #expect(try Login.rejection(of: escaped) == nil)
    }

    @Test(
        "A header with crit, b64, another type, encryption or a repeated name is refused",
        arguments: [
            ("\"crit\":[\"x\"],\"x\":1", .unsupportedCriticalHeader), ("\"crit\":[]", .unsupportedCriticalHeader),
            ("\"crit\":\"exp\"", .unsupportedCriticalHeader), ("\"crit\":[1]", .unsupportedCriticalHeader),
            ("\"crit\":[\"alg\"]", .unsupportedCriticalHeader), ("\"crit\":null", .unsupportedCriticalHeader),
            ("\"crit\":[\"b64\"],\"b64\":false", .unsupportedCriticalHeader),
            ("\"crit\":[\"x\",\"x\"],\"x\":1", .unsupportedCriticalHeader),
            ("\"b64\":false", .unsupportedCriticalHeader), ("\"b64\":true", .unsupportedCriticalHeader),
            ("\"typ\":\"at+jwt\"", .notAnIDToken), ("\"typ\":\"logout+jwt\"", .notAnIDToken),
            ("\"typ\":\"dpop+jwt\"", .notAnIDToken), ("\"typ\":\"secevent+jwt\"", .notAnIDToken),
            ("\"typ\":\"jwt\"", .notAnIDToken), ("\"typ\":\"\"", .notAnIDToken), ("\"typ\":1", .notAnIDToken),
            ("\"typ\":null", .notAnIDToken), ("\"typ\":\"JWT2\"", .notAnIDToken), ("\"cty\":\"JWT\"", .notAnIDToken),
            ("\"zip\":\"DEF\"", .notAnIDToken), ("\"enc\":\"A128GCM\"", .notAnIDToken), ("\"p2c\":1", .notAnIDToken),
            ("\"p2s\":\"a\"", .notAnIDToken), ("\"alg\":\"RS256\"", .malformedToken),
            ("\"alg\":\"none\"", .malformedToken), ("\"\\u0061lg\":\"none\"", .malformedToken),
            ("\"kid\":\"x\"", .malformedToken), ("\"x\":{\"a\":1,\"a\":1}", .malformedToken),
        ] as [(String, Rejection.Code)]
    )
    func extensions(member: String, code: Rejection.Code) throws {
        let header = "{\"alg\":\"RS256\",\"kid\":\"\(StandInKeys.current.keyID)\",\(member)}"
        #expect(try Login.rejection(of: Login.token(header: header))?.code == code)
    }

    @Test(
        "A key inside the token is never read",
        arguments: [
            "\"jku\":\"http://127.0.0.1:1/keys\"", "\"x5u\":\"http://127.0.0.1:1/x\"", "\"x5c\":[\"MIIB\"]",
            "\"jwk\":{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}", "\"x5t\":\"abc\"", "\"jku\":[1,2]",
        ]
    )
    func embeddedKeys(member: String) throws {
        let header = "{\"alg\":\"RS256\",\"kid\":\"\(StandInKeys.current.keyID)\",\(member)}"
        // The token is good with the published key's signature, and refused with another key's.
        #expect(try Login.rejection(of: Login.token(header: header)) == nil)
        let forged = try StandInKeys.stranger.mint(header: Array(header.utf8), payload: Login.claims.payload)
        #expect(try Login.rejection(of: forged) == Rejection(.invalidSignature))
    }

    @Test(
        "The key ID must be a string that is not empty",
        arguments: ["", ",\"kid\":\"\"", ",\"kid\":1", ",\"kid\":null", ",\"kid\":[\"a\"]"]
    )
    func keyIDs(member: String) throws {
        #expect(
            try Login.rejection(of: Login.token(header: "{\"alg\":\"RS256\"\(member)}")) == Rejection(.missingKeyID)
        )
    }

    @Test(
        "A hostile key ID is only an unknown name",
        arguments: [
            "../../../../../dev/null", "/dev/null", "x' UNION SELECT 'key", "key.pem|sleep 10", "\\u0000", "\\n",
            "http://evil/keys", "*", "%00", "é",
        ]
    )
    func hostileKeyIDs(keyID: String) throws {
        let header = "{\"alg\":\"RS256\",\"kid\":\"\(keyID)\"}"
        let rejection = try #require(try Login.rejection(of: Login.token(header: header)))
        #expect(rejection.code == .unknownKey && rejection.detail.utf8.allSatisfy { (0x20...0x7E).contains($0) })
    }

    @Test("The workspace keeps an unknown key ID for a refetch, unless it is longer than any key's")
    func unknownKey() throws {
        for (length, kept) in [(256, 256), (257, 0)] {
            var workspace = VerificationWorkspace()
            let header = "{\"alg\":\"RS256\",\"kid\":\"" + String(repeating: "k", count: length) + "\"}"
            let token = Array(try Login.token(header: header).utf8)
            let keys = VerificationKeys(StandInKeys.set)
            let rejection = Login.rejection {
                try Login.sharedVerifier.authenticate(token.span, keys: keys, workspace: &workspace)
            }
            #expect(rejection == .unknownKey(String(repeating: "k", count: 64).utf8))
            #expect(workspace.keyID.count == kept)
        }
    }

    @Test("A set without keys is an outage, not the token's fault")
    func noKeys() throws {
        let token = try StandInKeys.current.mint(Login.claims)
        #expect(try Login.rejection(of: token, keys: StandInKeys.makeSet([])) == .keysUnavailable)
    }

    @Test("Each published key verifies its own tokens, and no other's")
    func keyChoice() throws {
        #expect(try Login.rejection(of: StandInKeys.previous.mint(Login.claims)) == nil)
        let swapped = try StandInKeys.previous.mint(header: StandInKeys.current.header, payload: Login.claims.payload)
        #expect(try Login.rejection(of: swapped) == Rejection(.invalidSignature))
        #expect(try Login.rejection(of: StandInKeys.stranger.mint(Login.claims))?.code == .unknownKey)
        let token = try StandInKeys.previous.mint(Login.claims)
        #expect(try Login.rejection(of: token, keys: StandInKeys.makeSet([StandInKeys.current]))?.code == .unknownKey)
    }

    @Test("A JWS with an empty payload is no id token")
    func emptyPayload() throws {
        #expect(try Login.rejection(of: Login.token(payload: "")) == .emptyPart(.payload))
    }
}
