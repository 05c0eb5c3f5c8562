/// The header parameters of a JWS that matter to an RS256 verifier, as nodes of the parsed header
/// (RFC 7515 section 4.1).
///
/// `jku`, `jwk`, `x5u`, `x5c` and `x5t` are not here because they are never read: a token does not bring
/// its own key.
package struct JOSEHeader: Sendable {
    /// `alg`, section 4.1.1.
    package private(set) var algorithm: Int?
    /// `kid`, section 4.1.4.
    package private(set) var keyID: Int?
    /// `typ`, section 4.1.9.
    package private(set) var type: Int?
    /// Whether `crit`, section 4.1.11, is there in any form.
    package private(set) var hasCritical = false
    /// Whether `b64`, RFC 7797 section 3, is there in any form.
    package private(set) var hasUnencodedPayload = false
    /// Whether `cty`, section 4.1.10, is there in any form: a nested token (RFC 7519 section 5.2).
    package private(set) var hasContentType = false
    /// Whether a parameter of an encrypted token (RFC 7516 section 4.1, RFC 7518 section 4.8.1) is there.
    package private(set) var hasEncryption = false

    /// The names above, in the order in which `init` reads them.
    private static let names = JSONNameTable(["alg", "kid", "typ", "crit", "b64", "cty", "enc", "zip", "p2c", "p2s"])

    /// Sorts the members of a header; nil when the document's root is no object.
    package init?(_ document: borrowing JSONDocument, in bytes: Span<UInt8>) {
        guard document.count > 0, document.isObject(document.root) else { return nil }
        // Zero is the root's node, so none of a member's value.
        var nodes = InlineArray<10, UInt32>(repeating: 0)
        var span = nodes.mutableSpan
        document.findMembers(of: document.root, named: Self.names, in: bytes, nodes: &span)
        algorithm = nodes[0] == 0 ? nil : Int(nodes[0])
        keyID = nodes[1] == 0 ? nil : Int(nodes[1])
        type = nodes[2] == 0 ? nil : Int(nodes[2])
        hasCritical = nodes[3] != 0
        hasUnencodedPayload = nodes[4] != 0
        hasContentType = nodes[5] != 0
        hasEncryption = nodes[6] | nodes[7] | nodes[8] | nodes[9] != 0
    }
}
