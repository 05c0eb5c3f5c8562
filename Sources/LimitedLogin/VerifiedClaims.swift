/// The judged facts of an accepted token, as ranges into `VerificationWorkspace.payload`.
///
/// Valid until the workspace judges the next token. A range of a string is the text between the quotes: JSON
/// still escaped, so it may be copied into another JSON string byte for byte.
package struct VerifiedClaims {
    package var issuer: Range<Int> = 0..<0
    package var audience: Range<Int> = 0..<0
    package var subject: Range<Int> = 0..<0
    package var tokenID: Range<Int> = 0..<0
    package var nonce: Range<Int>?
    package var issuedAt: NumericDate
    package var expiresAt: NumericDate
    package var tracking: LoginTracking
    package var name: Range<Int>?
    package var firstName: Range<Int>?
    package var middleName: Range<Int>?
    package var lastName: Range<Int>?
    package var email: Range<Int>?
    package var imageURL: Range<Int>?
    package var linkURL: Range<Int>?
    package var gender: Range<Int>?
    /// The JSON array of the friends' IDs, each a string: may be copied as it stands.
    package var friendIDs: Range<Int>?
    package var birthday: Birthday?
    package var ageRange: AgeRange?
    package var hometown: Place?
    package var location: Place?
    /// The permissions whose claims are present.
    package var permissions: PermissionSet

    package struct Place {
        package var id: Range<Int>
        package var name: Range<Int>
    }
    /// Both bounds as the token spells them: JSON numbers that may be copied as they stand.
    package struct AgeRange {
        package var minimum: Range<Int>?
        package var maximum: Range<Int>?
    }
}

/// A birthday with what the person shares: a date, a day of the year, or a year.
public enum Birthday: Equatable, Hashable, Sendable {
    case date(year: Int, month: Int, day: Int)
    case dayOfYear(month: Int, day: Int)
    case year(Int)
}
