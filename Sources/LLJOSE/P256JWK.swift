internal import LLBytes

/// A P-256 public key for ES256, read from a JWK (RFC 7517, RFC 7518 section 6.2) such as the one in a DPoP proof.
package struct P256JWK: Equatable, Sendable {
    /// `x`, 32 bytes, big-endian.
    package let x: [UInt8]
    package let y: [UInt8]

    /// A key from its coordinates. OpenSSL checks later that they are a point of the curve.
    package init(x: [UInt8], y: [UInt8]) throws(JWKError) {
        // Leading zeros must be kept (RFC 7518 section 6.2.1.2).
        guard x.count == P256.coordinateByteCount, y.count == P256.coordinateByteCount else {
            throw .malformedCoordinate
        }
        self.x = x
        self.y = y
    }

    /// Reads the JWK at `node`. It checks all members together and refuses the key if one check fails.
    package init(_ json: borrowing JSONObject, _ node: Int) throws(JWKError) {
        try JWK.checkType(json, node, "EC")
        // RFC 7518 section 6.2.1.1.
        guard json.string("crv", of: node) == "P-256" else { throw .unsupportedCurve }
        // RFC 9449 section 4.3 (7): the key must not be a private one (RFC 7518 sections 6.2.2, 6.3.2 and 6.4.1).
        try JWK.checkIsPublic(json, node)
        try JWK.checkPurpose(json, node, algorithm: "ES256")
        guard let x = JWK.value("x", json, node), let y = JWK.value("y", json, node) else { throw .malformedCoordinate }
        try self.init(x: x, y: y)
    }

    /// The JSON text under the SHA-256 of the key's thumbprint: the required members in lexical order (RFC 7638 section
    /// 3.2).
    package var thumbprintInput: [UInt8] {
        Array(#"{"crv":"P-256","kty":"EC","x":""#.utf8) + Base64URL.encode(x) + Array(#"","y":""#.utf8)
            + Base64URL.encode(y) + Array(#""}"#.utf8)
    }
}
