internal import Bytes
internal import JOSE
internal import OpenSSL

/// The steps before any JSON is read.
extension TokenVerifier {
    func checkExpectation(
        _ binding: BindingKind,
        _ value: Span<UInt8>,
        _ appID: Span<UInt8>,
        _ added: AddedExpectation
    ) throws(Refusal) {
        switch binding {
        case .nonce, .rawNonce: guard Nonce.isValid(value) else { throw .invalidNonce }
        case .issuedNonce: guard nonces != nil else { throw .noNonceIssuer }
        case .subject: guard !value.isEmpty else { throw .invalidSubject }
        case .unbound: guard policy.binding == .optional else { throw .bindingRequired }
        }
        guard appID.isEmpty || apps.contains(appID, 0..<appID.count) else { throw .unknownApp }
        if !added.keyThumbprint.isEmpty {
            var digest: [UInt8] = []
            // RFC 7638 with SHA-256: 32 bytes in base64url.
            guard Base64URL.decode(added.keyThumbprint.span, added.keyThumbprint.indices, into: &digest),
                digest.count == 32
            else { throw .invalidKeyThumbprint }
        }
    }

    /// Verifies a JWS and nothing of what it says: the layer below an id token.
    package func verifySignature(
        _ token: Span<UInt8>,
        keys: VerificationKeys,
        workspace: VerificationWorkspace
    ) throws(Refusal) {
        _ = try authenticate(token, keys, false, nil, &workspace.buffers)
    }

    func checkSize(_ token: Span<UInt8>) throws(Refusal) {
        guard !token.isEmpty else { throw .malformedToken(.empty) }
        guard token.count <= VerificationLimits.tokenByteCount else { throw .malformedToken(.tooLong) }
    }

    func split(_ token: Span<UInt8>) throws(Refusal) -> JWSCompactSerialization {
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
        _ buffers: inout TokenBuffers
    ) throws(Refusal) {
        guard Base64URL.decode(token, jws.header, into: &buffers.header) else {
            throw .malformedToken(.invalidBase64URL(.header))
        }
        guard Base64URL.decode(token, jws.payload, into: &buffers.payload) else {
            throw .malformedToken(.invalidBase64URL(.payload))
        }
        guard Base64URL.decode(token, jws.signature, into: &buffers.signature) else {
            throw .malformedToken(.invalidBase64URL(.signature))
        }
    }

    /// Tells apart what people send by mistake.
    private static func rejection(ofPartCount count: Int, _ token: Span<UInt8>) -> Refusal {
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
            guard ASCII.isAlphanumeric(token[index]) || "|-_".utf8.contains(token[index]) else { return false }
        }
        return true
    }
}

/// The header, the key it names and the signature.
extension TokenVerifier {
    func readHeader(_ buffers: inout TokenBuffers) throws(Refusal) -> JOSEHeader {
        do throws(JSONError) {
            try buffers.headerDocument.parse(buffers.header)
        } catch {
            throw .malformedToken(.invalidJSON(.header, reason: error.reason.rawValue))
        }
        guard let header = JOSEHeader(buffers.headerDocument, in: buffers.header.span) else {
            throw .malformedToken(.notAnObject(.header))
        }
        return header
    }

    func checkAlgorithm(_ header: JOSEHeader, _ buffers: inout TokenBuffers) throws(Refusal) {
        guard let node = header.algorithm, buffers.headerDocument.isString(node),
            buffers.headerDocument.string(node, equals: "RS256", in: buffers.header.span)
        else { throw .unsupportedAlgorithm(Self.shortName(header.algorithm, &buffers)) }
    }

    func checkCriticalHeader(_ header: JOSEHeader) throws(Refusal) {
        guard !header.hasCritical, !header.hasUnencodedPayload else { throw .unsupportedCriticalHeader }
    }

    func checkType(_ header: JOSEHeader, _ buffers: inout TokenBuffers) throws(Refusal) {
        if let type = header.type {
            guard buffers.headerDocument.string(type, equals: "JWT", in: buffers.header.span) else {
                throw .notAnIDToken(.type(Self.shortName(type, &buffers)))
            }
        }
        // RFC 7519 section 5.2: `cty` says that the payload is a token itself.
        guard !header.hasContentType else { throw .notAnIDToken(.nested) }
        guard !header.hasEncryption else { throw .notAnIDToken(.encryptionHeader) }
    }

    func readKeyID(_ header: JOSEHeader, _ buffers: inout TokenBuffers) throws(Refusal) {
        guard let node = header.keyID, buffers.headerDocument.isString(node),
            !buffers.headerDocument.range(node).isEmpty
        else { throw .missingKeyID }
        buffers.keyID.removeAll(keepingCapacity: true)
        buffers.headerDocument.appendString(node, in: buffers.header, to: &buffers.keyID)
    }

    func findKey(
        in keys: VerificationKeys,
        _ buffers: inout TokenBuffers
    ) throws(Refusal) -> RSAPublicKey {
        guard !keys.isEmpty, buffers.sha256 != nil else { throw .keysUnavailable }
        if let key = keys.key(withID: buffers.keyID) { return key }
        let shown = buffers.keyID.prefix(64).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
        // No set holds a longer one, so asking for it again would be in vain.
        if buffers.keyID.count > JSONWebKey.Limits.keyIDByteCount { buffers.keyID.removeAll(keepingCapacity: true) }
        throw .unknownKey(keyID: String(decoding: shown, as: UTF8.self))
    }

    func checkSignature(
        _ jws: JWSCompactSerialization,
        of token: Span<UInt8>,
        _ key: RSAPublicKey,
        _ isSigned: Bool,
        _ digest: SHA256Digest?,
        _ buffers: inout TokenBuffers
    ) throws(Refusal) {
        // RFC 8017 section 8.2.2 step 1: checked before any arithmetic.
        guard buffers.signature.count == key.modulusByteCount else { throw .invalidSignature(.wrongLength) }
        if isSigned { return }
        // The very bytes received, not a re-encoding: RFC 7515 section 5.2 step 8.
        guard let digest = digest ?? buffers.sha256?.digest(of: token.extracting(jws.signingInput)) else {
            throw .keysUnavailable
        }
        guard key.isValidSignature(buffers.signature.span, of: digest) else { throw .invalidSignature(.mismatch) }
    }

    /// A header value for an error's detail: only a short name, for it is an attacker's word.
    private static func shortName(_ node: Int?, _ buffers: inout TokenBuffers) -> String? {
        guard let node, buffers.headerDocument.isString(node) else { return nil }
        let name = buffers.headerDocument.string(node, in: buffers.header.span)
        let isShort = (1...20).contains(name.utf8.count)
        let isPlain = name.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-+./".utf8.contains($0) }
        return isShort && isPlain ? name : nil
    }
}
