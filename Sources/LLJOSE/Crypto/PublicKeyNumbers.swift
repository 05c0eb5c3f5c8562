internal import LLBytes

/// The numbers of a public key, big-endian, as its JWK has them (RFC 7518 sections 6.2.1 and 6.3.1).
package enum PublicKeyNumbers: Equatable, Sendable {
    /// A key for RS256.
    case rsa(modulus: [UInt8], exponent: [UInt8])
    /// A point of the curve P-256, for ES256.
    case p256(x: [UInt8], y: [UInt8])

    /// The length in bytes of a coordinate on P-256 (RFC 7518 section 6.2.1.2), and of each half of a signature (section
    /// 3.4).
    static let coordinateByteCount = 32

    package var isRSA: Bool { if case .rsa = self { true } else { false } }

    /// The required members of the key's JWK; `kty` comes first.
    package var members: [(name: String, value: String)] {
        switch self {
        case .rsa(let modulus, let exponent):
            [("kty", "RSA"), ("n", Base64URL.encode(modulus)), ("e", Base64URL.encode(exponent))]
        case .p256(let x, let y):
            [("kty", "EC"), ("crv", "P-256"), ("x", Base64URL.encode(x)), ("y", Base64URL.encode(y))]
        }
    }

    /// The RFC 7638 thumbprint with SHA-256, 43 digits of base64url: the hash of the required members in lexical order.
    package func thumbprint() throws(OpenSSLError) -> String {
        let members = members.sorted { $0.name < $1.name }.map { "\"\($0.name)\":\"\($0.value)\"" }
        return try SHA256.digest(of: Array("{\(members.joined(separator: ","))}".utf8).span).base64URL
    }
}
