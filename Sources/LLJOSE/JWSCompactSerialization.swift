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

/// The header parameters of a JWS that matter to an RS256 verifier, as nodes of the parsed header (RFC 7515 section
/// 4.1).
/// `jku`, `jwk`, `x5u`, `x5c` and `x5t` are missing because they are never read: a token must not supply its own key.
package struct JOSEHeader: Sendable {
    private static let names = JSONNameTable(["alg", "typ", "kid", "crit", "b64", "cty", "enc", "zip", "p2c", "p2s"])

    /// The node of the value of each of the names. Zero, the index of the root, means that the parameter is missing.
    private var nodes = InlineArray<10, UInt32>(repeating: 0)

    package init() {}

    package init(_ header: borrowing JSONObject) {
        var span = nodes.mutableSpan
        header.findMembers(named: Self.names, nodes: &span)
    }

    private func node(_ place: Int) -> Int? { nodes[place] == 0 ? nil : Int(nodes[place]) }

    /// `alg`, section 4.1.1.
    package var algorithm: Int? { node(0) }
    /// `typ`, section 4.1.9.
    package var type: Int? { node(1) }
    /// `kid`, section 4.1.4.
    package var keyID: Int? { node(2) }
    /// True if `crit` (section 4.1.11) or `b64` (RFC 7797 section 3) is present in any form.
    package var demandsExtension: Bool { nodes[3] | nodes[4] != 0 }
    /// True if `cty` (section 4.1.10) is present in any form: a nested token (RFC 7519 section 5.2).
    package var hasContentType: Bool { nodes[5] != 0 }
    /// True if a parameter of an encrypted token is present (RFC 7516 section 4.1, RFC 7518 section 4.8.1).
    package var hasEncryption: Bool { nodes[6] | nodes[7] | nodes[8] | nodes[9] != 0 }
}
