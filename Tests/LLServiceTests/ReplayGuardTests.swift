import Testing

@testable import LLService
@testable import LLStores
@testable import LimitedLogin

@Suite("The entries that a verdict uses up")
struct ReplayGuardTests {
    @Test("A store is asked about the nonce first, so that a refused nonce leaves the token unused")
    func order() throws {
        let payload = Array("42jti-1".utf8)
        let date = try #require(NumericDate(secondsSince1970: 1_700_000_000 as Int64))
        var claims = VerifiedClaims(issuedAt: date, expiresAt: date)
        (claims[.audience], claims[.tokenID]) = (0..<2, 2..<payload.count)
        let nonce = RecognizedNonce(issuedAtMilliseconds: 1, expiresAtMilliseconds: 2, identity: [3])
        let entries = ReplayEntry.all(claims, payload.span, nonce: nonce, usesToken: true)
        #expect(entries.map { $0?.kind } == [.nonce, .token])
        // The token is kept for the greatest possible skew and a minute, because a reload may raise the configured
        // skew.
        #expect(entries.map { $0?.keepUntil } == [60_002, 1_700_000_360_000])
    }

    @Test("A proof is remembered for 300 seconds and a minute, and counts for its key and its person")
    func proof() throws {
        let date = try #require(NumericDate(secondsSince1970: 1_700_000_000 as Int64))
        func entry(_ key: String, _ user: String) -> ReplayEntry? {
            let proof = DPoPProof(keyThumbprint: key, tokenID: "j", issuedAt: date)
            return ReplayEntry(proof, app: "42", user: user)
        }
        let (first, second, other) = (entry("k", "7"), entry("l", "7"), entry("k", "8"))
        #expect(first?.keepUntil == 1_700_000_360_001)
        #expect(first?.owners.last == second?.owners.last && first?.owners.first != second?.owners.first)
        #expect(first?.owners.last != other?.owners.last && first?.owners.count == 2)
    }

    @Test(
        "Another spelling in JSON of the audience and the token's name gives the same entries",
        arguments: [
            ("42", "jti-1"), (#"\u00342"#, "jti-1"), ("42", #"jti\u002d\u0031"#), (#"4\u0032"#, #"\u006Ati-1"#),
        ]
    )
    func spellings(audience: String, tokenID: String) throws {
        let date = try #require(NumericDate(secondsSince1970: 1_700_000_000 as Int64))
        func entries(_ audience: String, _ tokenID: String) -> [ReplayEntry?] {
            let payload = Array((audience + tokenID).utf8)
            var claims = VerifiedClaims(issuedAt: date, expiresAt: date)
            (claims[.audience], claims[.tokenID]) = (0..<audience.utf8.count, audience.utf8.count..<payload.count)
            let nonce = RecognizedNonce(issuedAtMilliseconds: 1, expiresAtMilliseconds: 2, identity: [3])
            return ReplayEntry.all(claims, payload.span, nonce: nonce, usesToken: true, accessToken: [4])
        }
        #expect(entries(audience, tokenID) == entries("42", "jti-1"))
        #expect(entries(audience, tokenID).compactMap(\.self).count == 3)
    }
}
