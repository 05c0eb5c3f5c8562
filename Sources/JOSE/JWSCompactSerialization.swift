/// The three parts of a JWS in compact serialization (RFC 7515 section 7.1), as ranges of the received bytes.
package struct JWSCompactSerialization: Equatable, Sendable {
    /// The encoded JOSE header; never empty.
    package let header: Range<Int>
    /// The encoded payload; may be empty, as a JWS may carry nothing.
    package let payload: Range<Int>
    /// The encoded signature; never empty.
    package let signature: Range<Int>

    /// The bytes that are signed, exactly as received: everything before the second full stop
    /// (RFC 7515 section 5.2 step 8).
    package var signingInput: Range<Int> { 0..<payload.upperBound }

    /// Finds the three parts. Their encoding is judged when they are decoded.
    package init(splitting token: Span<UInt8>) throws(JWSError) {
        let dot = UInt8(ascii: ".")
        let first = token.firstOffset(of: dot, from: 0)
        let second = first < token.count ? token.firstOffset(of: dot, from: first + 1) : first
        guard second < token.count, token.firstOffset(of: dot, from: second + 1) == token.count else {
            throw .notThreeParts(count: Self.partCount(token))
        }
        guard first > 0 else { throw .emptyHeader }
        guard second + 1 < token.count else { throw .emptySignature }
        self.header = 0..<first
        self.payload = first + 1..<second
        self.signature = second + 1..<token.count
    }

    /// The number of parts, counted without storing any (a million full stops cost a million steps, no memory).
    private static func partCount(_ token: Span<UInt8>) -> Int {
        var count = 1
        for offset in 0..<token.count where token[offset] == UInt8(ascii: ".") { count += 1 }
        return count
    }
}
