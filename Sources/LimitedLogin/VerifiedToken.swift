internal import LLBytes
internal import LLJOSE

/// An accepted token. Only a verifier makes one, so a value of this type proves a login; ``LoginRecord`` is its copy to store.
public struct VerifiedToken: Equatable, Sendable, Redacted {
    /// The token's facts about itself.
    public let authenticationToken: AuthenticationToken
    /// The token's facts about the person.
    public let profile: Profile
    /// Every claim of the token, including those unknown to this library: the payload as the issuer wrote it, one JSON
    /// object in UTF-8, without a repeated member.
    public let claimsJSON: String
    private let satisfiedPermissions: PermissionSet

    /// The permissions that the token shows as granted, for a login that requested `permissions`.
    ///
    /// The claims of `public_profile` and the gaming permissions are the same. If the login asked for
    /// ``Permission/gamingProfile`` or ``Permission/gamingUserPicture`` alone, those are returned in its place.
    public func shownPermissions(among permissions: [Permission]) -> [Permission] {
        PermissionSet.shown(satisfiedPermissions, asked: PermissionSet(permissions)).permissions
    }

    /// The members of `permissions` for which the token shows no claim. A permission that yields no claim
    /// (`user_messenger_contact`) is never among them.
    public func missingPermissions(among permissions: [Permission]) -> [Permission] {
        permissions.filter(PermissionSet.missing(satisfiedPermissions, asked: PermissionSet(permissions)).contains)
    }
}

/// The facts of an accepted token about itself.
public struct AuthenticationToken: Equatable, Sendable, Redacted {
    /// The token as it was received.
    public let tokenString: String
    /// `iss`: the issuer.
    public let issuer: String
    /// `aud`: the app it is for.
    public let audience: String
    /// `sub`: the person, under an ID that only this app knows.
    public let subject: String
    /// `jti`: the token's own identifier.
    public let tokenID: String
    /// `nonce`; empty if the login was started without one, nil if there is no such claim.
    public let nonce: String?
    /// `iat`: the time of issue.
    public let issuedAt: NumericDate
    /// `exp`: the end of its life. It is accepted longer by the policy's clock skew.
    public let expiresAt: NumericDate
    /// `kid`: the key that signed it.
    public let keyID: String
    /// `cnf.jkt`: the RFC 7638 thumbprint of the key that the token is bound to (RFC 9449 section 6.1), of which the caller
    /// shows a ``DPoPProof``; nil without `cnf`, and empty if that has no readable `jkt`: refuse such a token.
    public let keyThumbprint: String?
}

extension VerifiedToken {
    /// Copies the judged facts out of the workspace.
    init(_ token: String, _ claims: VerifiedClaims, _ workspace: borrowing VerificationWorkspace) {
        let payload = workspace.payload
        func text(_ range: Range<Int>) -> String { JSONText.value(payload.span, range) }
        let subject = text(claims.subject)
        let thumbprint: String? =
            switch claims.keyBinding {
            case .none: nil
            case .key(let range): text(range)
            case .unreadable: ""
            }
        var profile = Profile(userID: subject, permissions: claims.permissions.permissions, isLimited: claims.isLimited)
        for (row, fact) in PersonalClaim.rows {
            if let node = workspace.claims[row.claim] { profile.read(fact, node, in: workspace.claimsSet) }
        }
        self.init(
            authenticationToken: AuthenticationToken(
                tokenString: token,
                issuer: text(claims.issuer),
                audience: text(claims.audience),
                subject: subject,
                tokenID: text(claims.tokenID),
                nonce: claims[.nonce].map(text),
                issuedAt: claims.issuedAt,
                expiresAt: claims.expiresAt,
                keyID: String(decoding: workspace.keyID, as: UTF8.self),
                keyThumbprint: thumbprint
            ),
            profile: profile,
            claimsJSON: String(decoding: payload, as: UTF8.self),
            satisfiedPermissions: claims.satisfiedPermissions
        )
    }
}
