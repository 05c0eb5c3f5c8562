/// Every claim of an accepted token, the ones this library knows nothing about too.
public struct AuthenticationTokenClaims: Equatable, Sendable {
    /// The payload as the issuer wrote it: one JSON object, UTF-8, no member named twice.
    public let json: String
    /// `cnf.jkt`: the RFC 7638 thumbprint of the key the token is bound to (RFC 9449 section 6.1); nil when there
    /// is none or it is no string. It is told, not checked: proving possession is between Facebook and the SDK.
    public let confirmationKeyThumbprint: String?
}
