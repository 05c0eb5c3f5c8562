internal import LLBytes
package import LimitedLogin

/// Writes the answer to an accepted token straight from the bytes that were verified.
///
/// A string claim is copied with its escapes: the text between the quotes of a valid JSON string is valid in another
/// one. No value is decoded, encoded or changed.
package enum VerifyAnswer {
    /// The greatest length of the answer without claims and key ID. Constant text has less than 800 bytes, three lists
    /// of permissions have 700, and dates and numbers have 150.
    private static let fixedByteCount = 2_048

    /// - Parameter asked: The permissions the caller needs; nil leaves out the list of missing ones.
    package static func write(
        _ claims: VerifiedClaims,
        payload: Span<UInt8>,
        keyID: Span<UInt8>,
        asked: PermissionSet?,
        isRefresh: Bool,
        to bytes: inout [UInt8]
    ) {
        // The ranges of the claims do not overlap, only the subject is written twice, and the payload follows. An
        // escape turns one byte into six.
        let most = 3 * payload.count + 6 * keyID.count + fixedByteCount
        bytes.append(addingCapacity: most) { (output: inout OutputSpan<UInt8>) in
            writeToken(claims, payload, keyID, &output)
            writeProfile(claims, payload, asked ?? PermissionSet(rawValue: 0), &output)
            if isRefresh { output.append(",\"refresh\":true") }
            if let asked { writeMissing(asked, claims, &output) }
            output.append(",\"claims\":")
            output.append(payload, 0..<payload.count)
            output.append("}")
        }
    }

    private static func writeMissing(
        _ asked: PermissionSet,
        _ claims: VerifiedClaims,
        _ bytes: inout OutputSpan<UInt8>
    ) {
        bytes.append(",\"missing_permissions\":")
        writePermissions(PermissionSet.missing(claims.satisfiedPermissions, asked: asked), &bytes)
        let unverifiable = asked.intersection(.unverifiable)
        if !unverifiable.isEmpty {
            bytes.append(",\"unverifiable_permissions\":")
            writePermissions(unverifiable, &bytes)
        }
    }

    private static func writeToken(
        _ claims: VerifiedClaims,
        _ payload: Span<UInt8>,
        _ keyID: Span<UInt8>,
        _ bytes: inout OutputSpan<UInt8>
    ) {
        text("{\"authentication_token\":{\"issuer\":\"", claims.issuer, payload, &bytes)
        text(",\"audience\":\"", claims.audience, payload, &bytes)
        text(",\"subject\":\"", claims.subject, payload, &bytes)
        text(",\"token_id\":\"", claims.tokenID, payload, &bytes)
        text(",\"nonce\":\"", claims[.nonce], payload, &bytes)
        bytes.append(",\"issued_at\":")
        date(claims.issuedAt, &bytes)
        bytes.append(",\"expires_at\":")
        date(claims.expiresAt, &bytes)
        bytes.append(",\"key_id\":")
        bytes.appendString(keyID)
        switch claims.keyBinding {
        case .none: break
        case .key(let thumbprint): text(",\"key_thumbprint\":\"", thumbprint, payload, &bytes)
        case .unreadable: bytes.append(",\"confirmation\":\"unreadable\"")
        }
        bytes.append(claims.isLimited ? ",\"tracking\":\"limited\"}" : ",\"tracking\":\"enabled\"}")
    }

    private static func writeProfile(
        _ claims: VerifiedClaims,
        _ payload: Span<UInt8>,
        _ asked: PermissionSet,
        _ bytes: inout OutputSpan<UInt8>
    ) {
        text(",\"profile\":{\"user_id\":\"", claims.subject, payload, &bytes)
        let rows = PersonalClaim.table
        for index in rows.indices {
            let claim = rows[index].claim
            switch rows[index].kind {
            case .text:
                guard let range = claims[claim] else { continue }
                name(rows[index].member, &bytes)
                text("\"", range, payload, &bytes)
                // Facebook does not say if the address is confirmed. Without this member a reader might assume it is.
                if case .email = claim { bytes.append(",\"email_verified\":false") }
            case .list:
                guard let range = claims[claim] else { continue }
                name(rows[index].member, &bytes)
                bytes.append(payload, range)
            case .birthday:
                guard let birthday = claims.birthday else { continue }
                name(rows[index].member, &bytes)
                bytes.append(UInt8(ascii: "\""))
                birthday.write(to: &bytes)
                bytes.append(UInt8(ascii: "\""))
            case .ageRange:
                guard let range = claims.ageRange else { continue }
                name(rows[index].member, &bytes)
                write(range, &bytes)
            case .place:
                guard let place = claims.place(claim) else { continue }
                name(rows[index].member, &bytes)
                text("{\"id\":\"", place.id, payload, &bytes)
                text(",\"name\":\"", place.name, payload, &bytes)
                bytes.append(UInt8(ascii: "}"))
            }
        }
        bytes.append(",\"permissions\":")
        writePermissions(PermissionSet.shown(claims.satisfiedPermissions, asked: asked), &bytes)
        bytes.append(claims.isLimited ? ",\"is_limited\":true}" : ",\"is_limited\":false}")
    }

    @inline(__always)
    private static func name(_ name: StaticString, _ bytes: inout OutputSpan<UInt8>) {
        bytes.append(",\"")
        bytes.append(name)
        bytes.append("\":")
    }

    private static func write(_ range: AgeRange, _ bytes: inout OutputSpan<UInt8>) {
        bytes.append(UInt8(ascii: "{"))
        if let minimum = range.minimum {
            bytes.append("\"min\":")
            bytes.append(decimal: minimum)
        }
        if let maximum = range.maximum {
            bytes.append(range.minimum == nil ? "\"max\":" : ",\"max\":")
            bytes.append(decimal: maximum)
        }
        bytes.append(UInt8(ascii: "}"))
    }

    /// Inlined at each call: a few stores then write the constant, and no call copies it.
    @inline(__always)
    private static func text(
        _ opening: StaticString,
        _ range: Range<Int>?,
        _ payload: Span<UInt8>,
        _ bytes: inout OutputSpan<UInt8>
    ) {
        guard let range else { return }
        bytes.append(opening)
        bytes.append(payload, range)
        bytes.append(UInt8(ascii: "\""))
    }

    /// Writes a NumericDate. Every token seen has whole seconds; a fraction is legal (RFC 7519 section 2) and is kept.
    private static func date(_ date: NumericDate, _ bytes: inout OutputSpan<UInt8>) {
        let seconds = date.secondsSince1970
        if let whole = Int(exactly: seconds) {
            bytes.append(decimal: whole)
        } else {
            for byte in "\(seconds)".utf8 { bytes.append(byte) }
        }
    }

    /// Writes the names in the order of `Permission`.
    private static func writePermissions(_ permissions: PermissionSet, _ bytes: inout OutputSpan<UInt8>) {
        bytes.append(UInt8(ascii: "["))
        let start = bytes.count
        for permission in Permission.allCases where permissions.contains(permission) {
            bytes.append(UInt8(ascii: "\""))
            bytes.append(permission.name)
            bytes.append("\",")
        }
        if bytes.count > start { _ = bytes.removeLast() }
        bytes.append(UInt8(ascii: "]"))
    }
}
