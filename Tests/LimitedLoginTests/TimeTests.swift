import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@Suite("The times of a token")
struct TimeTests {
    private let now = Login.now

    @Test("A token is good until its expiry plus the skew")
    func expiration() throws {
        let token = try StandInKeys.current.mint(Login.claims)
        let end = now - 5 + 3600
        #expect(try Login.rejection(of: token, at: end) == nil)
        #expect(try Login.rejection(of: token, at: end + 59) == nil)
        #expect(try Login.rejection(of: token, at: end + 60)?.code == .expired)
        let strict = try Login.verifier(skew: 0)
        #expect(try Login.rejection(of: token, with: strict, at: end - 1) == nil)
        #expect(try Login.rejection(of: token, with: strict, at: end)?.code == .expired)
    }

    @Test("A token from the future is refused beyond the skew")
    func issuance() throws {
        func rejection(_ claim: String, _ offset: Int64) throws -> Rejection? {
            try Login.rejection(of: Login.token(claim, "\(now + offset)"))
        }
        for claim in ["iat", "nbf"] {
            #expect(try rejection(claim, 60) == nil)
            let refusal = try rejection(claim, 61)
            #expect(refusal?.code == .notYetValid && refusal?.claim == claim)
        }
        #expect(try rejection("nbf", -100_000) == nil)
    }

    @Test(
        "A time in milliseconds or microseconds is refused with its unit, not as a wrong clock",
        arguments: ["iat", "nbf"],
        [(Login.now * 1_000, "milliseconds"), (Login.now * 1_000_000, "microseconds")]
    )
    func units(claim: String, time: (value: Int64, unit: String)) throws {
        let refusal = try #require(try Login.rejection(of: Login.token(claim, "\(time.value)")))
        #expect(refusal.code == .notYetValid && refusal.claim == claim)
        #expect(refusal.detail == "The claim \(claim) counts \(time.unit); it must be seconds since 1970.")
        #expect(!refusal.hint.contains("clock"))
    }

    @Test("A token older than the policy allows is refused before it expires")
    func age() throws {
        let token = try StandInKeys.current.mint(Login.claims)
        let verifier = try Login.verifier(maximumAge: 600)
        #expect(try Login.rejection(of: token, with: verifier, at: now - 5 + 660) == nil)
        #expect(try Login.rejection(of: token, with: verifier, at: now - 5 + 661)?.code == .tooOld)
        #expect(try Login.rejection(of: token, at: now - 5 + 661) == nil)
    }

    @Test(
        "A time that is no number from 0 to 2^53 is malformed (CVE-2026-25537)",
        arguments: ["exp", "iat", "nbf"],
        [
            "\"1700003595\"", "\"\"", "null", "true", "[]", "{}", "[1700003595]", "-1", "-0.5", "1e19", "1e308",
            "9007199254740993", "9223372036854775807", "9223372036854775808", "99999999999999999999",
            "9007199254740992.5", "-9223372036854775808", "1e16",
        ]
    )
    func malformed(claim: String, json: String) throws {
        try Login.expectMalformed(claim, json)
    }

    @Test(
        "Every legal spelling of a time is read, and fractions of a second count",
        arguments: [
            ("1700003595", nil), ("1700003595.0", nil), ("1.700003595e9", nil), ("17000035950E-1", nil),
            ("9007199254740992", nil), ("1699999940.5", nil), ("1699999939.5", .expired), ("0", .expired),
            ("-0", .expired), ("1.5", .expired),
        ] as [(String, Rejection.Code?)]
    )
    func spellings(json: String, code: Rejection.Code?) throws {
        #expect(try Login.rejection(of: Login.token("exp", json))?.code == code)
    }

    @Test("A date holds 0 to 2^53 seconds and nothing else")
    func dates() {
        for seconds in [-1, Int64.max] { #expect(NumericDate(secondsSince1970: seconds) == nil) }
        for seconds in [.nan, .infinity, -0.5, 9_007_199_254_740_994.0] as [Double] {
            #expect(NumericDate(secondsSince1970: seconds) == nil)
        }
        #expect(NumericDate(secondsSince1970: 9_007_199_254_740_992 as Int64)?.wholeSeconds == 9_007_199_254_740_992)
        #expect(NumericDate(secondsSince1970: 1.75)?.wholeSeconds == 1)
    }
}
