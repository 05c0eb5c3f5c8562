internal import Bytes
internal import JOSE
internal import OpenSSL

/// Why the stand-in issuer will not mint a token.
package struct ClaimsTemplateError: Error, Sendable, Equatable, CustomStringConvertible {
    /// One sentence.
    package let description: String
}

/// Turns the claims somebody asks for into a payload in Facebook's wire style.
///
/// The caller's members are taken as they are, also with wrong types, so that bad tokens can be made; the ones every
/// token has are filled in, and all stand in Facebook's order with Facebook's escapes.
package struct ClaimsTemplate: Sendable {
    /// The claims in the order of Facebook's tokens; others follow in the order they were given.
    static let order = [
        "iss", "aud", "sub", "iat", "exp", "jti", "nonce", "at_hash", "email", "given_name", "middle_name",
        "family_name", "name", "picture", "user_friends", "user_birthday", "user_age_range", "user_link",
        "user_hometown", "user_location", "user_gender", "cnf",
    ]

    /// Seconds between `iat` and `exp` in every real token.
    package static let lifetimeSeconds: Int64 = 3600

    /// `iss` where none is given.
    package let issuer: String
    /// `aud` where none is given.
    package let audience: String

    package init(issuer: String, audience: String) {
        self.issuer = issuer
        self.audience = audience
    }

    /// The payload of a token.
    ///
    /// - Parameters:
    ///   - text: a JSON object of claims; nothing at all stands for an empty one.
    ///   - now: seconds since 1970, for `iat` and `exp` where none are given.
    ///   - omitted: the claim that is not filled in.
    package func payload(
        claims text: [UInt8],
        now: Int64,
        without omitted: String? = nil
    ) throws(ClaimsTemplateError) -> [UInt8] {
        try payload(read(text.isEmpty ? Array("{}".utf8) : text), now: now, without: omitted)
    }

    /// The payload of a refreshed token: the same login's claims, with `jti`, `iat` and `exp` of its own. No access token
    /// comes with it, so there is no `at_hash`.
    ///
    /// - Parameters:
    ///   - payload: the payload of the login's token.
    ///   - keepsNonce: whether the nonce stays the login's; otherwise it is a UUID as the SDK makes it.
    ///   - revoked: claims that have gone since.
    func payload(
        refreshing payload: [UInt8],
        keepsNonce: Bool,
        without revoked: Set<String>,
        now: Int64
    ) throws(ClaimsTemplateError) -> [UInt8] {
        let replaced = ["jti", "iat", "exp", "at_hash"] + (keepsNonce ? [] : ["nonce"])
        var values = try read(payload).filter { !replaced.contains($0.name) && !revoked.contains($0.name) }
        if !keepsNonce { values.append(Member(name: "nonce", json: Self.quoted(try Self.uuid()))) }
        return try self.payload(values, now: now)
    }

    private func payload(
        _ members: [Member],
        now: Int64,
        without omitted: String? = nil
    ) throws(ClaimsTemplateError) -> [UInt8] {
        var values = members
        let given = Set(values.map(\.name))
        let issuedAt = values.first { $0.name == "iat" }.flatMap { Int64(String(decoding: $0.json, as: UTF8.self)) }
        let start = issuedAt ?? now
        let (end, overflow) = start.addingReportingOverflow(Self.lifetimeSeconds)
        let filled: [(String, [UInt8])] = [
            ("iss", Self.quoted(issuer)), ("aud", Self.quoted(audience)), ("sub", Self.quoted("2954873201847263")),
            ("iat", Array("\(start)".utf8)), ("exp", Array("\(overflow ? start : end)".utf8)),
            ("jti", Self.quoted(try Self.tokenID())), ("nonce", Self.quoted("")),
        ]
        values += filled.filter { !given.contains($0.0) && $0.0 != omitted }.map { Member(name: $0.0, json: $0.1) }
        let ranks = Dictionary(uniqueKeysWithValues: Self.order.enumerated().map { ($1, $0) })
        let ordered = values.enumerated().sorted {
            let left = ranks[$0.element.name] ?? Self.order.count
            let right = ranks[$1.element.name] ?? Self.order.count
            return (left, $0.offset) < (right, $1.offset)
        }
        let members = ordered.map { ($0.element.name, String(decoding: $0.element.json, as: UTF8.self)) }
        return Array(FacebookJSON.object(members).utf8)
    }

    private struct Member {
        let name: String
        let json: [UInt8]
    }

    private func read(_ text: [UInt8]) throws(ClaimsTemplateError) -> [Member] {
        var document = JSONDocument()
        do throws(JSONError) {
            try document.parse(text.span)
        } catch {
            throw ClaimsTemplateError(description: "the claims are not acceptable JSON: \(error)")
        }
        guard document.kind(document.root) == .object else {
            throw ClaimsTemplateError(description: "the claims must be a JSON object")
        }
        var members: [Member] = []
        for name in document.children(of: document.root) {
            var json: [UInt8] = []
            Self.append(name + 1, of: document, text, to: &json)
            members.append(Member(name: document.string(name, in: text.span), json: json))
        }
        return members
    }

    /// Copies a value, its strings in Facebook's style. The reader bounds the depth.
    private static func append(
        _ node: Int,
        of document: borrowing JSONDocument,
        _ text: [UInt8],
        to bytes: inout [UInt8]
    ) {
        switch document.kind(node) {
        case .string, .name: bytes += FacebookJSON.string(document.string(node, in: text.span)).utf8
        case .object, .array:
            let isObject = document.kind(node) == .object
            bytes.append(UInt8(ascii: isObject ? "{" : "["))
            for (index, child) in document.children(of: node).enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                append(child, of: document, text, to: &bytes)
                guard isObject else { continue }
                bytes.append(UInt8(ascii: ":"))
                append(child + 1, of: document, text, to: &bytes)
            }
            bytes.append(UInt8(ascii: isObject ? "}" : "]"))
        default: bytes += text[document.range(node)]
        }
    }

    private static func quoted(_ text: String) -> [UInt8] { Array(FacebookJSON.string(text).utf8) }

    /// An upper-case UUID of version 4, the nonce of the SDK's own making.
    private static func uuid() throws(ClaimsTemplateError) -> String {
        guard var bytes = try? RandomBytes.make(count: 16) else {
            throw ClaimsTemplateError(description: "no random bytes")
        }
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        let digits = Hexadecimal.encode(bytes).uppercased()
        var text = ""
        for (index, digit) in digits.enumerated() {
            if [8, 12, 16, 20].contains(index) { text += "-" }
            text.append(digit)
        }
        return text
    }

    /// `<4 letters or digits>.<64 hexadecimal digits>`, the shape of every real `jti`.
    private static func tokenID() throws(ClaimsTemplateError) -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
        do throws(OpenSSLError) {
            let prefix = try RandomBytes.make(count: 4).map { letters[Int($0) % letters.count] }
            return String(decoding: prefix, as: UTF8.self) + "." + Hexadecimal.encode(try RandomBytes.make(count: 32))
        } catch {
            throw ClaimsTemplateError(description: "no random bytes: \(error)")
        }
    }
}
