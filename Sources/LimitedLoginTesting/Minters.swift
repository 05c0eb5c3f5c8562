internal import LLBytes
package import LLJOSE

/// Mints id tokens in Facebook's exact wire style.
package struct TokenMinter: Sendable {
    package let key: PrivateKey
    package let keyID: String

    package init(key: PrivateKey, keyID: String) { (self.key, self.keyID) = (key, keyID) }

    /// A minter with a new key under a key ID in Facebook's form: 40 hexadecimal digits.
    package static func make() throws(OpenSSLError) -> TokenMinter {
        TokenMinter(key: try Chance.key(.rsa), keyID: .random(40))
    }

    /// The members of every token's header, in Facebook's order.
    var headerMembers: [FacebookJSON.Member] {
        [("alg", "\"RS256\""), ("typ", "\"JWT\""), ("kid", FacebookJSON.string(keyID))]
    }

    package var header: [UInt8] { Array(FacebookJSON.object(headerMembers).utf8) }

    /// A token with exactly these header and payload bytes, valid or not; with the header of every token by default.
    package func mint(header: [UInt8]? = nil, payload: [UInt8]) throws(OpenSSLError) -> String {
        try key.signed(header ?? self.header, payload)
    }

    /// The public key as Facebook publishes it: the members `kid`, `kty`, `alg`, `use`, `n`, `e`, in this order.
    package var jsonWebKey: String {
        let numbers = key.numbers.members.map { (name: $0.name, json: "\"\($0.value)\"") }
        return FacebookJSON.object(
            [("kid", FacebookJSON.string(keyID)), numbers[0], ("alg", "\"RS256\""), ("use", "\"sig\"")]
                + numbers.dropFirst()
        )
    }

    /// The JWK Set of these minters' public keys, in this order.
    package static func jwkSet(_ minters: [TokenMinter]) -> [UInt8] {
        Array("{\"keys\":[\(minters.map(\.jsonWebKey).joined(separator: ","))]}".utf8)
    }
}

/// A device's key and the DPoP proofs it makes, built as Facebook's SDK builds them (RFC 9449 section 4.2).
package struct ProofMinter: Sendable {
    package let key: PrivateKey

    package init(key: PrivateKey) { self.key = key }

    package var jsonWebKey: String {
        FacebookJSON.object(key.numbers.members.map { (name: $0.name, json: "\"\($0.value)\"") })
    }

    /// The key's RFC 7638 thumbprint: the value of `cnf.jkt` in a token bound to this key.
    package func thumbprint() throws(OpenSSLError) -> String { try key.numbers.thumbprint() }

    /// A proof for one request with a token, for its URL without query and fragment.
    package func mint(method: String, url: String, token: String, issuedAt: Int64) throws(OpenSSLError) -> String {
        let target = String(url.prefix { $0 != "?" && $0 != "#" })
        return try mint(
            header: #"{"typ":"dpop+jwt","alg":"ES256","jwk":\#(jsonWebKey)}"#,
            payload: """
                {"htm":\(FacebookJSON.string(method)),"htu":\(FacebookJSON.string(target)),"iat":\(issuedAt),\
                "jti":"\(String.random(32))","ath":"\(try SHA256.digest(of: Array(token.utf8).span).base64URL)"}
                """
        )
    }

    /// A proof with exactly this header and payload, valid or not.
    package func mint(header: String, payload: String) throws(OpenSSLError) -> String {
        try key.signed(header.utf8, payload.utf8)
    }
}

extension PrivateKey {
    /// A JWS in compact serialization.
    fileprivate func signed(
        _ header: some Sequence<UInt8>,
        _ payload: some Sequence<UInt8>
    ) throws(OpenSSLError) -> String {
        let input = Base64URL.encode(header) + "." + Base64URL.encode(payload)
        return input + "." + Base64URL.encode(try signature(for: Array(input.utf8)))
    }
}

