import LLJOSE
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@Suite("The API for bytes")
struct ByteDoorTests {
    @Test("Both APIs give the same facts, and the ranges can be copied into JSON unchanged")
    func sameFacts() throws {
        let text = try StandInKeys.current.mint(Login.fullClaims)
        let owned = try Login.verify(text)
        var workspace = VerificationWorkspace()
        let token = Array(text.utf8)
        let claims = try Login.sharedVerifier.judge(
            token.span,
            TokenExpectation(binding: .nonce(Login.nonce()), appID: Login.appID),
            keys: VerificationKeys(StandInKeys.set),
            now: Login.sharedNow,
            workspace: &workspace
        )
        let payload = workspace.payload
        func value(_ range: Range<Int>?) -> String? { range.map { JSONText.value(payload.span, $0) } }
        #expect(value(claims.issuer) == owned.authenticationToken.issuer)
        #expect(value(claims.audience) == Login.appID)
        #expect(value(claims.subject) == Login.userID)
        #expect(value(claims.tokenID) == owned.authenticationToken.tokenID)
        #expect(value(claims[.nonce]) == Login.nonce)
        #expect(workspace.keyID == Array(StandInKeys.current.keyID.utf8))
        #expect(claims.issuedAt < claims.expiresAt)
        #expect(value(claims[.name]) == owned.profile.name && value(claims[.firstName]) == owned.profile.firstName)
        #expect(value(claims[.middleName]) == "Q." && value(claims[.lastName]) == owned.profile.lastName)
        #expect(value(claims[.email]) == owned.profile.email && value(claims[.imageURL]) == owned.profile.imageURL)
        #expect(value(claims.linkURL) == owned.profile.linkURL && value(claims.gender) == "female")
        #expect(value(claims.hometown?.name) == owned.profile.hometown?.name)
        #expect(value(claims.location?.id) == owned.profile.location?.id)
        #expect(claims.friendIDs.map { String(decoding: payload[$0], as: UTF8.self) } == "[\"1122\",\"3344\",\"5566\"]")
        #expect(claims.permissions.permissions == owned.profile.permissions)
        // The text between the quotes keeps the issuer's escapes.
        let email = claims[.email].map { String(decoding: payload[$0], as: UTF8.self) }
        #expect(email == "zo\\u00eb\\u0040example.com")
        let needed: PermissionSet = [.init(.email), .init(.userMessengerContact)]
        #expect(PermissionSet.missing(claims.satisfiedPermissions, asked: needed) == [])
    }

    @Test("Permissions that no token can show are not reported as missing")
    func missing() throws {
        let token = Array(try StandInKeys.current.mint(Login.claims).utf8)
        var workspace = VerificationWorkspace()
        let claims = try Login.sharedVerifier.judge(
            token.span,
            Login.expectation,
            keys: VerificationKeys(StandInKeys.set),
            now: Login.sharedNow,
            workspace: &workspace
        )
        let asked: PermissionSet = [.init(.email), .init(.userLocation), .init(.userMessengerContact)]
        let missing = PermissionSet.missing(claims.satisfiedPermissions, asked: asked)
        #expect(missing.permissions == [.email, .userLocation])
    }
}
