/// The curve P-256 (FIPS 186-5) of keys for ES256.
package enum P256 {
    /// The length in bytes of a coordinate (RFC 7518 section 6.2.1.2), and of each half of a signature (section 3.4).
    package static let coordinateByteCount = 32
}
