import FoundationEssentials
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@Suite("The claims of a token")
struct ClaimTests {
    @Test(
        "A payload that is not one strict JSON object is refused",
        arguments: [
            "[]", "null", "\"x\"", "{", "{}x", "{\"a\":1,\"a\":1}", "{\"iss\":\"\\uD800\"}", "\u{FEFF}{}",
            "{\"x\":1e400}",
        ]
    )
    func payloads(payload: String) throws {
        let rejection = try Login.rejection(of: Login.token(payload: payload))
        #expect(rejection?.code == .malformedToken && rejection?.check == .payload)
    }

    @Test(
        "A required claim that is missing is named",
        arguments: [
            ("iss", ClaimName.issuer), ("aud", .audience), ("exp", .expiration), ("iat", .issuedAt),
            ("sub", .subject), ("jti", .tokenID), ("nonce", .nonce),
        ]
    )
    func missing(claim: String, name: ClaimName) throws {
        let rejection = try Login.rejection(of: Login.token(claim, nil))
        #expect(rejection == .missingClaim(name) && rejection?.claim == claim)
    }

    @Test(
        "A required claim of the wrong type is malformed, never absent",
        arguments: ["iss", "aud", "exp", "iat", "sub", "jti", "nonce", "nbf", "azp", "at_hash"],
        ["null", "true", "false", "{}", "[[]]", "[1]", "[null]", "{\"a\":1}"]
    )
    func wrongTypes(claim: String, json: String) throws {
        try Login.expectMalformed(claim, json)
    }

    @Test(
        "The issuer is one of the configured ones, byte for byte",
        arguments: [
            "https://www.facebook.com/", "https://www.facebook.co", "https://www.facebook.comm",
            "http://www.facebook.com", "https://WWW.facebook.com", "www.facebook.com", "https://limited.facebook.com",
            "https://facebook.com.evil", " https://www.facebook.com", "https://www.facebook.com\\u0000", "h",
            "https://",
        ]
    )
    func issuers(issuer: String) throws {
        let rejection = try Login.rejection(of: Login.token("iss", "\"\(issuer)\""))
        #expect(rejection?.code == .invalidIssuer && rejection?.claim == "iss")
    }

    @Test("Every proper part of an issuer is refused (CVE-2024-53861)")
    func partsOfIssuers() throws {
        let issuer = "https://www.facebook.com"
        for count in 1..<issuer.count {
            for part in [issuer.prefix(count), issuer.suffix(count)] where part != "https://facebook.com" {
                #expect(try Login.rejection(of: Login.token("iss", "\"\(part)\""))?.code == .invalidIssuer)
            }
        }
        #expect(try Login.rejection(of: Login.token("iss", "\"\"")) == .malformedClaim(.issuer, .empty))
    }

    @Test("Both of Facebook's issuers are accepted, however they are escaped")
    func acceptedIssuers() throws {
        #expect(try Login.rejection(of: Login.token("iss", "\"https:\\/\\/www.facebook.com\"")) == nil)
        #expect(try Login.rejection(of: Login.token("iss", "\"https://facebook.com\"")) == nil)
        #expect(try Login.rejection(of: Login.token("iss", "\"\\u0068ttps://www.facebook.com\"")) == nil)
    }

    @Test(
        "The audience is one configured app and no other (CVE-2026-30863, CVE-2020-26160, CVE-2022-39231)",
        arguments: [
            ("\"123456789012345\"", .invalidAudience), ("\"12345678901234567\"", .invalidAudience),
            ("\"1234567890123456 \"", .invalidAudience), ("\"2\"", .invalidAudience), ("\"4\"", .invalidAudience),
            ("\"42,77777\"", .invalidAudience), ("[\"9\"]", .invalidAudience),
            ("[\"1234567890123456\",\"9\"]", .invalidAudience), ("[\"42\",\"77777\"]", .invalidAudience),
            ("[\"1234567890123456\",1]", .invalidAudience), ("\"\"", .malformedClaim), ("[]", .malformedClaim),
            ("[\"\"]", .malformedClaim), ("[1234567890123456]", .malformedClaim), ("1234567890123456", .malformedClaim),
            ("[[\"1234567890123456\"]]", .malformedClaim), ("{\"1234567890123456\":1}", .malformedClaim),
        ] as [(String, Rejection.Code)]
    )
    func audiences(json: String, code: Rejection.Code) throws {
        let rejection = try Login.rejection(of: Login.token("aud", json))
        #expect(rejection?.code == code && rejection?.claim == "aud")
    }

