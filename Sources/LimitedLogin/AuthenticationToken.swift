/// What an accepted token says about itself.
public struct AuthenticationToken: Equatable, Sendable {
    /// The token as it was received.
    public let tokenString: String
    /// `iss`: who issued it.
    public let issuer: String
    /// `aud`: the app it is for.
    public let audience: String
    /// `sub`: the person, under an ID that only this app knows.
    public let subject: String
    /// `jti`: the token's own name.
    public let tokenID: String
    /// `nonce`; empty when the login was started without one, nil when there is no such claim.
    public let nonce: String?
    /// `iat`: when it was issued.
    public let issuedAt: NumericDate
    /// `exp`: until when it is valid.
    public let expiresAt: NumericDate
    /// `kid`: the key that signed it.
    public let keyID: String
    /// The tracking the login was made with, as far as the token shows.
    public let tracking: LoginTracking
}
