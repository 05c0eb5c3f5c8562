import LLJOSE
import Testing

@testable import LLService
@testable import LimitedLogin

@Suite("The memory reserved for an answer")
struct VerifyAnswerSizeTests {
    @Test("The longest claims, key ID and numbers fit the memory reserved for the answer")
    func longest() throws {
        let payload = [UInt8](repeating: UInt8(ascii: "x"), count: VerificationLimits.tokenByteCount)
        let keyID = [UInt8](repeating: 0x01, count: JWK.Limits.keyIDByteCount)
        let date = try #require(NumericDate(secondsSince1970: 4_503_599_627_370_495.5))
        var claims = VerifiedClaims(issuedAt: date, expiresAt: date)
        let half = payload.count / 2
        claims[.subject] = 0..<half
        claims[.name] = half..<payload.count
        let empty = half..<half
        (claims[.issuer], claims[.audience], claims[.tokenID], claims[.nonce]) = (empty, empty, empty, empty)
        (claims[.givenName], claims[.middleName], claims[.familyName]) = (empty, empty, empty)
        (claims[.email], claims[.picture], claims[.userLink], claims[.userGender]) = (empty, empty, empty, empty)
        claims[.userFriends] = empty
        claims.birthday = .date(year: 1990, month: 12, day: 31)
        claims.ageRange = AgeRange(minimum: .max - 1, maximum: .max)
        claims.hometown = VerifiedClaims.Place(id: empty, name: empty)
        claims.location = claims.hometown
        claims[.confirmation] = empty
        claims.satisfiedPermissions = PermissionSet(rawValue: 0xFFF)
        var body: [UInt8] = []
        let asked = PermissionSet(rawValue: 0xFFF)
        VerifyAnswer.write(claims, payload.span, keyID.span, asked: asked, isRefresh: true, to: &body)
        #expect(body.count > 2 * payload.count + half + 6 * keyID.count)
        #expect(body.last == UInt8(ascii: "}"))
    }
}
