internal import LLBytes
internal import LLJOSE

/// A judged access token of a ``TokenIssuer``, with its claims as ranges into its payload.
package struct OwnToken {
    package let claims: VerifiedClaims
    package let payload: [UInt8]
    package let clientID: Range<Int>
    package let authenticatedAt: NumericDate
}

/// Judges the access tokens that a ``TokenIssuer`` makes. Each worker has one, because it holds prepared keys.
package final class OwnTokenVerifier {
    private let issuers: ByteStringSet
    private let audiences: ByteStringSet
    private let apps: ByteStringSet
    private let verification: VerificationPolicy
    private let keys: [(keyID: String, algorithm: SigningKey.Algorithm, key: PublicKey)]
    private var workspace = VerificationWorkspace()

    package init(_ issuer: TokenIssuer, verification: VerificationPolicy) {
        issuers = ByteStringSet([issuer.policy.issuer])
        audiences = ByteStringSet(issuer.policy.audiences)
        apps = ByteStringSet(verification.appIDs)
        self.verification = verification
        keys = issuer.keys.keys.compactMap { signer in
            (try? PublicKey(signer.key.numbers)).map { (signer.keyID, signer.algorithm, $0) }
        }
    }

    /// True if the header names a key of the issuer, or a key of that form and the type of an access token: the issuer's
    /// key may have been removed. This proves nothing: it only selects the verifier.
    package func isOwn(_ token: Span<UInt8>) -> Bool {
        guard token.count <= VerificationLimits.tokenByteCount,
            let jws = JWSCompactSerialization(splitting: token),
            let header = JSONObject(token, jws.header, limits: VerificationLimits.header),
            // SHA-256 in digits of base64url.
            let keyID = header.string("kid"), keyID.utf8.count == 43
        else { return false }
        return keys.contains { $0.keyID == keyID } || header.string("typ") == "at+jwt"
    }

    /// Judges a token for one app or any of the policy. `isSigned` says that the signature was verified before, for exactly
    /// these bytes and keys.
    package func judge(
        _ token: Span<UInt8>,
        appID: [UInt8]?,
        isSigned: Bool,
        now: NumericDate
    ) throws(Rejection) -> OwnToken {
        // A mistake of the gateway's, and no fault of the token.
        if let appID, !apps.contains(appID.span, appID.indices) { throw Rejection(.unknownApp) }
        let jws = try workspace.readParts(token)
        try workspace.checkType(isOwn: true)
        try workspace.readKeyID()
        guard let entry = keys.first(where: { $0.keyID.utf8.elementsEqual(workspace.keyID) }) else {
            throw .unknownKey(workspace.keyID)
        }
        // The key decides the algorithm; the token never does (RFC 8725 section 3.1).
        guard workspace.header.string("alg") == entry.algorithm.rawValue else { throw .algorithmOfAnotherKey }
        if !isSigned { try workspace.checkSignature(jws, of: token, by: entry.key) }
        try workspace.readPayload()
        try workspace.checkIssuer(issuers)
        let audience = try workspace.requireString(.audience)
        guard workspace.isMember(audience, of: audiences) else {
            throw .otherAudience(workspace.claimsSet.string(audience))
        }
        let times = try workspace.checkTimes(verification, now, isOwn: true)
        // RFC 9068 section 2.2. An id token of the issuer has no `client_id`, with any `typ`.
        guard let client = workspace.claimsSet.member("client_id"),
            let clientID = workspace.claimsSet.document.stringRange(client)
        else { throw .ownIDToken }
        let isExpected = workspace.withValue(client) { bytes, range in
            apps.contains(bytes, range) && appID.map { bytes.equal(range, $0.span) } ?? true
        }
        guard isExpected else { throw .otherAudience(workspace.claimsSet.string(client)) }
        guard let authenticatedAt = workspace.claimsSet.date("auth_time") else {
            throw .malformedClaim(.issuedAt, .wrongType)
        }
        try workspace.checkIdentity()
        return OwnToken(
            claims: workspace.verifiedClaims(times, PersonalClaim.told),
            payload: workspace.payload,
            clientID: clientID,
            authenticatedAt: authenticatedAt
        )
    }
}

/// An accepted access token of a ``TokenIssuer``. Only ``TokenIssuer/verify(_:audience:policy:now:)`` makes one.
public struct VerifiedOwnToken: Equatable, Sendable, Redacted {
    /// `client_id`: the Facebook app of the login.
    public let appID: String
    /// `sub`: the person, under an ID that only this app knows.
    public let userID: String
    /// `jti`: the token's own identifier.
    public let tokenID: String
    /// `auth_time`: the time at which Facebook issued the login's credential. Refuse the token if you revoked the login later.
    public let authenticatedAt: NumericDate
    /// `exp`: the end of the token's life.
    public let expiresAt: NumericDate
    /// `cnf.jkt`: the RFC 7638 thumbprint of the device's key, of which the holder shows a ``DPoPProof``; nil if there is none.
    public let keyThumbprint: String?
    /// Every claim of the token: one JSON object.
    public let claimsJSON: String
}

extension TokenIssuer {
    /// Verifies an access token that this issuer made, with any of its keys. `audience` is your own name among the audiences;
    /// `policy` gives the apps and the clock skew.
    /// - Throws: ``Rejection``, the one reason for the refusal; ``Unavailable`` if OpenSSL fails.
    public func verify(
        _ token: String,
        audience: String,
        policy: VerificationPolicy,
        now: NumericDate
    ) throws -> VerifiedOwnToken {
        try Rejection.asError { () throws(Rejection) in
            let verifier = OwnTokenVerifier(self, verification: policy)
            let own = try verifier.judge(token.utf8.span, appID: nil, isSigned: false, now: now)
            func text(_ range: Range<Int>) -> String { JSONText.value(own.payload.span, range) }
            let named = text(own.claims.audience)
            guard named.utf8.elementsEqual(audience.utf8) else { throw .otherAudience(named) }
            return VerifiedOwnToken(
                appID: text(own.clientID),
                userID: text(own.claims.subject),
                tokenID: text(own.claims.tokenID),
                authenticatedAt: own.authenticatedAt,
                expiresAt: own.claims.expiresAt,
                keyThumbprint: own.claims[.confirmation].map(text),
                claimsJSON: String(decoding: own.payload, as: UTF8.self)
            )
        }
    }
}
