internal import LLBytes
package import LLCrypto
internal import LLJOSE
internal import LLSockets

/// Mints id tokens in Facebook's exact wire style.
package struct TokenMinter: Sendable {
    package let key: RSAPrivateKey
    /// The key's id (`kid`).
    package let keyID: String

    package init(key: RSAPrivateKey, keyID: String) {
        self.key = key
        self.keyID = keyID
    }

    /// A minter with a new key under a key ID in Facebook's form: 40 hexadecimal digits.
    package static func make() throws(OpenSSLError) -> TokenMinter {
        TokenMinter(key: try RSAPrivateKey(), keyID: .random(40))
    }

    /// The header of every token: the members `alg`, `typ`, `kid`, in Facebook's order.
    package var header: [UInt8] {
        Array(
            FacebookJSON.object([("alg", "\"RS256\""), ("typ", "\"JWT\""), ("kid", FacebookJSON.string(keyID))]).utf8
        )
    }

    /// A token with exactly these header and payload bytes, valid or not.
    package func mint(header: [UInt8], payload: [UInt8]) throws(OpenSSLError) -> String {
        let input = Base64URL.text(header) + "." + Base64URL.text(payload)
        return input + "." + Base64URL.text(try key.signature(for: Array(input.utf8)))
    }

    /// The public key as Facebook publishes it: the members `kid`, `kty`, `alg`, `use`, `n`, `e`, in this order.
    package var jsonWebKey: [UInt8] {
        Array(
            FacebookJSON.object([
                ("kid", FacebookJSON.string(keyID)), ("kty", "\"RSA\""), ("alg", "\"RS256\""), ("use", "\"sig\""),
                ("n", "\"\(Base64URL.text(key.modulus))\""), ("e", "\"\(Base64URL.text(key.publicExponent))\""),
            ]).utf8
        )
    }

    /// The JWK Set of these minters' public keys, in this order.
    package static func jsonWebKeySet(_ minters: [TokenMinter]) -> [UInt8] {
        Array("{\"keys\":[".utf8) + Array(minters.map(\.jsonWebKey).joined(separator: [UInt8(ascii: ",")]))
            + Array("]}".utf8)
    }
}

/// A device's key and the DPoP proofs it makes, built as Facebook's SDK builds them (RFC 9449 section 4.2).
package struct ProofMinter: Sendable {
    package let key: P256PrivateKey

    package init(key: P256PrivateKey) { self.key = key }

    /// The public key as a JWK: the members `kty`, `crv`, `x`, `y`.
    package var jsonWebKey: String {
        let (x, y) = coordinates
        return #"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)"}"#
    }

    /// The key's RFC 7638 thumbprint: the value of `cnf.jkt` in a token bound to this key.
    package func thumbprint() throws(OpenSSLError) -> String {
        let (x, y) = coordinates
        return try Self.hash(#"{"crv":"P-256","kty":"EC","x":"\#(x)","y":"\#(y)"}"#)
    }

    /// A proof for one request.
    /// - Parameters:
    ///   - url: The request's URL; its query and fragment are left out.
    ///   - token: The token; `ath` is its hash.
    ///   - issuedAt: The claim `iat`, in seconds since 1970.
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

    private var coordinates: (x: String, y: String) {
        let (x, y) = key.coordinates
        return (Base64URL.text(x), Base64URL.text(y))
    }

    private static func hash(_ text: String) throws(OpenSSLError) -> String {
        String(decoding: try SHA256.digest(of: Array(text.utf8).span).base64URL, as: UTF8.self)
    }
}

/// The stand-in issuer's signing keys. As at Facebook, exactly two are published, and the newest signs.
package final class IssuerKeyRing: Sendable {
    private let minters: Locked<[TokenMinter]>
    private let unpublished = Locked<TokenMinter?>(nil)
    /// The device that makes the proofs of `POST /proofs`.
    let device: ProofMinter

    /// Generates the first two keys; takes a few tenths of a second.
    package init() throws(OpenSSLError) {
        device = ProofMinter(key: try P256PrivateKey())
        minters = Locked([try TokenMinter.make(), try TokenMinter.make()])
    }

    /// The key that signs now.
    var current: TokenMinter { minters.withLock { $0[0] } }

    /// The published keys, newest first.
    package var published: [TokenMinter] { minters.withLock { $0 } }

    /// The payload of a token that one of the published keys signed; nil for any other.
    func payload(of token: [UInt8]) -> [UInt8]? {
        guard let parts = try? JWSCompactSerialization(splitting: token.span) else { return nil }
        var payload: [UInt8] = []
        var signature: [UInt8] = []
        guard Base64URL.decode(token.span, parts.payload, into: &payload),
            Base64URL.decode(token.span, parts.signature, into: &signature),
            // The signature scheme is deterministic, so signing again verifies.
            published.contains(where: { (try? $0.key.signature(for: Array(token[parts.signingInput]))) == signature })
        else { return nil }
        return payload
    }

    /// A key that is never published: a forger's key. It is always the same one, made at the first call.
    func stranger() throws(OpenSSLError) -> TokenMinter {
        try unpublished.withLock { minter throws(OpenSSLError) in
            let stranger = if let minter { minter } else { try TokenMinter.make() }
            minter = stranger
            return stranger
        }
    }

    /// Makes a new key the signing one, keeps the previous one published and drops the one before.
    package func rotate() throws(OpenSSLError) {
        let newest = try TokenMinter.make()
        minters.withLock { $0 = [newest, $0[0]] }
    }
}
