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
        case .unbound: guard acceptsUnbound else { throw .bindingRequired }
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
        try authenticate(token, keys, false, nil, &workspace.buffers)
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
        guard Base64URL.decode(token, jws.header, into: &buffers.header.bytes) else {
            throw .malformedToken(.invalidBase64URL(.header))
        }
        guard Base64URL.decode(token, jws.payload, into: &buffers.payload.bytes) else {
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
    func readHeader(_ buffers: inout TokenBuffers) throws(Refusal) {
        try read(.header, &buffers.header)
        buffers.parameters = JOSEHeader(buffers.header.document, in: buffers.header.bytes.span)
    }

    func read(_ part: Refusal.Part, _ object: inout JSONObject) throws(Refusal) {
        let isObject: Bool
        do throws(JSONError) {
            isObject = try object.read()
        } catch {
            throw .malformedToken(.invalidJSON(part, reason: error.reason.rawValue))
        }
        guard isObject else { throw .malformedToken(.notAnObject(part)) }
    }

    func checkAlgorithm(_ buffers: inout TokenBuffers) throws(Refusal) {
        let algorithm = buffers.parameters.algorithm
        guard let algorithm, buffers.isHeader(algorithm, "RS256") else {
            throw .unsupportedAlgorithm(algorithm.flatMap { Self.shortName($0, buffers.header) })
        }
    }

    func checkCriticalHeader(_ buffers: inout TokenBuffers) throws(Refusal) {
        guard !buffers.parameters.demandsExtension else { throw .unsupportedCriticalHeader }
    }

    func checkType(_ buffers: inout TokenBuffers) throws(Refusal) {
        if let type = buffers.parameters.type, !buffers.isHeader(type, "JWT") {
            throw .notAnIDToken(.type(Self.shortName(type, buffers.header)))
        }
        // RFC 7519 section 5.2: `cty` says that the payload is a token itself.
        guard !buffers.parameters.hasContentType else { throw .notAnIDToken(.nested) }
        guard !buffers.parameters.hasEncryption else { throw .notAnIDToken(.encryptionHeader) }
    }

    func readKeyID(_ buffers: inout TokenBuffers) throws(Refusal) {
        guard let node = buffers.parameters.keyID, let range = buffers.header.document.stringRange(node), !range.isEmpty
        else { throw .missingKeyID }
        buffers.keyID.removeAll(keepingCapacity: true)
        buffers.header.document.appendString(node, in: buffers.header.bytes, to: &buffers.keyID)
    }

    func findKey(in keys: VerificationKeys, _ buffers: inout TokenBuffers) throws(Refusal) -> RSAPublicKey {
        guard !keys.isEmpty, buffers.sha256 != nil else { throw .keysUnavailable }
        if let key = keys.key(withID: buffers.keyID) { return key }
        let refusal = Refusal.unknownKey(buffers.keyID)
        // No set holds a longer one, so asking for it again would be in vain.
        if buffers.keyID.count > JSONWebKey.Limits.keyIDByteCount { buffers.keyID.removeAll(keepingCapacity: true) }
        throw refusal
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
    private static func shortName(_ node: Int, _ header: borrowing JSONObject) -> String? {
        guard header.document.isString(node) else { return nil }
        let name = header.string(node)
        let isShort = (1...20).contains(name.utf8.count)
        let isPlain = name.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-+./".utf8.contains($0) }
        return isShort && isPlain ? name : nil
    }
}

extension TokenBuffers {
    /// Whether a value of the header is this string.
    fileprivate func isHeader(_ node: Int, _ value: StaticString) -> Bool {
        header.document.string(node, equals: value, in: header.bytes.span)
    }
}
