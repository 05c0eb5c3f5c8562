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
    @PayloadRange package var nonce: Range<Int>?
    /// `kid`: the one range into `VerificationWorkspace.header`.
    package var keyID: Range<Int> = 0..<0
    /// `iat`.
    package var issuedAt: NumericDate
    /// `exp`.
    package var expiresAt: NumericDate
    /// Whether there is `nbf`.
    package var hasNotBefore = false
    /// Whether an access token came with the token.
    package var tracking = LoginTracking.limited

    @PayloadRange package var name: Range<Int>?
    @PayloadRange package var firstName: Range<Int>?
    @PayloadRange package var middleName: Range<Int>?
    @PayloadRange package var lastName: Range<Int>?
    @PayloadRange package var email: Range<Int>?
    @PayloadRange package var imageURL: Range<Int>?
    @PayloadRange package var linkURL: Range<Int>?
    @PayloadRange package var gender: Range<Int>?
    /// The JSON array of the friends' IDs, brackets and all, each element a string: may be copied as it stands.
    @PayloadRange package var friendIDs: Range<Int>?
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
    @PayloadRange package var keyThumbprint: Range<Int>?
    /// Whether the token has `cnf`, readable or not: its holder must prove to have a key (RFC 7800 section 3).
    package var isBoundToKey = false
}

/// A range of a token's payload in four bytes, since claims are handed on by value: a token has at most 8 KiB.
@propertyWrapper
package struct PayloadRange {
    @usableFromInline var start = UInt16.max
    @usableFromInline var count: UInt16 = 0

    package init() {}

    @inlinable
    package var wrappedValue: Range<Int>? {
        get { start == .max ? nil : Int(start)..<Int(start) + Int(count) }
        set {
            start = newValue.map { UInt16(truncatingIfNeeded: $0.lowerBound) } ?? .max
            count = newValue.map { UInt16(truncatingIfNeeded: $0.count) } ?? 0
        }
    }
}
