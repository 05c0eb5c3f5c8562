package import OpenSSL

/// Mints id tokens in Facebook's exact wire style.
package struct TokenMinter: Sendable {
    /// The key that signs.
    package let key: RSAPrivateKey
    /// `kid`: the name of the key.
    package let keyID: String

    package init(key: RSAPrivateKey, keyID: String) {
        self.key = key
        self.keyID = keyID
    }

    /// A token with these claims.
    package func mint(_ claims: MintedClaims) throws(OpenSSLError) -> String { "" }

    /// A token with exactly these header and payload bytes, whatever they are.
    package func mint(header: [UInt8], payload: [UInt8]) throws(OpenSSLError) -> String { "" }

    /// The public key as Facebook publishes it: the members `kid`, `kty`, `alg`, `use`, `n`, `e`, in this order.
    package var jsonWebKey: [UInt8] { [] }

    /// The JWK Set of these minters' public keys, in this order.
    package static func jsonWebKeySet(_ minters: [TokenMinter]) -> [UInt8] { [] }
}
