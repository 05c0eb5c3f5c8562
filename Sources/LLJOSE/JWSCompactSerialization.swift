internal import LLBytes

/// The three parts of a JWS in compact serialization (RFC 7515 section 7.1), as ranges of the received bytes.
package struct JWSCompactSerialization: Equatable, Sendable {
    /// The encoded JOSE header; never empty.
    package let header: Range<Int>
    /// The encoded payload; may be empty, because RFC 7515 allows an empty payload.
    package let payload: Range<Int>
    /// The encoded signature; never empty.
    package let signature: Range<Int>

    /// The signed bytes, exactly as received: everything before the second full stop (RFC 7515 section 5.2 step 8).
    package var signingInput: Range<Int> { 0..<payload.upperBound }

    /// Finds the three parts. Decoding them checks their encoding.
    package init(splitting token: Span<UInt8>) throws(JWSError) {
        let dot = UInt8(ascii: ".")
        let first = token.firstOffset(of: dot, from: 0)
        let second = first < token.count ? token.firstOffset(of: dot, from: first + 1) : first
        guard second < token.count, token.firstOffset(of: dot, from: second + 1) == token.count else {
            throw .notThreeParts(count: 1 + token.indices.count { token[$0] == dot })
        }
        guard first > 0 else { throw .emptyHeader }
        guard second + 1 < token.count else { throw .emptySignature }
        self.header = 0..<first
        self.payload = first + 1..<second
        self.signature = second + 1..<token.count
    }
}

package enum JWSError: Error, Equatable, Sendable {
    /// The number of full stops is not two.
    case notThreeParts(count: Int)
    /// The part before the first full stop is empty.
    case emptyHeader
    /// The part after the second full stop is empty: an unsecured or stripped token (RFC 7515 appendix A.5).
    case emptySignature
}
