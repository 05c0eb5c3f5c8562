package import LLJOSE
package import LLStandIn

/// The claims of a token to mint. Nil leaves a claim out.
package struct MintedClaims: Sendable {
    /// `iss`
    package var issuer: String? = "https://www.facebook.com"
    /// `aud`
    package var audience: String?
    /// `sub`
    package var subject: String?
    /// `iat`, in seconds since 1970
    package var issuedAt: Int64?
    /// `exp`, in seconds since 1970
    package var expiresAt: Int64?
    /// `jti`
    package var tokenID: String?
    /// `nonce`
    package var nonce: String?
    /// `at_hash`
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
    /// `cnf.jkt`: the thumbprint of a DPoP key
    package var confirmationThumbprint: String?

    /// The claims that every token has, with a fresh `jti` and Facebook's lifetime of one hour from `issuedAt`.
    package init(audience: String, subject: String, nonce: String, issuedAt: Int64) {
        self.audience = audience
        self.subject = subject
        self.nonce = nonce
        self.issuedAt = issuedAt
        self.expiresAt = issuedAt &+ 3600
        self.tokenID = Self.makeTokenID()
    }

    /// A `jti` in Facebook's form: four letters or digits, a full stop, 64 hexadecimal digits.
    package static func makeTokenID() -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
        let digits = Array("0123456789abcdef")
        let prefix = (0..<4).compactMap { _ in letters.randomElement() }
        let suffix = (0..<64).compactMap { _ in digits.randomElement() }
        return String(prefix) + "." + String(suffix)
    }
}

extension MintedClaims {
    /// The members in the order of Facebook's own tokens, each value in Facebook's spelling.
    package var members: [FacebookJSON.Member] {
        var members: [FacebookJSON.Member] = []
        func add(_ name: String, _ text: String?) {
            if let text { members.append((name, FacebookJSON.string(text))) }
        }
        add("iss", issuer)
        add("aud", audience)
        add("sub", subject)
        if let issuedAt { members.append(("iat", String(issuedAt))) }
        if let expiresAt { members.append(("exp", String(expiresAt))) }
        add("jti", tokenID)
        add("nonce", nonce)
        add("at_hash", accessTokenHash)
        add("email", email)
        add("given_name", givenName)
        add("middle_name", middleName)
        add("family_name", familyName)
        add("name", name)
        add("picture", picture)
        if let friendIDs {
            members.append(("user_friends", "[" + friendIDs.map(FacebookJSON.string).joined(separator: ",") + "]"))
        }
        add("user_birthday", birthday)
        if let ageRange {
            let bounds = [("min", ageRange.minimum), ("max", ageRange.maximum)]
            members.append(
                (
                    "user_age_range",
                    FacebookJSON.object(bounds.compactMap { name, value in value.map { (name, "\($0)") } })
                )
            )
        }
        if let hometown { members.append(("user_hometown", Self.place(hometown))) }
        if let location { members.append(("user_location", Self.place(location))) }
        add("user_gender", gender)
        add("user_link", link)
        if let confirmationThumbprint {
            members.append(("cnf", FacebookJSON.object([("jkt", FacebookJSON.string(confirmationThumbprint))])))
        }
        return members
    }

    /// The payload's bytes.
    package var payload: [UInt8] { Array(FacebookJSON.object(members).utf8) }

    private static func place(_ place: (id: String, name: String)) -> String {
        FacebookJSON.object([("id", FacebookJSON.string(place.id)), ("name", FacebookJSON.string(place.name))])
    }
}

extension TokenMinter {
    /// A token with these claims.
    package func mint(_ claims: MintedClaims) throws(OpenSSLError) -> String {
        try mint(header: header, payload: claims.payload)
    }

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
        try mint(header: header, payload: Array(FacebookJSON.object(members).utf8))
    }
}
