package import LLJOSE
package import LLStandIn

/// The claims of a token to mint, by the members below. Nil leaves a claim out.
package struct MintedClaims: Sendable {
    package var issuer: String? = "https://www.facebook.com"
    package var audience, subject, tokenID, nonce, accessTokenHash: String?
    /// Seconds since 1970.
    package var issuedAt, expiresAt: Int64?
    package var email, givenName, middleName, familyName, name, picture, birthday, gender, link: String?
    package var friendIDs: [String]?
    package var ageRange: (minimum: Int?, maximum: Int?)?
    package var hometown, location: (id: String, name: String)?
    /// The thumbprint of a DPoP key.
    package var confirmationThumbprint: String?

    /// The claims that every token has, with a fresh `jti` and Facebook's lifetime of one hour from `issuedAt`.
    package init(audience: String, subject: String, nonce: String, issuedAt: Int64) {
        (self.audience, self.subject, self.nonce) = (audience, subject, nonce)
        (self.issuedAt, self.expiresAt) = (issuedAt, issuedAt &+ 3600)
        self.tokenID = "\(String.random(4)).\(String.random(64))"
    }
}

extension MintedClaims {
    /// The members in the order of Facebook's own tokens, each value in Facebook's spelling.
    package var members: [FacebookJSON.Member] {
        let text = FacebookJSON.string
        let all: [(name: String, json: String?)] = [
            ("iss", issuer.map(text)), ("aud", audience.map(text)), ("sub", subject.map(text)),
            ("iat", issuedAt.map { "\($0)" }), ("exp", expiresAt.map { "\($0)" }), ("jti", tokenID.map(text)),
            ("nonce", nonce.map(text)), ("at_hash", accessTokenHash.map(text)), ("email", email.map(text)),
            ("given_name", givenName.map(text)), ("middle_name", middleName.map(text)),
            ("family_name", familyName.map(text)), ("name", name.map(text)), ("picture", picture.map(text)),
            ("user_friends", friendIDs.map(FacebookJSON.list)), ("user_birthday", birthday.map(text)),
            ("user_age_range", ageRange.map(Self.range)), ("user_hometown", hometown.map(Self.place)),
            ("user_location", location.map(Self.place)), ("user_gender", gender.map(text)),
            ("user_link", link.map(text)),
            ("cnf", confirmationThumbprint.map { FacebookJSON.object([("jkt", text($0))]) }),
        ]
        return all.compactMap { name, json in json.map { (name, $0) } }
    }

    package var payload: [UInt8] { Array(FacebookJSON.object(members).utf8) }

    private static func range(_ ages: (minimum: Int?, maximum: Int?)) -> String {
        let bounds = [("min", ages.minimum), ("max", ages.maximum)]
        return FacebookJSON.object(bounds.compactMap { name, age in age.map { (name, "\($0)") } })
    }

    private static func place(_ place: (id: String, name: String)) -> String {
        FacebookJSON.object([("id", FacebookJSON.string(place.id)), ("name", FacebookJSON.string(place.name))])
    }
}

extension TokenMinter {
    package func mint(_ claims: MintedClaims) throws(OpenSSLError) -> String { try mint(payload: claims.payload) }

    /// A token of exactly `length` bytes; nil if there is none. Spaces before the payload fill it up. Base64url encodes
    /// three bytes in four digits and so skips some lengths; spaces behind the header reach them.
    package func mint(ofLength length: Int, _ claims: MintedClaims) throws(OpenSSLError) -> String? {
        for blanks in 0..<4 {
            let header = header + [UInt8](repeating: 0x20, count: blanks)
            let bare = try mint(header: header, payload: claims.payload)
            let missing = max(0, length - bare.utf8.count) * 3 / 4
            for count in max(0, missing - 2)..<missing + 3 {
                let token = try mint(header: header, payload: [UInt8](repeating: 0x20, count: count) + claims.payload)
                if token.utf8.count == length { return token }
            }
        }
        return nil
    }

    /// A token with these members as its payload, in this order. Repeated members are kept.
    package func mint(members: [FacebookJSON.Member]) throws(OpenSSLError) -> String {
        try mint(payload: Array(FacebookJSON.object(members).utf8))
    }
}
