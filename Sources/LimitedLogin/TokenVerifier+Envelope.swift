internal import JOSE

/// The steps before any JSON is read.
extension TokenVerifier {
    func checkExpectation(
        _ binding: BindingKind,
        _ value: Span<UInt8>,
        _ appID: Span<UInt8>
    ) throws(TokenRejection) {
        switch binding {
        case .nonce, .rawNonce: guard Nonce.isValid(value) else { throw .invalidNonce }
        case .issuedNonce: guard nonces != nil else { throw .noNonceIssuer }
        case .subject: guard !value.isEmpty else { throw .invalidSubject }
        case .unbound: guard policy.binding == .optional else { throw .bindingRequired }
        }
        guard appID.isEmpty || apps.contains(appID, 0..<appID.count) else { throw .unknownApp }
    }

    /// Verifies a JWS and nothing of what it says: the layer below an id token.
    package func verifySignature(
        _ token: Span<UInt8>,
        keys: VerificationKeys,
        workspace: VerificationWorkspace
    ) throws(TokenRejection) {
        _ = try authenticate(token, keys, &workspace.buffers)
    }

    func checkSize(_ token: Span<UInt8>) throws(TokenRejection) {
        guard !token.isEmpty else { throw .malformedToken(.empty) }
        guard token.count <= VerificationLimits.tokenByteCount else { throw .malformedToken(.tooLong) }
    }

    func split(_ token: Span<UInt8>) throws(TokenRejection) -> JWSCompactSerialization {
        do throws(JWSError) {
            return try JWSCompactSerialization(splitting: token)
        } catch {
            switch error {
            case .emptyHeader: throw .malformedToken(.emptyPart(.header))
            case .emptySignature: throw .malformedToken(.emptyPart(.signature))
            case .notThreeParts(let count): throw Self.rejection(ofPartCount: count, token)
            }
        }
    }

    func decodeParts(
        _ jws: JWSCompactSerialization,
        of token: Span<UInt8>,
        headerIsKnown: Bool,
        _ buffers: inout TokenBuffers
    ) throws(TokenRejection) {
        if !headerIsKnown {
            buffers.forgetHeader()
            guard Base64URL.decode(token, jws.header, into: &buffers.header) else {
                throw .malformedToken(.invalidBase64URL(.header))
            }
        }
        guard Base64URL.decode(token, jws.payload, into: &buffers.payload) else {
            throw .malformedToken(.invalidBase64URL(.payload))
        }
        guard Base64URL.decode(token, jws.signature, into: &buffers.signature) else {
            throw .malformedToken(.invalidBase64URL(.signature))
        }
    }

    /// Tells apart what people send by mistake.
    private static func rejection(ofPartCount count: Int, _ token: Span<UInt8>) -> TokenRejection {
        if token[0] == UInt8(ascii: "{") { return .malformedToken(.jsonSerialization) }
        // RFC 7516 section 7.1: a JWE in compact serialization has five parts.
        if count == 5 { return .notAnIDToken(.encrypted) }
        return count == 1 && isOpaque(token) ? .notAnIDToken(.accessToken) : .malformedToken(.wrongPartCount(count))
    }

    /// Whether these bytes look like one of Facebook's access tokens: letters and digits without a full stop
    /// (with `|` in an app's own), and far longer than a word.
    private static func isOpaque(_ token: Span<UInt8>) -> Bool {
        guard token.count >= 20 else { return false }
        for index in 0..<token.count {
            switch token[index] {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "|"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                continue
            default: return false
            }
        }
        return true
    }
}
