internal import Bytes
package import OpenSSL

/// Mints id tokens in Facebook's exact wire style.
package struct TokenMinter: Sendable {
    /// The key that signs.
    package let key: RSAPrivateKey
    /// `kid`: the name of the key.
    package let keyID: String

    /// A minter for one key.
    package init(key: RSAPrivateKey, keyID: String) {
        self.key = key
        self.keyID = keyID
    }

    /// A minter with a new key under a key ID in Facebook's form: 40 hexadecimal digits.
    package static func make(bits: Int = 2048) throws(OpenSSLError) -> TokenMinter {
        let digits = Array("0123456789abcdef")
        let keyID = String((0..<40).compactMap { _ in digits.randomElement() })
        return TokenMinter(key: try RSAPrivateKey.generate(bits: bits), keyID: keyID)
    }

    /// The header of every token: the members `alg`, `typ`, `kid`, in Facebook's order.
    package var header: [UInt8] {
        Array(
            FacebookJSON.object([("alg", "\"RS256\""), ("typ", "\"JWT\""), ("kid", FacebookJSON.string(keyID))]).utf8
        )
    }

    /// A token with exactly these header and payload bytes, whatever they are.
    package func mint(header: [UInt8], payload: [UInt8]) throws(OpenSSLError) -> String {
        let dot = UInt8(ascii: ".")
        let input = Base64URL.encode(header) + [dot] + Base64URL.encode(payload)
        let signature = try key.signature(for: input)
        return String(decoding: input + [dot] + Base64URL.encode(signature), as: UTF8.self)
    }

    /// The public key as Facebook publishes it: the members `kid`, `kty`, `alg`, `use`, `n`, `e`, in this order.
    package var jsonWebKey: [UInt8] {
        func number(_ bytes: [UInt8]) -> String {
            FacebookJSON.string(String(decoding: Base64URL.encode(bytes), as: UTF8.self))
        }
        return Array(
            FacebookJSON.object([
                ("kid", FacebookJSON.string(keyID)), ("kty", "\"RSA\""), ("alg", "\"RS256\""), ("use", "\"sig\""),
                ("n", number(key.modulus)), ("e", number(key.publicExponent)),
            ]).utf8
        )
    }

    /// The JWK Set of these minters' public keys, in this order.
    package static func jsonWebKeySet(_ minters: [TokenMinter]) -> [UInt8] {
        Array("{\"keys\":[".utf8) + Array(minters.map(\.jsonWebKey).joined(separator: [UInt8(ascii: ",")]))
            + Array("]}".utf8)
    }
}
