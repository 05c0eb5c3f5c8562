/// The judged facts of an accepted token, as ranges into `VerificationWorkspace.payload`.
///
/// Valid until the workspace judges the next token. The range of a string is the text between its quotes, JSON
/// still escaped, so that it may be copied into another JSON string byte for byte.
package struct VerifiedClaims {
    /// A place with both its ID and its name, each a string's range.
    package struct Place {
        package var id: Range<Int>
        package var name: Range<Int>
    }

    /// `iss`.
    package var issuer: Range<Int> = 0..<0
    /// `aud`, the one app.
    package var audience: Range<Int> = 0..<0
    /// `sub`.
    package var subject: Range<Int> = 0..<0
    /// `jti`.
    package var tokenID: Range<Int> = 0..<0
    /// `nonce`; empty when the login was started without one, nil when there is no such claim.
    package var nonce: Range<Int>?
    /// `kid`: the one range into `VerificationWorkspace.header`.
    package var keyID: Range<Int> = 0..<0
    /// `iat`.
    package var issuedAt: NumericDate
    /// `exp`.
    package var expiresAt: NumericDate
    /// Whether an access token came with the token.
    package var tracking = LoginTracking.limited

    package var name: Range<Int>?
    package var firstName: Range<Int>?
    package var middleName: Range<Int>?
    package var lastName: Range<Int>?
    package var email: Range<Int>?
    package var imageURL: Range<Int>?
    package var linkURL: Range<Int>?
    package var gender: Range<Int>?
    /// The JSON array of the friends' IDs, brackets and all, each element a string: may be copied as it stands.
    package var friendIDs: Range<Int>?
    package var birthday: Birthday?
    package var ageRange: AgeRange?
    package var hometown: Place?
    package var location: Place?

    /// The permissions for `Profile.permissions`: those whose claims are there. The two gaming permissions are
    /// left out, for their claims are those of `public_profile`.
    package var permissions: PermissionSet = []
    /// The permissions a caller may rely on: the same, and the gaming permissions whose claims are there.
    package var satisfiedPermissions: PermissionSet = []
    /// The node of the friends in the payload's document.
    var friendsNode: Int?

    init(issuedAt: NumericDate, expiresAt: NumericDate) {
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
    }

    /// `cnf.jkt`: the RFC 7638 thumbprint of the key the token is bound to.
    package var keyThumbprint: Range<Int>?
    /// Whether the token has `cnf`, readable or not: its holder must prove to have a key (RFC 7800 section 3).
    package var isBoundToKey = false
}
