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
        let input = Base64URL.encode(header ?? self.header) + "." + Base64URL.encode(payload)
        return input + "." + Base64URL.encode(try key.signature(for: Array(input.utf8)))
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
        let input = Base64URL.encode(header.utf8) + "." + Base64URL.encode(payload.utf8)
        return input + "." + Base64URL.encode(try key.signature(for: Array(input.utf8)))
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
