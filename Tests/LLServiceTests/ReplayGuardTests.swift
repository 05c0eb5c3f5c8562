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
        let question = ReplayLookup(claims, payload.span, nonce: nonce, usesToken: true)
        #expect(question?.entries.map(\.kind) == [.nonce, .token])
        // The token is kept for the greatest possible skew and a minute, because a reload may raise the configured
        // skew.
        #expect(question?.entries.map(\.keepUntil) == [60_002, 1_700_000_360_000])
    }
}
