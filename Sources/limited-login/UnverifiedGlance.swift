internal import JOSE

/// Looks into a token that proved nothing, to guess where it comes from; the service never does.
enum UnverifiedGlance {
    /// The claim `iss` of a token that is at least a JWS of JSON.
    static func issuer(of token: [UInt8]) -> String? {
        let bytes = token.span
        guard let jws = try? JWSCompactSerialization(splitting: bytes) else { return nil }
        var payload: [UInt8] = []
        guard Base64URL.decode(bytes, jws.payload, into: &payload) else { return nil }
        var document = JSONDocument()
        guard (try? document.parse(payload.span)) != nil,
            let issuer = document.member("iss", of: document.root, in: payload.span),
            document.kind(issuer) == .string
        else { return nil }
        return document.string(issuer, in: payload.span)
    }
}
