internal import JOSE
package import LimitedLogin

/// Writes the answer to an accepted token straight from the bytes that were verified.
///
/// A string claim is copied with its escapes, because the text between the quotes of one valid JSON string is the
/// text between the quotes of another; so no value is decoded, encoded or changed on its way.
package enum VerifyAnswer {
    /// - Parameters:
    ///   - claims: the verdict's facts, as ranges into `payload`.
    ///   - payload: the token's JSON payload.
    ///   - keyID: the key ID, escapes decoded.
    ///   - asked: the permissions the caller needs; nil leaves out what is missing.
    package static func write(
        _ claims: VerifiedClaims,
        payload: Span<UInt8>,
        keyID: Span<UInt8>,
        asked: PermissionSet?,
        to bytes: inout [UInt8]
    ) {
        writeToken(claims, payload, keyID, &bytes)
        writeProfile(claims, payload, &bytes)
        if let asked {
            // A name may come from the gaming profile as well: what a claim could show is not called missing.
            let missing = asked.subtracting(claims.satisfiedPermissions)
            JSONWriter.raw(",\"missing_permissions\":", to: &bytes)
            writePermissions(missing.subtracting(.unverifiable), &bytes)
            let unverifiable = missing.intersection(.unverifiable)
            if !unverifiable.isEmpty {
                JSONWriter.raw(",\"unverifiable_permissions\":", to: &bytes)
                writePermissions(unverifiable, &bytes)
            }
        }
        JSONWriter.raw(",\"claims\":", to: &bytes)
        bytes.append(payload)
        JSONWriter.raw("}", to: &bytes)
    }

    private static func writeToken(
        _ claims: VerifiedClaims,
        _ payload: Span<UInt8>,
        _ keyID: Span<UInt8>,
        _ bytes: inout [UInt8]
    ) {
        JSONWriter.raw("{\"authentication_token\":{\"issuer\":\"", to: &bytes)
        bytes.append(payload, claims.issuer)
        JSONWriter.raw("\",\"audience\":\"", to: &bytes)
        bytes.append(payload, claims.audience)
        JSONWriter.raw("\",\"subject\":\"", to: &bytes)
        bytes.append(payload, claims.subject)
        JSONWriter.raw("\",\"token_id\":\"", to: &bytes)
        bytes.append(payload, claims.tokenID)
        bytes.append(UInt8(ascii: "\""))
        text(",\"nonce\":\"", claims.nonce, payload, &bytes)
        JSONWriter.raw(",\"issued_at\":", to: &bytes)
        date(claims.issuedAt, &bytes)
        JSONWriter.raw(",\"expires_at\":", to: &bytes)
        date(claims.expiresAt, &bytes)
        JSONWriter.raw(",\"key_id\":", to: &bytes)
        JSONWriter.string(keyID, to: &bytes)
        JSONWriter.raw(
            claims.tracking == .limited ? ",\"tracking\":\"limited\"}" : ",\"tracking\":\"enabled\"}",
            to: &bytes
        )
    }

    private static func writeProfile(_ claims: VerifiedClaims, _ payload: Span<UInt8>, _ bytes: inout [UInt8]) {
        JSONWriter.raw(",\"profile\":{\"user_id\":\"", to: &bytes)
        bytes.append(payload, claims.subject)
        bytes.append(UInt8(ascii: "\""))
        text(",\"name\":\"", claims.name, payload, &bytes)
        text(",\"first_name\":\"", claims.firstName, payload, &bytes)
        text(",\"middle_name\":\"", claims.middleName, payload, &bytes)
        text(",\"last_name\":\"", claims.lastName, payload, &bytes)
        text(",\"email\":\"", claims.email, payload, &bytes)
        text(",\"image_url\":\"", claims.imageURL, payload, &bytes)
        text(",\"link_url\":\"", claims.linkURL, payload, &bytes)
        if let friends = claims.friendIDs {
            JSONWriter.raw(",\"friend_ids\":", to: &bytes)
            bytes.append(payload, friends)
        }
        if let birthday = claims.birthday { writeBirthday(birthday, &bytes) }
        if let range = claims.ageRange { writeAgeRange(range, &bytes) }
        place(",\"hometown\":{\"id\":\"", claims.hometown, payload, &bytes)
        place(",\"location\":{\"id\":\"", claims.location, payload, &bytes)
        text(",\"gender\":\"", claims.gender, payload, &bytes)
        JSONWriter.raw(",\"permissions\":", to: &bytes)
        writePermissions(claims.permissions, &bytes)
        JSONWriter.raw(
            claims.tracking == .limited ? ",\"is_limited\":true}" : ",\"is_limited\":false}",
            to: &bytes
        )
    }

    /// `YYYY-MM-DD`, `0000-MM-DD` without a year, `YYYY` alone (OpenID Connect Core 1.0 section 5.1, `birthdate`).
    private static func writeBirthday(_ birthday: Birthday, _ bytes: inout [UInt8]) {
        JSONWriter.raw(",\"birthday\":\"", to: &bytes)
        switch birthday {
        case .date(let year, let month, let day):
            digits(year, 4, &bytes)
            bytes.append(UInt8(ascii: "-"))
            digits(month, 2, &bytes)
            bytes.append(UInt8(ascii: "-"))
            digits(day, 2, &bytes)
        case .dayOfYear(let month, let day):
            JSONWriter.raw("0000-", to: &bytes)
            digits(month, 2, &bytes)
            bytes.append(UInt8(ascii: "-"))
            digits(day, 2, &bytes)
        case .year(let year): digits(year, 4, &bytes)
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func writeAgeRange(_ range: AgeRange, _ bytes: inout [UInt8]) {
        JSONWriter.raw(",\"age_range\":{", to: &bytes)
        if let minimum = range.minimum {
            JSONWriter.raw("\"min\":", to: &bytes)
            JSONWriter.integer(minimum, to: &bytes)
        }
        if let maximum = range.maximum {
            JSONWriter.raw(range.minimum == nil ? "\"max\":" : ",\"max\":", to: &bytes)
            JSONWriter.integer(maximum, to: &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
    }

    private static func place(
        _ opening: StaticString,
        _ place: VerifiedClaims.Place?,
        _ payload: Span<UInt8>,
        _ bytes: inout [UInt8]
    ) {
        guard let place else { return }
        JSONWriter.raw(opening, to: &bytes)
        bytes.append(payload, place.id)
        JSONWriter.raw("\",\"name\":\"", to: &bytes)
        bytes.append(payload, place.name)
        JSONWriter.raw("\"}", to: &bytes)
    }

    private static func text(
        _ opening: StaticString,
        _ range: Range<Int>?,
        _ payload: Span<UInt8>,
        _ bytes: inout [UInt8]
    ) {
        guard let range else { return }
        JSONWriter.raw(opening, to: &bytes)
        bytes.append(payload, range)
        bytes.append(UInt8(ascii: "\""))
    }

    /// NumericDates are whole seconds in every token seen; a fraction is legal (RFC 7519 section 2) and is kept.
    private static func date(_ date: NumericDate, _ bytes: inout [UInt8]) {
        let seconds = date.secondsSince1970
        if let whole = Int(exactly: seconds) {
            JSONWriter.integer(whole, to: &bytes)
        } else {
            bytes.append(contentsOf: "\(seconds)".utf8)
        }
    }

    private static func digits(_ value: Int, _ count: Int, _ bytes: inout [UInt8]) {
        var divisor = 1
        for _ in 1..<count { divisor *= 10 }
        while divisor > 0 {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value / divisor % 10))
            divisor /= 10
        }
    }

    private static func writePermissions(_ permissions: PermissionSet, _ bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "["))
        var isFirst = true
        for permission in Permission.allCases where permissions.contains(PermissionSet(permission)) {
            if !isFirst { bytes.append(UInt8(ascii: ",")) }
            isFirst = false
            bytes.append(UInt8(ascii: "\""))
            bytes.append(contentsOf: permission.rawValue.utf8)
            bytes.append(UInt8(ascii: "\""))
        }
        bytes.append(UInt8(ascii: "]"))
    }
}
