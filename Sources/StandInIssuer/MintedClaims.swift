/// The claims of a token to mint. Nil leaves a claim out.
package struct MintedClaims: Sendable {
    package var issuer: String? = "https://www.facebook.com"
    package var audience: String?
    package var subject: String?
    package var issuedAt: Int64?
    package var expiresAt: Int64?
    package var tokenID: String?
    package var nonce: String?
    package var accessTokenHash: String?
    package var email: String?
    package var givenName: String?
    package var middleName: String?
    package var familyName: String?
    package var name: String?
    package var picture: String?
    package var friendIDs: [String]?
    package var birthday: String?
    package var ageRange: (minimum: Int?, maximum: Int?)?
    package var hometown: (id: String, name: String)?
    package var location: (id: String, name: String)?
    package var gender: String?
    package var link: String?
    /// `cnf.jkt`: the thumbprint of a DPoP key.
    package var confirmationThumbprint: String?

    /// The claims every token has; `issuedAt` in seconds since 1970, the life as Facebook's: 3600 s.
    package init(audience: String, subject: String, nonce: String, issuedAt: Int64) {
        self.audience = audience
        self.subject = subject
        self.nonce = nonce
        self.issuedAt = issuedAt
        self.expiresAt = issuedAt &+ 3600
    }
}