/// Signs requests as Facebook does.
package enum SignedRequestMinter {
    /// A callback's request: `base64url(signature).base64url(payload)` (Meta, "Parsing the Signed Request").
    package static func mint(userID: String, issuedAt: Int64, appSecret: String) throws(OpenSSLError) -> String {
        let members = [
            ("algorithm", FacebookJSON.string("HMAC-SHA256")), ("expires", "\(issuedAt &+ 3_600)"),
            ("issued_at", "\(issuedAt)"), ("user_id", FacebookJSON.string(userID)),
        ]
        let encoded = Base64URL.encode(FacebookJSON.object(members).utf8)
        let key = Array(appSecret.utf8)
        let code = try HMACSHA256.authenticationCode(for: Array(encoded.utf8).span, key: key.span)
        return "\(code.base64URL).\(encoded)"
    }
}

/// JSON in the spelling of Facebook's issuer: `/` as `\/`, `@` as `\u0040`, and every character outside ASCII as
/// `\uXXXX`.
package enum FacebookJSON {
    /// A member of an object: its name, and its value as JSON text.
    package typealias Member = (name: String, json: String)

    package static func string(_ text: String) -> String {
        var json = "\""
        for unit in text.utf16 {
            switch unit {
            case 0x22: json += "\\\""
            case 0x5C: json += "\\\\"
            case 0x2F: json += "\\/"
            case 0x0A: json += "\\n"
            case 0x0D: json += "\\r"
            case 0x09: json += "\\t"
            case 0x20..<0x7F where unit != 0x40: json.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
            default:
                let digits = String(unit, radix: 16)
                json += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return json + "\""
    }

    /// An object of members with values that are JSON already.
    package static func object(_ members: [Member]) -> String {
        "{" + members.map { string($0.name) + ":" + $0.json }.joined(separator: ",") + "}"
    }

    package static func list(_ texts: [String]) -> String { "[" + texts.map(string).joined(separator: ",") + "]" }
}

package struct StandInRefusal: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

extension JSONObject {
    /// The value as JSON, all strings in Facebook's spelling. The reader bounds the depth.
    package func respelled(_ node: Int) -> String {
        switch document.kind(node) {
        case .array: "[" + document.children(of: node).map { respelled($0) }.joined(separator: ",") + "]"
        case .object: FacebookJSON.object(document.children(of: node).map { (string($0), respelled($0 + 1)) })
        case .string: FacebookJSON.string(string(node))
        default: string(node)
        }
    }
}

extension Span<UInt8> {
    package func text(_ range: Range<Int>) -> String { String(decoding: range.map { self[$0] }, as: UTF8.self) }
}

extension String {
    package static func random(_ count: Int, of alphabet: String = "0123456789abcdef") -> String {
        let characters = Array(alphabet)
        return String((0..<count).map { _ in characters[Int(Chance.next() % UInt64(characters.count))] })
    }
}

/// The numbers behind made-up keys and texts: random ones, or after ``repeats(from:)`` a sequence that repeats.
package enum Chance {
    /// The state of SplitMix64; nil for random numbers.
    private static let state = Locked<UInt64?>(nil)

    /// Makes the process's sequence the one of a seed: the same calls then give the same numbers.
    package static func repeats(from seed: UInt64) { state.withLock { $0 = seed } }

    /// A new key, or the sequence's next one.
    package static func key(_ kind: PrivateKey.Kind) throws(OpenSSLError) -> PrivateKey {
        state.withLock { $0 != nil } ? try PrivateKey(kind, seed: next()) : try PrivateKey(kind)
    }

    package static func next() -> UInt64 {
        state.withLock { state in
            guard let last = state else { return .random(in: .min ... .max) }
            let current = last &+ 0x9E37_79B9_7F4A_7C15
            state = current
            var mixed = (current ^ current >> 30) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
            return mixed ^ mixed >> 31
        }
    }
}
