/// The three parts of a JWS in compact serialization (RFC 7515 section 7.1), as ranges of the received bytes.
package struct JWSCompactSerialization: Equatable, Sendable {
    /// The encoded JOSE header.
    package let header: Range<Int>
    /// The encoded payload.
    package let payload: Range<Int>
    /// The encoded signature.
    package let signature: Range<Int>

    /// The bytes that are signed: everything before the second full stop.
    package var signingInput: Range<Int> { 0..<payload.upperBound }
}
