internal import Bytes
package import OpenSSL

/// A device's key and the DPoP proofs it makes, built as Facebook's SDK builds them (RFC 9449 section 4.2).
package struct ProofMinter: Sendable {
    package let key: P256PrivateKey

    /// A minter for one key.
    package init(key: P256PrivateKey) { self.key = key }

    /// The public key as a JWK: the members `kty`, `crv`, `x`, `y`.
    package var jsonWebKey: String {
        let (x, y) = coordinates
        return #"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)"}"#
    }

    /// The key's RFC 7638 thumbprint: what `cnf.jkt` of a token bound to it is.
    package func thumbprint() throws(OpenSSLError) -> String {
        let (x, y) = coordinates
        return try Self.hash(#"{"crv":"P-256","kty":"EC","x":"\#(x)","y":"\#(y)"}"#)
    }

    /// A proof for one request.
    /// - Parameters:
    ///   - url: the request's URL; its query and fragment are left out.
    ///   - token: what `ath` is the hash of.
    ///   - tokenID: `jti`; a new one by default.
    ///   - issuedAt: `iat`, in seconds since 1970.
    package func mint(
        method: String,
        url: String,
        token: String,
        tokenID: String? = nil,
        issuedAt: Int64
    ) throws(OpenSSLError) -> String {
        // Not by `??`, whose closure throws untyped.
        let name = if let tokenID { tokenID } else { Hexadecimal.encode(try RandomBytes.make(count: 16)) }
        let target = String(url.prefix { $0 != "?" && $0 != "#" })
        let hash = try Self.hash(token)
        return try mint(
            header: #"{"typ":"dpop+jwt","alg":"ES256","jwk":\#(jsonWebKey)}"#,
            payload: """
                {"htm":\(FacebookJSON.string(method)),"htu":\(FacebookJSON.string(target)),"iat":\(issuedAt),\
                "jti":\(FacebookJSON.string(name)),"ath":"\(hash)"}
                """
        )
    }

    /// A proof with exactly this header and payload, whatever they are.
    package func mint(header: String, payload: String) throws(OpenSSLError) -> String {
        let input = [header, payload].map { String(decoding: Base64URL.encode(Array($0.utf8)), as: UTF8.self) }
            .joined(separator: ".")
        let signature = try key.signature(for: Array(input.utf8))
        return input + "." + String(decoding: Base64URL.encode(signature), as: UTF8.self)
    }

    private var coordinates: (x: String, y: String) {
        let (x, y) = key.coordinates
        return (
            String(decoding: Base64URL.encode(x), as: UTF8.self), String(decoding: Base64URL.encode(y), as: UTF8.self)
        )
    }

    private static func hash(_ text: String) throws(OpenSSLError) -> String {
        String(decoding: try SHA256.digest(of: Array(text.utf8).span).base64URL, as: UTF8.self)
    }
}
