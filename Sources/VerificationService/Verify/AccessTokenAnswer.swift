package import LimitedLogin

/// Writes the answer to an accepted access token: what Graph told of the token, then the person, with the members of the
/// answer to an id token.
package enum AccessTokenAnswer {
    /// - Parameter asked: the permissions the caller needs; nil leaves out what is missing.
    package static func write(_ verified: VerifiedAccessToken, asked: [String]?, to body: inout [UInt8]) {
        JSONWriter.raw("{", to: &body)
        writeToken(verified.inspection, to: &body)
        writeProfile(verified.profile, verified.inspection.permissions, to: &body)
        if let asked {
            let missing = asked.filter { !verified.inspection.permissions.contains($0) }
            JSONWriter.member("missing_permissions", missing, to: &body)
        }
        JSONWriter.raw("}", to: &body)
    }

    private static func writeToken(_ token: AccessTokenInspection, to body: inout [UInt8]) {
        JSONWriter.name("access_token", to: &body)
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("app_id", token.appID, to: &body)
        JSONWriter.member("user_id", token.userID, to: &body)
        JSONWriter.member("issued_at", seconds(token.issuedAt), to: &body)
        JSONWriter.member("expires_at", seconds(token.expiresAt), to: &body)
        JSONWriter.member("data_access_expires_at", seconds(token.dataAccessExpiresAt), to: &body)
        JSONWriter.member("permissions", token.permissions, to: &body)
        JSONWriter.raw("}", to: &body)
    }

    private static func writeProfile(_ profile: Profile, _ permissions: [String], to body: inout [UInt8]) {
        JSONWriter.name("profile", to: &body)
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("user_id", profile.userID, to: &body)
        JSONWriter.member("name", profile.name, to: &body)
        JSONWriter.member("first_name", profile.firstName, to: &body)
        JSONWriter.member("middle_name", profile.middleName, to: &body)
        JSONWriter.member("last_name", profile.lastName, to: &body)
        JSONWriter.member("email", profile.email, to: &body)
        // Facebook vouches for no address.
        if profile.email != nil { JSONWriter.member("email_verified", false, to: &body) }
        JSONWriter.member("image_url", profile.imageURL, to: &body)
        JSONWriter.member("link_url", profile.linkURL, to: &body)
        if let friends = profile.friendIDs { JSONWriter.member("friend_ids", friends, to: &body) }
        JSONWriter.member("birthday", profile.birthday.map { "\($0)" }, to: &body)
        if let range = profile.ageRange {
            JSONWriter.name("age_range", to: &body)
            JSONWriter.raw("{", to: &body)
            JSONWriter.member("min", range.minimum, to: &body)
            JSONWriter.member("max", range.maximum, to: &body)
            JSONWriter.raw("}", to: &body)
        }
        place("hometown", profile.hometown, to: &body)
        place("location", profile.location, to: &body)
        JSONWriter.member("gender", profile.gender, to: &body)
        JSONWriter.member("permissions", permissions, to: &body)
        JSONWriter.member("is_limited", false, to: &body)
        JSONWriter.raw("}", to: &body)
    }

    private static func place(_ name: StaticString, _ place: Profile.Place?, to body: inout [UInt8]) {
        guard let place else { return }
        JSONWriter.name(name, to: &body)
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("id", place.id, to: &body)
        JSONWriter.member("name", place.name, to: &body)
        JSONWriter.raw("}", to: &body)
    }

    /// Whole seconds; a fraction, which Graph never sends, is cut off.
    private static func seconds(_ date: NumericDate?) -> Int? { date.map { Int(clamping: $0.wholeSeconds) } }
}
