/// An RSA public key for RS256 from a JWK (RFC 7517, RFC 7518 section 6.3), fit to verify.
public struct JSONWebKey: Equatable, Hashable, Sendable {
    /// `kid`: the name tokens use for this key; 1 to 256 bytes.
    public let keyID: String
    /// `n`: the modulus, big-endian, without leading zeros; odd, 2048 to 8192 bits.
    public let modulus: [UInt8]
    /// `e`: the public exponent, big-endian, without leading zeros; odd, 3 to 2³³.
    public let publicExponent: [UInt8]

    /// The bounds of a key.
    package enum Limits {
        /// Greatest length of a key ID in bytes. 256: Facebook's have 40.
        package static let keyIDByteCount = 256
        /// Least size of a modulus in bits. RFC 7518 section 3.3: a key of 2048 bits or larger MUST be used.
        package static let leastModulusBitCount = 2048
        /// Greatest size of a modulus in bits. 8192: beyond it one signature costs milliseconds.
        package static let greatestModulusBitCount = 8192
        /// Greatest public exponent. 2³³: the cost of a signature grows with its length.
        package static let greatestPublicExponent: UInt64 = 1 << 33
    }

    /// A key from its parts, judged as a JWK's would be.
    package init(keyID: String, modulus: [UInt8], publicExponent: [UInt8]) throws(JSONWebKeyError) {
        guard !keyID.isEmpty else { throw .missingKeyID }
        guard keyID.utf8.count <= Limits.keyIDByteCount else { throw .keyIDTooLong }
        try RSAParameters.check(modulus: modulus, publicExponent: publicExponent)
        self.keyID = keyID
        self.modulus = modulus
        self.publicExponent = publicExponent
    }

    /// The size of the modulus in bits.
    public var modulusBitCount: Int { RSAParameters.bitCount(modulus) }

    /// The JSON text whose SHA-256 is the key's thumbprint: the required members in lexical order, nothing
    /// else (RFC 7638 section 3).
    public var thumbprintInput: [UInt8] {
        Array("{\"e\":\"".utf8) + Base64URL.encode(publicExponent)
            + Array("\",\"kty\":\"RSA\",\"n\":\"".utf8) + Base64URL.encode(modulus) + Array("\"}".utf8)
    }
}
