internal import Bytes
package import OpenSSL

/// What the tokens of the catalogue are made with: one login, the keys that are published, and one that is not.
package struct CatalogueWorkshop: Sendable {
    /// A made-up access token in Facebook's shape.
    static let accessToken = "EAAB" + String(repeating: "ZCstandIn0", count: 6) + "ZD"
    /// The example of RFC 7638 section 3.1.
    static let thumbprint = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"

    /// The app that tokens are for.
    package let audience: String
    /// The nonce of the login.
    package let nonce: String
    /// Seconds since 1970.
    package let now: Int64
    /// The key that signs.
    let newest: TokenMinter
    /// The other published key.
    let older: TokenMinter
    /// A key that was never published.
    let stranger: TokenMinter
    private let template: ClaimsTemplate
    private let person: [FacebookJSON.Member]

    /// - Parameter person: what the token tells of the person.
    package init(
        template: ClaimsTemplate,
        keys: IssuerKeyRing,
        nonce: String,
        now: Int64,
        audience: String? = nil,
        person: [FacebookJSON.Member] = jane
    ) throws(OpenSSLError) {
        let published = keys.published
        stranger = try keys.stranger()
        newest = published.first ?? stranger
        older = published.last ?? stranger
        self.template = template
        self.audience = audience ?? template.audience
        self.nonce = nonce
        self.now = now
        self.person = person
    }

    /// Jane's `sub`.
    package static let janesID = "2954873201847263"

    /// Every claim about a person that a Limited Login can bring, as JSON.
    package static let jane: [FacebookJSON.Member] = [
        ("sub", "\"\(janesID)\""), ("email", "\"jane.doe@example.com\""), ("given_name", "\"Jane\""),
        ("middle_name", "\"Q\""), ("family_name", "\"Doe\""), ("name", "\"Jane Q Doe\""),
        (
            "picture",
            "\"https://platform-lookaside.fbsbx.com/platform/profilepic/?asid=2954873201847263&height=100\""
        ),
        ("user_friends", "[\"1122334455\",\"5566778899\"]"), ("user_birthday", "\"01/02/1990\""),
        ("user_age_range", "{\"min\":21}"), ("user_link", "\"https://www.facebook.com/jane\""),
        ("user_hometown", "{\"id\":\"112724962075996\",\"name\":\"Martinez, California\"}"),
        ("user_location", "{\"id\":\"110843418940484\",\"name\":\"Seattle, Washington\"}"),
        ("user_gender", "\"female\""),
    ]

    /// A token's parts as they are sent.
    struct Parts {
        let signingInput: String
        let signature: String

        /// The same parts with another signature.
        func signed(with signature: String) -> String { "\(signingInput).\(signature)" }
    }

    /// The payload, with these claims (JSON values) in place of its own, and one left out.
    func payload(_ claims: [FacebookJSON.Member] = [], without omitted: String? = nil) throws -> String {
        var members = claims
        func add(_ name: String, _ json: String) {
            if !members.contains(where: { $0.name == name }) { members.append((name, json)) }
        }
        add("aud", FacebookJSON.string(audience))
        add("nonce", FacebookJSON.string(nonce))
        for (name, json) in person where name != omitted { add(name, json) }
        let text = "{" + members.map { "\"\($0.name)\":\($0.json)" }.joined(separator: ",") + "}"
        return String(
            decoding: try template.payload(claims: Array(text.utf8), now: now, without: omitted),
            as: UTF8.self
        )
    }

    /// The header of Facebook's tokens, with members (JSON) added, one left out, or another key's name.
    func header(more: String? = nil, without omitted: String? = nil, keyID: String? = nil) -> String {
        let name = FacebookJSON.string(keyID ?? newest.keyID)
        var members = [("alg", "\"RS256\""), ("typ", "\"JWT\""), ("kid", name)]
            .filter { $0.0 != omitted }.map { "\"\($0)\":\($1)" }
        if let more { members.append(more) }
        return "{" + members.joined(separator: ",") + "}"
    }

    /// A token with these claims in place of its own.
    func token(
        _ claims: [FacebookJSON.Member] = [],
        without omitted: String? = nil,
        signedBy minter: TokenMinter? = nil
    ) throws -> String {
        try minted(payload: payload(claims, without: omitted), signedBy: minter)
    }

    /// A token with exactly this header or payload.
    func minted(header: String? = nil, payload: String? = nil, signedBy minter: TokenMinter? = nil) throws -> String {
        let minter = minter ?? newest
        return try minter.mint(
            header: header.map { Array($0.utf8) } ?? minter.header,
            payload: Array((payload ?? self.payload()).utf8)
        )
    }

    /// The parts of a good token, or of one with this payload.
    func parts(payload: String? = nil) throws -> Parts {
        let text = try minted(payload: payload).split(separator: ".", omittingEmptySubsequences: false)
        return Parts(signingInput: "\(text[0]).\(text[1])", signature: String(text[2]))
    }

    /// A token that says it needs no signature.
    func unsigned(algorithm: String) throws -> String {
        let header = "{\"alg\":\"\(algorithm)\",\"typ\":\"JWT\",\"kid\":\"\(newest.keyID)\"}"
        return try "\(Self.encoded(header)).\(Self.encoded(payload()))."
    }

    /// The oldest confusion: a public key, which everybody has, taken as a shared secret.
    func signedWithPublicKey() throws -> String {
        let header = "{\"alg\":\"HS256\",\"typ\":\"JWT\",\"kid\":\"\(newest.keyID)\"}"
        let input = try "\(Self.encoded(header)).\(Self.encoded(payload()))"
        let code = try HMACSHA256.authenticationCode(
            for: Array(input.utf8).span,
            key: Array(newest.publicKeyPEM.utf8).span
        )
        return "\(input).\(String(decoding: code.base64URL, as: UTF8.self))"
    }

    /// The text with one digit of its `exp` changed: the first byte that is worth forging.
    static func changed(_ payload: String) -> String {
        var bytes = Array(payload.utf8)
        guard let place = bytes.lastIndex(where: { $0 &- 0x30 < 10 }) else { return payload }
        bytes[place] = bytes[place] == 0x39 ? 0x38 : bytes[place] + 1
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The token with the next digit of base64url at its end: 256 bytes leave four bits of it unused.
    static func respelled(_ token: String) -> String {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        guard let last = token.last, let place = digits.firstIndex(of: last) else { return token }
        return token.dropLast() + String(digits[place ^ 1])
    }

    private static func encoded(_ text: String) -> String {
        String(decoding: Base64URL.encode(Array(text.utf8)), as: UTF8.self)
    }
}

extension TokenMinter {
    /// The public key as a PEM file (RFC 7468 section 13): a SubjectPublicKeyInfo of RSA (RFC 3279 section 2.3.1).
    package var publicKeyPEM: String {
        func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
            // DER: a length below 128 is one byte, a greater one is preceded by the count of its bytes.
            let count = content.count
            let high = UInt8(truncatingIfNeeded: count >> 8)
            let low = UInt8(truncatingIfNeeded: count)
            let length: [UInt8] = count < 128 ? [low] : high == 0 ? [0x81, low] : [0x82, high, low]
            return [tag] + length + content
        }
        func integer(_ bytes: [UInt8]) -> [UInt8] { element(0x02, (bytes.first ?? 0) < 128 ? bytes : [0] + bytes) }
        let algorithm = element(0x30, [0x06, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 1, 0x05, 0])
        let key = element(0x30, integer(self.key.modulus) + integer(self.key.publicExponent))
        let digits = Array(Base64.encode(element(0x30, algorithm + element(0x03, [0] + key))).utf8)
        let lines = stride(from: 0, to: digits.count, by: 64).map {
            String(decoding: digits[$0..<min($0 + 64, digits.count)], as: UTF8.self)
        }
        return "-----BEGIN PUBLIC KEY-----\n\(lines.joined(separator: "\n"))\n-----END PUBLIC KEY-----\n"
    }
}
