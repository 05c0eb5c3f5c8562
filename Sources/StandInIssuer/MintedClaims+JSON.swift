extension MintedClaims {
    /// A member of the payload: its name, and its value as JSON text.
    package typealias Member = (name: String, json: String)

    /// The members in the order of Facebook's own tokens, each value in its spelling.
    package var members: [Member] {
        var members: [Member] = []
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
