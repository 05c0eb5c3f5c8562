package import LimitedLogin

/// Writes the answer to an accepted access token: what Graph told of the token, then the person, with the members of the
/// answer to an id token.
package enum AccessTokenAnswer {
    /// - Parameter asked: the permissions the caller needs; nil leaves out what is missing.
    package static func write(_ verified: VerifiedAccessToken, asked: [String]?, to body: inout [UInt8]) {
        writeToken(verified.inspection, to: &body)
        writeProfile(verified.profile, verified.inspection.permissions, to: &body)
        if let asked {
            JSONWriter.raw(",\"missing_permissions\":", to: &body)
            list(asked.filter { !verified.inspection.permissions.contains($0) }, to: &body)
        }
        JSONWriter.raw("}", to: &body)
    }

    private static func writeToken(_ token: AccessTokenInspection, to body: inout [UInt8]) {
        JSONWriter.raw("{\"access_token\":{", to: &body)
        JSONWriter.member("app_id", token.appID, to: &body)
        JSONWriter.raw(",", to: &body)
        JSONWriter.member("user_id", token.userID, to: &body)
        date(",\"issued_at\":", token.issuedAt, to: &body)
        date(",\"expires_at\":", token.expiresAt, to: &body)
        date(",\"data_access_expires_at\":", token.dataAccessExpiresAt, to: &body)
        JSONWriter.raw(",\"permissions\":", to: &body)
        list(token.permissions, to: &body)
        JSONWriter.raw("}", to: &body)
    }

    private static func writeProfile(_ profile: Profile, _ permissions: [String], to body: inout [UInt8]) {
        JSONWriter.raw(",\"profile\":{", to: &body)
        JSONWriter.member("user_id", profile.userID, to: &body)
        text("name", profile.name, to: &body)
        text("first_name", profile.firstName, to: &body)
        text("middle_name", profile.middleName, to: &body)
        text("last_name", profile.lastName, to: &body)
        text("email", profile.email, to: &body)
        // Facebook vouches for no address.
        if profile.email != nil { JSONWriter.raw(",\"email_verified\":false", to: &body) }
        text("image_url", profile.imageURL, to: &body)
        text("link_url", profile.linkURL, to: &body)
        if let friends = profile.friendIDs {
            JSONWriter.raw(",\"friend_ids\":", to: &body)
            list(friends, to: &body)
        }
        text("birthday", profile.birthday.map { "\($0)" }, to: &body)
        if let range = profile.ageRange { writeAgeRange(range, to: &body) }
        place(",\"hometown\":{", profile.hometown, to: &body)
        place(",\"location\":{", profile.location, to: &body)
        text("gender", profile.gender, to: &body)
        JSONWriter.raw(",\"permissions\":", to: &body)
        list(permissions, to: &body)
        JSONWriter.raw(",\"is_limited\":false}", to: &body)
    }

    private static func text(_ name: StaticString, _ value: String?, to body: inout [UInt8]) {
        guard let value else { return }
        JSONWriter.raw(",", to: &body)
        JSONWriter.member(name, value, to: &body)
    }

    private static func writeAgeRange(_ range: AgeRange, to body: inout [UInt8]) {
        JSONWriter.raw(",\"age_range\":{", to: &body)
        if let minimum = range.minimum {
            JSONWriter.raw("\"min\":", to: &body)
            JSONWriter.integer(minimum, to: &body)
        }
        if let maximum = range.maximum {
            JSONWriter.raw(range.minimum == nil ? "\"max\":" : ",\"max\":", to: &body)
            JSONWriter.integer(maximum, to: &body)
        }
        JSONWriter.raw("}", to: &body)
    }

    private static func place(_ opening: StaticString, _ place: Profile.Place?, to body: inout [UInt8]) {
        guard let place else { return }
        JSONWriter.raw(opening, to: &body)
        JSONWriter.member("id", place.id, to: &body)
        JSONWriter.raw(",", to: &body)
        JSONWriter.member("name", place.name, to: &body)
        JSONWriter.raw("}", to: &body)
    }

    /// Whole seconds; a fraction, which Graph never sends, is cut off.
    private static func date(_ opening: StaticString, _ date: NumericDate?, to body: inout [UInt8]) {
        guard let date, let seconds = Int(exactly: date.secondsSince1970.rounded(.towardZero)) else { return }
        JSONWriter.raw(opening, to: &body)
        JSONWriter.integer(seconds, to: &body)
    }

    private static func list(_ texts: [String], to body: inout [UInt8]) {
        JSONWriter.raw("[", to: &body)
        for (index, text) in texts.enumerated() {
            if index > 0 { JSONWriter.raw(",", to: &body) }
            JSONWriter.string(text, to: &body)
        }
        JSONWriter.raw("]", to: &body)
    }
}