    @Test("An audience may be an array of one, and spelt with escapes")
    func acceptedAudiences() throws {
        let list = try Login.verify(Login.token("aud", "[\"\(Login.appID)\"]"))
        #expect(list.authenticationToken.audience == Login.appID)
        let escaped = try Login.token("aud", "\"\\u00342\"")
        #expect(try Login.verify(escaped).authenticationToken.audience == "42")
        #expect(try Login.rejection(of: escaped, appID: "42") == nil)
        #expect(try Login.rejection(of: escaped, appID: Login.appID) == .otherAudience("42"))
    }

    @Test("A caller may narrow the apps to one")
    func narrowing() throws {
        let token = try StandInKeys.current.mint(Login.claims)
        #expect(try Login.rejection(of: token, appID: Login.appID) == nil)
        #expect(try Login.rejection(of: token, appID: "42") == .otherAudience(Login.appID))
        #expect(try Login.rejection(of: token, appID: "43") == Rejection(.unknownApp))
        #expect(try Login.rejection(of: token, appID: "") == Rejection(.unknownApp))
    }

    @Test("The authorized party, if present, is the audience")
    func authorizedParty() throws {
        #expect(try Login.rejection(of: Login.token("azp", "\"\(Login.appID)\"")) == nil)
        #expect(try Login.rejection(of: Login.token("azp", "\"42\"")) == .otherAuthorizedParty("42"))
    }

    @Test("A subject is 1 to 255 ASCII characters")
    func subjects() throws {
        func rejection(_ text: String) throws -> Rejection? {
            try Login.rejection(of: Login.token("sub", "\"\(text)\""))
        }
        #expect(try rejection("") == .malformedClaim(.subject, .empty))
        #expect(try rejection(String(repeating: "1", count: 255)) == nil)
        #expect(try rejection(String(repeating: "1", count: 256)) == .malformedClaim(.subject, .outOfShape))
        #expect(try rejection("é") == .malformedClaim(.subject, .outOfShape))
        #expect(try rejection("\\u00e9") == .malformedClaim(.subject, .outOfShape))
        #expect(try rejection(String(repeating: "\\u0031", count: 255)) == nil)
        #expect(try Login.rejection(of: Login.token("jti", "\"\"")) == .malformedClaim(.tokenID, .empty))
    }

    @Test("Unknown claims are passed through")
    func unknownClaims() throws {
        let token = try Login.verify(Login.token("zzz", "{\"deep\":[1,{\"é\":null}]}"))
        #expect(token.claimsJSON.contains("\"zzz\":{\"deep\":[1,{\"é\":null}]}"))
        #expect(token.authenticationToken.keyThumbprint == nil)
        let confirmed = try Login.verify(StandInKeys.current.mint(Login.fullClaims))
        #expect(confirmed.authenticationToken.keyThumbprint == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")
        // No key has the empty thumbprint of an unreadable `cnf`, and the JSON keeps it.
        for confirmation in ["5", "null", "{}", #""x""#, #"{"jkt":5}"#, #"{"jkt":""}"#, #"{"x5t#S256":"x"}"#] {
            let login = try Login.verify(Login.token("cnf", confirmation))
            #expect(login.authenticationToken.keyThumbprint == "", "\(confirmation)")
            let json = try JSONEncoder().encode(LoginRecord(login))
            #expect(String(decoding: json, as: UTF8.self).contains(#""confirmation":"unreadable""#))
            #expect(try JSONDecoder().decode(LoginRecord.self, from: json).keyThumbprint == "")
        }
    }

    @Test("A claim spelt with escapes is the same claim")
    func escapedNames() throws {
        var payload = String(decoding: Login.claims.payload, as: UTF8.self)
        for (name, escaped) in [("iss", "\\u0069ss"), ("nonce", "nonc\\u0065"), ("exp", "\\u0065\\u0078\\u0070")] {
            payload = payload.replacing("\"\(name)\"", with: "\"\(escaped)\"")
        }
        #expect(try Login.rejection(of: Login.token(payload: payload)) == nil)
        let twice = payload.dropLast() + ",\"iss\":\"https://www.facebook.com\"}"
        #expect(try Login.rejection(of: Login.token(payload: String(twice)))?.code == .malformedToken)
    }
}
