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

    /// Sorts the members of a header; nil when the document's root is no object.
    package init?(_ document: borrowing JSONDocument, in bytes: Span<UInt8>) {
        guard document.count > 0, document.kind(document.root) == .object else { return nil }
        let end = document.next(document.root)
        var name = document.firstChild(document.root)
        while name < end {
            note(name, document, bytes)
            name = document.next(name + 1)
        }
    }

    private mutating func note(_ name: Int, _ document: borrowing JSONDocument, _ bytes: Span<UInt8>) {
        if document.string(name, equals: "alg", in: bytes) {
            algorithm = name + 1
        } else if document.string(name, equals: "kid", in: bytes) {
            keyID = name + 1
        } else if document.string(name, equals: "typ", in: bytes) {
            type = name + 1
        } else if document.string(name, equals: "crit", in: bytes) {
            hasCritical = true
        } else if document.string(name, equals: "b64", in: bytes) {
            hasUnencodedPayload = true
        } else if document.string(name, equals: "cty", in: bytes) {
            hasContentType = true
        } else if document.string(name, equals: "enc", in: bytes) || document.string(name, equals: "zip", in: bytes)
            || document.string(name, equals: "p2c", in: bytes) || document.string(name, equals: "p2s", in: bytes)
        {
            hasEncryption = true
        }
    }
}
