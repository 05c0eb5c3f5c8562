internal import LLBytes
internal import LLJOSE

/// The materials for the tokens of the catalogue: one login, the published keys, and one unpublished key.
package struct CatalogueWorkshop: Sendable {
    package typealias Minters = (newest: TokenMinter, older: TokenMinter, stranger: TokenMinter)

    static let accessToken = "EAAB" + String(repeating: "ZCstandIn0", count: 6) + "ZD"
    /// The example of RFC 7638 section 3.1: the thumbprint of a key that no token names.
    static let thumbprint = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"

    package let nonce: String
    /// Seconds since 1970.
    package let now: Int64
    let keys: Minters
    package var template: ClaimsTemplate
    package var person = jane

    package init(template: ClaimsTemplate, keys: Minters, nonce: String, now: Int64) {
        (self.template, self.keys, self.nonce, self.now) = (template, keys, nonce, now)
    }

    package var audience: String { template.audience }

    package static let janesID = "2954873201847263"

    /// Every claim about a person that a Limited Login can bring, as JSON.
    package static let jane: [FacebookJSON.Member] = [
        ("sub", "\"\(janesID)\""), ("email", "\"jane.doe@example.com\""), ("given_name", "\"Jane\""),
        ("middle_name", "\"Q\""), ("family_name", "\"Doe\""), ("name", "\"Jane Q Doe\""),
        ("picture", "\"https://platform-lookaside.fbsbx.com/platform/profilepic/?asid=2954873201847263&height=100\""),
        ("user_friends", "[\"1122334455\",\"5566778899\"]"), ("user_birthday", "\"01/02/1990\""),
        ("user_age_range", "{\"min\":21}"), ("user_link", "\"https://www.facebook.com/jane\""),
        ("user_hometown", "{\"id\":\"112724962075996\",\"name\":\"Martinez, California\"}"),
        ("user_location", "{\"id\":\"110843418940484\",\"name\":\"Seattle, Washington\"}"),
        ("user_gender", "\"female\""),
    ]

    /// The payload of a good token, with these claims (JSON values) in place of its own, and one omitted.
    package func payload(_ claims: [FacebookJSON.Member] = [], without omitted: String? = nil) throws -> String {
        let kept = person.filter { own in own.name != omitted && !claims.contains { $0.name == own.name } }
        let text = Array(FacebookJSON.object(claims + kept).utf8)
        let payload = try template.payload(claims: text, nonce: nonce, now: now, without: omitted)
        return String(decoding: payload, as: UTF8.self)
    }

    /// The header of Facebook's tokens, with members added, one omitted, or the name of another key.
    func header(
        _ more: [FacebookJSON.Member] = [],
        without omitted: String? = nil,
        of minter: TokenMinter? = nil
    ) -> String { FacebookJSON.object((minter ?? keys.newest).headerMembers.filter { $0.name != omitted } + more) }

    /// A token with these claims in place of its own.
    package func token(
        _ claims: [FacebookJSON.Member] = [],
        without omitted: String? = nil,
        signedBy minter: TokenMinter? = nil
    ) throws -> String { try minted(payload: payload(claims, without: omitted), signedBy: minter) }

    func minted(header: String? = nil, payload: String? = nil, signedBy minter: TokenMinter? = nil) throws -> String {
        let payload = try payload ?? self.payload()
        return try (minter ?? keys.newest).mint(header: header.map { Array($0.utf8) }, payload: Array(payload.utf8))
    }

    /// A token that ends before its signature.
    func unsigned(algorithm: String) throws -> String {
        let header = "{\"alg\":\"\(algorithm)\",\"typ\":\"JWT\",\"kid\":\"\(keys.newest.keyID)\"}"
        return try "\(Base64URL.encode(header.utf8)).\(Base64URL.encode(payload().utf8))."
    }

    /// The oldest confusion of algorithms: the public key, which is known to all, used as a shared secret.
    func signedWithPublicKey() throws -> String {
        let token = try unsigned(algorithm: "HS256")
        let code = try HMACSHA256.authenticationCode(
            for: Array(token.utf8.dropLast()).span,
            key: Array(try keys.newest.key.publicPEM().utf8).span
        )
        return token + code.base64URL
    }

    /// The token with the next base64url digit at its end: a signature of 256 bytes leaves four bits of the last digit
    /// unused.
    static func respelled(_ token: String) -> String {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        guard let last = token.last, let place = digits.firstIndex(of: last) else { return token }
        return token.dropLast() + String(digits[place ^ 1])
    }
}

/// Turns requested claims into a payload in Facebook's wire style. The caller's members are used unchanged, even with wrong
/// types, so that bad tokens can be made. The claims that every token has are filled in.
package struct ClaimsTemplate: Sendable {
    /// The claims in the order of Facebook's tokens; other claims follow in their given order.
    private static let order = [
        "iss", "aud", "sub", "iat", "exp", "jti", "nonce", "at_hash", "email", "given_name", "middle_name",
        "family_name", "name", "picture", "user_friends", "user_birthday", "user_age_range", "user_link",
        "user_hometown", "user_location", "user_gender", "cnf",
    ]

    package let issuer: String
    package var audience: String

    package init(issuer: String, audience: String) { (self.issuer, self.audience) = (issuer, audience) }

    /// The payload of a token with the claims of a JSON object, or of an empty text, without the `dropped` ones. The claim
    /// `omitted` is not filled in; `now`, in seconds since 1970, is for the defaults of `iat` and `exp`.
    package func payload(
        claims text: [UInt8],
        dropping dropped: Set<String> = [],
        nonce: String = "",
        now: Int64,
        without omitted: String? = nil
    ) throws(StandInRefusal) -> [UInt8] {
        var object = JSONObject()
        object.bytes = text.isEmpty ? Array("{}".utf8) : text
        let isObject: Bool
        do throws(JSONError) {
            isObject = try object.read()
        } catch { throw StandInRefusal("the claims are not acceptable JSON: \(error)") }
        guard isObject else { throw StandInRefusal("the claims must be a JSON object") }
        let given: [FacebookJSON.Member] = object.members.filter { !dropped.contains($0.name) }
            .map { ($0.name, object.respelled($0.node)) }
        let start = given.first { $0.name == "iat" }.flatMap { Int64($0.json) } ?? now
        // Every real token is valid for one hour.
        let (end, overflow) = start.addingReportingOverflow(3600)
        // The jti of a real token is 4 letters or digits, a full stop, and 64 hexadecimal digits.
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
