import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@Suite("An accepted token")
struct AcceptanceTests {
    @Test("A verified token gives its claims, its text and its key ID")
    func authenticationToken() throws {
        let text = try StandInKeys.current.mint(Login.claims)
        let token = try Login.verify(text).authenticationToken
        #expect(token.tokenString == text)
        #expect(token.issuer == "https://www.facebook.com")
        #expect(token.audience == Login.appID)
        #expect(token.subject == Login.userID)
        #expect(token.nonce == Login.nonce)
        #expect(token.issuedAt.wholeSeconds == Login.now - 5)
        #expect(token.expiresAt.wholeSeconds == Login.now + 3595)
        #expect(token.keyID == StandInKeys.current.keyID)
        #expect(token.tokenID.utf8.count == 69)
    }

    @Test("With every permission granted the Profile is complete")
    func fullProfile() throws {
        let profile = try Login.verify(StandInKeys.current.mint(Login.fullClaims)).profile
        #expect(profile.userID == Login.userID)
        #expect(profile.name == "Zoë Q. Müller 😀")
        #expect(profile.firstName == "Zoë")
        #expect(profile.middleName == "Q.")
        #expect(profile.lastName == "Müller 😀")
        #expect(profile.email == "zoë@example.com")
        #expect(profile.imageURL?.hasPrefix("https://platform-lookaside.fbsbx.com/platform/") == true)
        #expect(profile.linkURL == "https://www.facebook.com/app_scoped_user_id/x/")
        #expect(profile.friendIDs == ["1122", "3344", "5566"])
        #expect(profile.birthday == .date(year: 1990, month: 1, day: 2))
        #expect(profile.ageRange == AgeRange(minimum: 21, maximum: nil))
        #expect(profile.hometown?.name == "Martinez, California")
        #expect(profile.location?.id == "110843418940484")
        #expect(profile.gender == "female")
        #expect(profile.isLimited)
        #expect(
            profile.permissions == [
                .publicProfile, .email, .userAgeRange, .userBirthday, .userFriends, .userGender, .userHometown,
                .userLink, .userLocation,
            ]
        )
    }
}
