/// Turns the claims somebody asks for into a payload in Facebook's wire style.
///
/// The caller's members are taken as they are, also with wrong types, so that bad tokens can be made; the ones every
/// token has are filled in, and all stand in Facebook's order with Facebook's escapes.
package struct ClaimsTemplate: Sendable {
    /// The claims in the order of Facebook's tokens; others follow in the order they were given.
    private static let order = [
        "iss", "aud", "sub", "iat", "exp", "jti", "nonce", "at_hash", "email", "given_name", "middle_name",
        "family_name", "name", "picture", "user_friends", "user_birthday", "user_age_range", "user_link",
        "user_hometown", "user_location", "user_gender", "cnf",
    ]

    /// `iss` where none is given.
    let issuer: String
    /// `aud` where none is given.
    let audience: String

    package init(issuer: String, audience: String) {
        self.issuer = issuer
        self.audience = audience
    }

    /// The payload of a token.
    ///
    /// - Parameters:
    ///   - text: a JSON object of claims; nothing at all stands for an empty one.
    ///   - dropped: claims of the text that are not taken.
    ///   - nonce: the nonce where none is given.
    ///   - now: seconds since 1970, for `iat` and `exp` where none are given.
    ///   - omitted: the claim that is not filled in.
    func payload(
        claims text: [UInt8],
        dropping dropped: Set<String> = [],
        nonce: String = "",
        now: Int64,
        without omitted: String? = nil
    ) throws(StandInRefusal) -> [UInt8] {
        let object = try ReceivedObject(text.isEmpty ? Array("{}".utf8) : text)
        let given: [FacebookJSON.Member] = object.members.filter { !dropped.contains($0.name) }
            .map { ($0.name, object.respelled($0.value)) }
        let start = given.first { $0.name == "iat" }.flatMap { Int64($0.json) } ?? now
        // Every real token lives for an hour.
        let (end, overflow) = start.addingReportingOverflow(3600)
        // Every real one is 4 letters or digits, and 64 hexadecimal digits.
        let tokenID =
            String.random(4, of: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") + "." + .random(64)
        let filled: [FacebookJSON.Member] = [
            ("iss", FacebookJSON.string(issuer)), ("aud", FacebookJSON.string(audience)),
            ("sub", FacebookJSON.string(CatalogueWorkshop.janesID)), ("iat", "\(start)"),
            ("exp", "\(overflow ? start : end)"), ("jti", "\"\(tokenID)\""),
            ("nonce", FacebookJSON.string(nonce)),
        ]
        let names = given.map(\.name)
        let claims = given + filled.filter { !names.contains($0.name) && $0.name != omitted }
        let ordered = Self.order.flatMap { name in claims.filter { $0.name == name } }
        return Array(FacebookJSON.object(ordered + claims.filter { !Self.order.contains($0.name) }).utf8)
    }
}
