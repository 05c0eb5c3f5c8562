internal import LLBytes
internal import LLCrypto
internal import LLJOSE

/// A judged access token of a ``TokenIssuer``, with its claims as ranges into its payload.
package struct OwnToken {
    /// The claims in the same form as those of Facebook's tokens, so that answers about both are alike. The audience is
    /// `aud`.
    package let claims: VerifiedClaims
    /// The decoded payload.
    package let payload: [UInt8]
    /// `client_id`: the Facebook app.
    package let clientID: Range<Int>
    /// `auth_time`: the time at which Facebook issued the credential of the login.
    package let authenticatedAt: NumericDate
}

/// Judges the access tokens that a ``TokenIssuer`` makes. Each worker has one, because it holds prepared keys.
package final class OwnTokenVerifier {
    /// The length of a key ID: SHA-256 in digits of base64url.
    private static let keyIDDigitCount = 43

    private let policy: TokenIssuerPolicy
    private let verification: VerificationPolicy
    private let keys: [(keyID: String, algorithm: SigningKey.Algorithm, key: OwnPublicKey)]

    /// - Parameter verification: The policy with the apps that tokens may be for, and the skew.
    package init(_ issuer: TokenIssuer, verification: VerificationPolicy) {
        policy = issuer.policy
        self.verification = verification
        keys = issuer.keys.keys.compactMap { key in key.publicKey.map { (key.keyID, key.algorithm, $0) } }
    }

    /// True if the token names a key of the issuer, or the issuer itself. This proves nothing: it only selects the
    /// verifier.
    package func isOwn(_ token: Span<UInt8>) -> Bool {
        guard token.count <= VerificationLimits.tokenByteCount,
            let jws = try? JWSCompactSerialization(splitting: token),
            let header = Self.object(token, jws.header, VerificationLimits.header), let keyID = header.string("kid"),
            keyID.utf8.count == Self.keyIDDigitCount
        else { return false }
        if keys.contains(where: { $0.keyID == keyID }) { return true }
        // The token may be signed by a key that has been removed.
        guard let payload = Self.object(token, jws.payload, VerificationLimits.payload) else { return false }
        return payload.string("iss") == policy.issuer
    }

    /// Judges a token.
    /// - Parameters:
    ///   - appID: The app that the token must be for; nil for any app of the policy.
    ///   - isSigned: True if the signature was verified before, for exactly these bytes and keys.
    ///   - now: The time for which to judge.
    package func judge(
        _ token: Span<UInt8>,
        appID: [UInt8]?,
        isSigned: Bool,
        now: NumericDate
    ) throws(Rejection) -> OwnToken {
        // A mistake of the gateway's, and no fault of the token.
        if let appID, !verification.appIDs.contains(where: { $0.utf8.elementsEqual(appID) }) {
            throw Rejection(.unknownApp)
        }
        try TokenVerifier.checkSize(token)
        let jws = try TokenVerifier.split(token)
        try checkSignature(jws, token, isSigned)
        guard let payload = Self.object(token, jws.payload, VerificationLimits.payload) else {
            throw .malformedToken(.notAnObject(.payload))
        }
        let issuer = try Self.text(payload, .issuer)
        guard payload.string("iss") == policy.issuer else { throw .invalidIssuer(payload.string("iss") ?? "") }
        let audience = try Self.text(payload, .audience)
        guard let named = payload.string("aud"), policy.audiences.contains(where: { $0.utf8.elementsEqual(named.utf8) })
        else { throw .invalidAudience(.otherApp(payload.string("aud") ?? "")) }
        var claims = try times(payload, now)
        // RFC 9068 section 2.2. An id token of the issuer has no `client_id`, with any `typ`.
        guard let client = payload.member("client_id"), let clientID = payload.document.stringRange(client) else {
            throw .notAnIDToken(.ownIDToken)
        }
        let name = payload.string(client)
        guard verification.appIDs.contains(where: { $0.utf8.elementsEqual(name.utf8) }),
            appID.map({ name.utf8.elementsEqual($0) }) ?? true
        else { throw .invalidAudience(.otherApp(name)) }
        guard let authenticatedAt = payload.date("auth_time") else { throw .malformedClaim(.issuedAt, .wrongType) }
        (claims[.issuer], claims[.audience]) = (issuer, audience)
        claims[.subject] = try Self.text(payload, .subject)
        guard claims.subject.count <= VerificationLimits.subjectByteCount else {
            throw .malformedClaim(.subject, .outOfShape)
        }
        claims[.tokenID] = try Self.text(payload, .tokenID)
        Self.tell(payload, &claims)
        return OwnToken(claims: claims, payload: payload.bytes, clientID: clientID, authenticatedAt: authenticatedAt)
    }

    /// The header, the key that it names and the signature (RFC 8725 sections 3.1 and 3.11).
    private func checkSignature(
        _ jws: JWSCompactSerialization,
        _ token: Span<UInt8>,
        _ isSigned: Bool
    ) throws(Rejection) {
        guard let header = Self.object(token, jws.header, VerificationLimits.header) else {
            throw .malformedToken(.notAnObject(.header))
        }
        for name: StaticString in ["crit", "b64"] where header.member(name) != nil {
            throw Rejection(.unsupportedCriticalHeader)
        }
        for name: StaticString in ["cty", "enc", "zip"] where header.member(name) != nil {
            throw .notAnIDToken(.nested)
        }
        guard let type = header.string("typ"), TokenIssuer.AccessTokenType(rawValue: type) != nil else {
            throw .notAnIDToken(.type(nil))
        }
        guard let keyID = header.string("kid") else { throw Rejection(.missingKeyID) }
        guard let entry = keys.first(where: { $0.keyID.utf8.elementsEqual(keyID.utf8) }) else {
            throw .unknownKey(Array(keyID.utf8))
        }
        // The key decides the algorithm; the token never does.
        guard header.string("alg") == entry.algorithm.rawValue else { throw .algorithmOfAnotherKey }
        if isSigned { return }
        var signature: [UInt8] = []
        guard Base64URL.decode(token, jws.signature, into: &signature) else {
            throw .malformedToken(.invalidBase64URL(.signature))
        }
        guard let digest = try? SHA256.digest(of: token.extracting(jws.signingInput)) else { throw .cryptographyFailed }
        guard entry.key.isValidSignature(signature.span, of: digest) else { throw .invalidSignature(.mismatch) }
    }

    /// `exp`, `iat` and `nbf`. The issuer uses this service's clock, so `exp` has no skew; the clock of another replica may be
    /// ahead.
    private func times(_ payload: borrowing JSONObject, _ now: NumericDate) throws(Rejection) -> VerifiedClaims {
        guard let expiresAt = payload.date("exp") else { throw .malformedClaim(.expiration, .wrongType) }
        guard now < expiresAt else { throw .expired(at: expiresAt, now: now) }
        guard let issuedAt = payload.date("iat") else { throw .malformedClaim(.issuedAt, .wrongType) }
        guard !verification.isAhead(issuedAt, now) else { throw .notYetValid(.issuedAt, at: issuedAt, now: now) }
        // The issuer writes no `nbf`; RFC 7519 section 4.1.5 has it obeyed in a token that another program signed.
        if payload.member("nbf") != nil {
            guard let notBefore = payload.date("nbf") else { throw .malformedClaim(.notBefore, .wrongType) }
            guard !verification.isAhead(notBefore, now) else { throw .notYetValid(.notBefore, at: notBefore, now: now) }
        }
        return VerifiedClaims(issuedAt: issuedAt, expiresAt: expiresAt)
    }

    /// Reads the token's claims about the person and the device.
    private static func tell(_ payload: borrowing JSONObject, _ claims: inout VerifiedClaims) {
        let names: [(StaticString, VerifiedClaims.Text)] = [
            ("name", .name), ("given_name", .firstName), ("middle_name", .middleName), ("family_name", .lastName),
            ("email", .email), ("picture", .imageURL),
        ]
        for (name, text) in names {
            guard let range = payload.member(name).flatMap({ payload.document.stringRange($0) }), !range.isEmpty else {
                continue
            }
            claims[text] = range
        }
        if let confirmation = payload.member("cnf") {
            claims.isBoundToKey = true
            claims[.keyThumbprint] = payload.member("jkt", of: confirmation).flatMap {
                payload.document.stringRange($0)
            }
        }
        claims.notePermissions()
    }

    private static func text(_ payload: borrowing JSONObject, _ claim: ClaimName) throws(Rejection) -> Range<Int> {
        let node =
            switch claim {
            case .issuer: payload.member("iss")
            case .audience: payload.member("aud")
            case .subject: payload.member("sub")
            default: payload.member("jti")
            }
        guard let node else { throw .missingClaim(claim) }
        guard let range = payload.document.stringRange(node) else { throw .malformedClaim(claim, .wrongType) }
        guard !range.isEmpty else { throw .malformedClaim(claim, .empty) }
        return range
    }

    private static func object(_ token: Span<UInt8>, _ range: Range<Int>, _ limits: JSONLimits) -> JSONObject? {
        var bytes: [UInt8] = []
        guard Base64URL.decode(token, range, into: &bytes) else { return nil }
        return JSONObject(bytes, limits: limits)
    }
}
