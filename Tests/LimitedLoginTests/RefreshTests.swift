import LLBytes
import LLJOSE
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@Suite("A token's device and its access token")
struct RefreshTests {
    private static let thumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"

    private static func rejection(
        _ token: String,
        thumbprint: String? = nil,
        accessToken: String? = nil
    ) throws -> Rejection? {
        let binding = TokenBinding.nonce(try Login.nonce())
        let expectation = TokenExpectation(binding: binding, keyThumbprint: thumbprint, accessToken: accessToken)
        return Login.rejection {
            try Login.sharedVerifier.verify(token, expecting: expectation, keys: StandInKeys.set, now: Login.sharedNow)
        }
    }

    @Test("The device's key must be the one the token is bound to, byte for byte")
    func device() throws {
        let bound = try Login.token("cnf", #"{"jkt":"\#(Self.thumbprint)"}"#)
        let escaped = try Login.token("cnf", #"{"jkt":"\u0030ZcOCORZNYy\u002dDWpqq30jZyJGHTN0d2HglBV3uiguA4I"}"#)
        for token in [bound, escaped] {
            #expect(try Self.rejection(token, thumbprint: Self.thumbprint) == nil)
            #expect(try Login.verify(token).authenticationToken.keyThumbprint == Self.thumbprint)
        }
        let other = Base64URL.encode([UInt8](repeating: 7, count: 32))
        for thumbprint in [other, "0zcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"] {
            #expect(try Self.rejection(bound, thumbprint: thumbprint) == Rejection(.keyThumbprintMismatch))
        }
        let digits = String(repeating: "1", count: 42) + "0"
        let number = try Login.token("cnf", #"{"jkt":\#(digits)}"#)
        #expect(try Self.rejection(number, thumbprint: digits) == Rejection(.keyThumbprintMismatch))
        for json in [nil, "null", "5", "[]", "{}", #"{"jkt":""}"#, #"{"jkt":null}"#, #""\#(Self.thumbprint)""#] {
            let rejection = try Self.rejection(Login.token("cnf", json), thumbprint: Self.thumbprint)
            #expect(rejection == Rejection(.keyThumbprintMismatch) && rejection?.claim == "cnf", "\(json ?? "absent")")
        }
    }

    @Test(
        "A text that is no SHA-256 thumbprint is the caller's mistake",
        arguments: [
            "", "A", "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4", "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I=",
            "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4J", "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4IA",
            "0ZcOCORZNYy+DWpqq30jZyJGHTN0d2HglBV3uiguA4I",
        ]
    )
    func thumbprints(text: String) throws {
        let bound = try Login.token("cnf", #"{"jkt":"\#(Self.thumbprint)"}"#)
        #expect(try Self.rejection(bound, thumbprint: text) == .invalidKeyThumbprint)
    }

    @Test("An access token is compared with at_hash (the example of OpenID Connect Core appendix A.4)")
    func accessToken() throws {
        let access = "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y"
        let token = try Login.token("at_hash", #""77QmUPtjPfzWtF2AnpK9RQ""#)
        #expect(try Self.rejection(token, accessToken: access) == nil)
        let escaped = try Login.token("at_hash", #""77QmUPtjPfzWtF2AnpK\u0039RQ""#)
        #expect(try Self.rejection(escaped, accessToken: access) == nil)
        for other in ["jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0y", "x", "", access + "="] {
            #expect(try Self.rejection(token, accessToken: other) == Rejection(.accessTokenHashMismatch))
        }
        let whole = try SHA256.digest(of: Array(access.utf8).span).base64URL
        for hash in [nil, #""77QmUPtjPfzWtF2AnpK9RQ==""#, #""\#(whole)""#, #""77qmUPtjPfzWtF2AnpK9RQ""#, #""77""#] {
            let rejection = try Self.rejection(Login.token("at_hash", hash), accessToken: access)
            #expect(rejection == Rejection(.accessTokenHashMismatch) && rejection?.claim == "at_hash")
        }
        #expect(try Self.rejection(Login.token("at_hash", #""""#), accessToken: access)?.code == .malformedClaim)
    }
}
