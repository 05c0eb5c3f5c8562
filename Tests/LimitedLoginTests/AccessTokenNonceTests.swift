import LLBytes
import LLTestSupport
import LimitedLogin
import Testing

@Suite("Graph's answer about an access token's login")
struct AccessTokenNonceTests {
    private static let now = Login.sharedNow
    private static let nonce = "n0NceOfThisLogin4242"

    private static func token(app: String = "111") throws -> VerifiedAccessToken {
        let data =
            #"{"data":{"app_id":"\#(app)","type":"USER","expires_at":0,"is_valid":true,"user_id":"218471","scopes":[]}}"#
        let inspection = try AccessTokenInspection(debugToken: Array(data.utf8), appIDs: ["111", "222"], now: now)
        return try VerifiedAccessToken(me: Array(#"{"id":"218471"}"#.utf8), of: inspection)
    }

    private static func answer(_ nonce: String?) -> String {
        let more = nonce.map { #","auth_type":"reauthenticate","auth_nonce":\#($0)"# } ?? ""
        return #"{"access_token":"EAAx","token_type":"bearer","expires_in":5183999\#(more)}"#
    }

    /// The code of the refusal; nil for a good answer, `unreadable` for one that cannot be read.
    private static func code(_ answer: String, _ expectation: NonceExpectation, app: String = "111") throws -> String? {
        let token = try token(app: app)
        let rejection = Login.rejection {
            try AccessTokenNonce(accessTokenInfo: Array(answer.utf8), of: token, expecting: expectation, now: now)
        }
        return rejection == .unreadableAnswer ? "unreadable" : rejection?.code.rawValue
    }

    private static func given(_ text: String = nonce) throws -> NonceExpectation { .nonce(try #require(Nonce(text))) }

    @Test("The expected nonce is accepted and returned, also if JSON escapes spell it")
    func accepted() throws {
        for json in ["\"\(Self.nonce)\"", #""\u006e0NceOfThisLogin4242""#] {
            let told = try AccessTokenNonce(
                accessTokenInfo: Array(Self.answer(json).utf8),
                of: Self.token(),
                expecting: Self.given(),
                now: Self.now
            )
            #expect(told.value == Self.nonce)
        }
    }

    @Test(
        "A nonce that is missing or differs from the expected one is a mismatch",
        arguments: [
            nil, #""""#, #""n0NceOfThisLogin4243""#, #""N0NceOfThisLogin4242""#, #""n0NceOfThisLogin4242 ""#,
            #""n0NceOfThisLogin424""#, "null", "true", "5", #"["n0NceOfThisLogin4242"]"#,
            #"{"auth_nonce":"n0NceOfThisLogin4242"}"#,
        ] as [String?]
    )
    func refused(json: String?) throws {
        #expect(try Self.code(Self.answer(json), Self.given()) == "nonce_mismatch")
    }

    @Test("A nonce deeper in the answer or under another name does not count")
    func elsewhere() throws {
        for answer in [
            #"{"data":{"auth_nonce":"\#(Self.nonce)"}}"#, #"{"nonce":"\#(Self.nonce)"}"#,
            #"{"AUTH_NONCE":"\#(Self.nonce)"}"#, #"{"auth_type":"\#(Self.nonce)"}"#, "{}",
        ] {
            #expect(try Self.code(answer, Self.given()) == "nonce_mismatch", "\(answer)")
        }
    }

    @Test(
        "An answer that cannot be read is not blamed on the token",
        arguments: [
            "", "null", "[]", "<html>", "auth_nonce=n0NceOfThisLogin4242", #"{"auth_nonce":"x","auth_nonce":"x"}"#,
            #"{"error":{"code":190},"auth_nonce":"n0NceOfThisLogin4242"}"#, #"{"auth_nonce":"n0NceOfThisLogin4242"}}"#,
        ]
    )
    func unreadable(answer: String) throws {
        #expect(try Self.code(answer, Self.given()) == "unreadable")
    }

    @Test("An issued nonce must be this issuer's, for the token's app, and not expired")
    func issued() throws {
        let issuer = try NonceIssuer(secret: "0123456789abcdef0123456789abcdef")
        let other = try NonceIssuer(secret: "fedcba9876543210fedcba9876543210")
        func make(_ issuer: NonceIssuer, age: Double = 5, app: String = "111") throws -> String {
            let date = try #require(NumericDate(secondsSince1970: Double(Login.now) - age))
            return "\"" + (try #require(issuer.issue(appID: app, lifetime: .seconds(60), now: date)).nonce.value) + "\""
        }
        func code(_ nonce: String?, app: String = "111") throws -> String? {
            try Self.code(Self.answer(nonce), .issued(by: issuer), app: app)
        }
        #expect(try code(make(issuer)) == nil)
        #expect(try code(make(issuer, app: "222"), app: "222") == nil)
        #expect(try code(make(issuer, age: 59.9)) == nil)
        #expect(try code(make(issuer, age: 60)) == "nonce_expired")
        #expect(try code(make(issuer, app: "222")) == "nonce_not_issued")
        #expect(try code(make(issuer), app: "222") == "nonce_not_issued")
        #expect(try code(make(other)) == "nonce_not_issued")
        #expect(try code(make(issuer).uppercased()) == "nonce_not_issued")
        #expect(try code(#""x""#) == "nonce_not_issued")
        for none in [nil, "null", "5", #""""#] { #expect(try code(none) == "nonce_mismatch") }
    }
}
