internal import LLBytes
package import LLJOSE

/// Mints id tokens in Facebook's exact wire style.
package struct TokenMinter: Sendable {
    package let key: RSAPrivateKey
    package let keyID: String

    package init(key: RSAPrivateKey, keyID: String) {
        self.key = key
        self.keyID = keyID
    }

    /// A minter with a new key under a key ID in Facebook's form: 40 hexadecimal digits.
    package static func make() throws(OpenSSLError) -> TokenMinter {
        let key = Chance.isRepeatable ? try RSAPrivateKey(seed: Chance.next()) : try RSAPrivateKey()
        return TokenMinter(key: key, keyID: .random(40))
    }

    /// The members of every token's header, in Facebook's order.
    var headerMembers: [FacebookJSON.Member] {
        [("alg", "\"RS256\""), ("typ", "\"JWT\""), ("kid", FacebookJSON.string(keyID))]
    }

    package var header: [UInt8] { Array(FacebookJSON.object(headerMembers).utf8) }

    /// A token with exactly these header and payload bytes, valid or not; with the header of every token by default.
    package func mint(header: [UInt8]? = nil, payload: [UInt8]) throws(OpenSSLError) -> String {
        let input = Base64URL.text(header ?? self.header) + "." + Base64URL.text(payload)
        return input + "." + Base64URL.text(try key.signature(for: Array(input.utf8)))
    }

    /// The public key as Facebook publishes it: the members `kid`, `kty`, `alg`, `use`, `n`, `e`, in this order.
    package var jsonWebKey: String {
        FacebookJSON.object([
            ("kid", FacebookJSON.string(keyID)), ("kty", "\"RSA\""), ("alg", "\"RS256\""), ("use", "\"sig\""),
            ("n", "\"\(Base64URL.text(key.modulus))\""), ("e", "\"\(Base64URL.text(key.publicExponent))\""),
        ])
    }

    /// The JWK Set of these minters' public keys, in this order.
    package static func jwkSet(_ minters: [TokenMinter]) -> [UInt8] {
        Array("{\"keys\":[\(minters.map(\.jsonWebKey).joined(separator: ","))]}".utf8)
    }
}

/// A device's key and the DPoP proofs it makes, built as Facebook's SDK builds them (RFC 9449 section 4.2).
package struct ProofMinter: Sendable {
    package let key: P256PrivateKey

    package init(key: P256PrivateKey) { self.key = key }

    package var jsonWebKey: String { #"{"kty":"EC","crv":"P-256",\#(coordinates)}"# }

    /// The key's RFC 7638 thumbprint: the value of `cnf.jkt` in a token bound to this key.
    package func thumbprint() throws(OpenSSLError) -> String {
        try Self.hash(#"{"crv":"P-256","kty":"EC",\#(coordinates)}"#)
    }

    /// A proof for one request with a token, for its URL without query and fragment.
    package func mint(method: String, url: String, token: String, issuedAt: Int64) throws(OpenSSLError) -> String {
        let target = String(url.prefix { $0 != "?" && $0 != "#" })
        return try mint(
            header: #"{"typ":"dpop+jwt","alg":"ES256","jwk":\#(jsonWebKey)}"#,
            payload: """
                {"htm":\(FacebookJSON.string(method)),"htu":\(FacebookJSON.string(target)),"iat":\(issuedAt),\
                "jti":"\(String.random(32))","ath":"\(try Self.hash(token))"}
                """
        )
    }

    /// A proof with exactly this header and payload, valid or not.
    package func mint(header: String, payload: String) throws(OpenSSLError) -> String {
        let input = Base64URL.text(header.utf8) + "." + Base64URL.text(payload.utf8)
        return input + "." + Base64URL.text(try key.signature(for: Array(input.utf8)))
    }

    /// The members `x` and `y` of the key.
    private var coordinates: String {
        let (x, y) = key.coordinates
        return #""x":"\#(Base64URL.text(x))","y":"\#(Base64URL.text(y))""#
    }

    private static func hash(_ text: String) throws(OpenSSLError) -> String {
        String(decoding: try SHA256.digest(of: Array(text.utf8).span).base64URL, as: UTF8.self)
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
        let encoded = Base64URL.text(FacebookJSON.object(members).utf8)
        let key = Array(appSecret.utf8)
        let code = try HMACSHA256.authenticationCode(for: Array(encoded.utf8).span, key: key.span)
        return "\(String(decoding: code.base64URL, as: UTF8.self)).\(encoded)"
    }
}
