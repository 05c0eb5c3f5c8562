internal import LimitedLogin

/// Writes the answer of `POST /introspect` (RFC 7662 section 2.2).
enum IntrospectAnswer {
    /// - Parameters:
    ///   - claims: the verdict's facts; nil for a token that is not active, of which nothing more is told.
    ///   - payload: the token's JSON payload, whose strings are copied with their escapes.
    static func write(_ claims: VerifiedClaims?, payload: [UInt8], to bytes: inout [UInt8]) {
        guard let claims else {
            JSONWriter.raw("{\"active\":false}", to: &bytes)
            return
        }
        JSONWriter.raw("{\"active\":true", to: &bytes)
        text(",\"iss\":\"", claims.issuer, payload, &bytes)
        text(",\"sub\":\"", claims.subject, payload, &bytes)
        text(",\"aud\":\"", claims.audience, payload, &bytes)
        // The client the token was issued to is its audience.
        text(",\"client_id\":\"", claims.audience, payload, &bytes)
        text(",\"jti\":\"", claims.tokenID, payload, &bytes)
        JSONWriter.raw(",\"exp\":", to: &bytes)
        JSONWriter.integer(Int(claims.expiresAt.wholeSeconds), to: &bytes)
        JSONWriter.raw(",\"iat\":", to: &bytes)
        JSONWriter.integer(Int(claims.issuedAt.wholeSeconds), to: &bytes)
        // The scope is what the claims show; a token does not list what was granted.
        let scope = claims.permissions.permissions.map(\.rawValue).joined(separator: " ")
        JSONWriter.raw(",", to: &bytes)
        JSONWriter.member("scope", scope, to: &bytes)
        text(",\"nonce\":\"", claims.nonce, payload, &bytes)
        text(",\"name\":\"", claims.name, payload, &bytes)
        text(",\"given_name\":\"", claims.firstName, payload, &bytes)
        text(",\"middle_name\":\"", claims.middleName, payload, &bytes)
        text(",\"family_name\":\"", claims.lastName, payload, &bytes)
        text(",\"email\":\"", claims.email, payload, &bytes)
        text(",\"picture\":\"", claims.imageURL, payload, &bytes)
        JSONWriter.raw("}", to: &bytes)
    }

    private static func text(
        _ opening: StaticString,
        _ range: Range<Int>?,
        _ payload: [UInt8],
        _ bytes: inout [UInt8]
    ) {
        guard let range else { return }
        JSONWriter.raw(opening, to: &bytes)
        bytes.append(payload.span, range)
        bytes.append(UInt8(ascii: "\""))
    }
}
