internal import LLBytes
internal import LLCrypto
internal import LLJOSE

/// The steps before any JSON is read.
extension TokenVerifier {
    func checkExpectation(_ expectation: TokenExpectation) throws(Rejection) {
        let binding = expectation.binding
        switch binding.nonce {
        case .nonce(let nonce)?, .rawNonce(let nonce)?:
            guard Nonce.isValid(nonce.span) else { throw .invalidNonce }
            guard binding.issue != .required || nonces != nil else { throw .noNonceIssuer }
        case .issuedNonce?: guard nonces != nil else { throw .noNonceIssuer }
        case nil: guard acceptsUnbound || binding.subject != nil else { throw .bindingRequired }
        }
        if let subject = binding.subject, subject.isEmpty { throw .invalidSubject }
        if let appID = expectation.appIDBytes, !apps.contains(appID.span, appID.indices) {
            throw Rejection(.unknownApp)
        }
        if let thumbprint = expectation.keyThumbprintBytes {
            var digest: [UInt8] = []
            // RFC 7638 with SHA-256: 32 bytes in base64url.
            guard Base64URL.decode(thumbprint.span, thumbprint.indices, into: &digest), digest.count == 32 else {
                throw .invalidKeyThumbprint
            }
        }
        if let accessToken = expectation.accessTokenBytes, accessToken.isEmpty {
            throw Rejection(.accessTokenHashMismatch)
        }
    }

    static func checkSize(_ token: Span<UInt8>) throws(Rejection) {
        guard !token.isEmpty else { throw .malformedToken(.empty) }
        guard token.count <= VerificationLimits.tokenByteCount else { throw Rejection(.tokenTooLong) }
    }

    static func split(_ token: Span<UInt8>) throws(Rejection) -> JWSCompactSerialization {
        do throws(JWSError) {
            return try JWSCompactSerialization(splitting: token)
        } catch {
            switch error {
            case .emptyHeader: throw .malformedToken(.emptyPart(.header))
            case .emptySignature: throw .malformedToken(.emptyPart(.signature))
            case .notThreeParts(let count): throw rejection(ofPartCount: count, token)
            }
        }
    }

    func decodeParts(
        _ jws: JWSCompactSerialization,
        of token: Span<UInt8>,
        _ workspace: inout VerificationWorkspace
    ) throws(Rejection) {
        guard Base64URL.decode(token, jws.header, into: &workspace.header.bytes) else {
            throw .malformedToken(.invalidBase64URL(.header))
        }
        guard Base64URL.decode(token, jws.payload, into: &workspace.claimsSet.bytes) else {
            throw .malformedToken(.invalidBase64URL(.payload))
        }
        guard Base64URL.decode(token, jws.signature, into: &workspace.signature) else {
            throw .malformedToken(.invalidBase64URL(.signature))
        }
    }

    /// Recognises texts that people send by mistake.
    private static func rejection(ofPartCount count: Int, _ token: Span<UInt8>) -> Rejection {
        if token[0] == UInt8(ascii: "{") { return .malformedToken(.jsonSerialization) }
        // RFC 7516 section 7.1: a JWE in compact serialization has five parts.
        if count == 5, isWord(token, with: "-_.") { return .notAnIDToken(.encrypted) }
        return isOpaque(token) ? .notAnIDToken(.accessToken) : .malformedToken(.wrongPartCount(count))
    }

    /// True if these bytes look like one of Facebook's access tokens: letters and digits without a full stop (with `|`
    /// in an app's own token), and far longer than a word. An id token that was cut off within its header is none: every
    /// JOSE header begins with `{"`, in base64url `eyJ`.
    private static func isOpaque(_ token: Span<UInt8>) -> Bool {
        token.count >= 20 && !token.equal(0..<3, "eyJ") && isWord(token, with: "|-_")
    }

    private static func isWord(_ token: Span<UInt8>, with others: String) -> Bool {
        for index in 0..<token.count {
            guard ASCII.isAlphanumeric(token[index]) || others.utf8.contains(token[index]) else { return false }
        }
        return true
    }
}

/// The header, the key it names and the signature.
extension TokenVerifier {
    func readHeader(_ workspace: inout VerificationWorkspace) throws(Rejection) {
        try read(.header, &workspace.header)
        workspace.parameters = JOSEHeader(workspace.header)
    }

    func read(_ part: Rejection.Part, _ object: inout JSONObject) throws(Rejection) {
        let isObject: Bool
        do throws(JSONError) {
            isObject = try object.read()
        } catch {
            throw .malformedToken(.invalidJSON(part, reason: error.reason.rawValue))
        }
        guard isObject else { throw .malformedToken(.notAnObject(part)) }
    }

    func checkAlgorithm(_ workspace: inout VerificationWorkspace) throws(Rejection) {
        let algorithm = workspace.parameters.algorithm
        guard let algorithm, workspace.isHeader(algorithm, "RS256") else {
            throw .unsupportedAlgorithm(algorithm.flatMap { Self.shortName($0, workspace.header) })
        }
    }

    func checkCriticalHeader(_ workspace: inout VerificationWorkspace) throws(Rejection) {
        guard !workspace.parameters.demandsExtension else { throw Rejection(.unsupportedCriticalHeader) }
    }

    func checkType(_ workspace: inout VerificationWorkspace) throws(Rejection) {
        if let type = workspace.parameters.type, !workspace.isHeader(type, "JWT") {
            throw .notAnIDToken(.type(Self.shortName(type, workspace.header)))
        }
        // RFC 7519 section 5.2: `cty` means that the payload is a token itself.
        guard !workspace.parameters.hasContentType else { throw .notAnIDToken(.nested) }
        guard !workspace.parameters.hasEncryption else { throw .notAnIDToken(.encryptionHeader) }
    }

    func readKeyID(_ workspace: inout VerificationWorkspace) throws(Rejection) {
        guard let node = workspace.parameters.keyID,
            workspace.header.document.stringRange(node)?.isEmpty == false
        else { throw Rejection(.missingKeyID) }
        workspace.keyID.removeAll(keepingCapacity: true)
        workspace.header.appendString(node, to: &workspace.keyID)
    }

    func findKey(in keys: VerificationKeys, _ workspace: inout VerificationWorkspace) throws(Rejection) -> RSAPublicKey
    {
        guard workspace.sha256 != nil else { throw .cryptographyFailed }
        guard !keys.isEmpty else { throw .keysUnavailable }
        if let key = keys.key(withID: workspace.keyID) { return key }
        let refusal = Rejection.unknownKey(workspace.keyID)
        // No set has a longer key ID, so a fetch for it would be useless.
        if workspace.keyID.count > JSONWebKey.Limits.keyIDByteCount { workspace.keyID.removeAll(keepingCapacity: true) }
        throw refusal
    }

    func checkSignature(
        _ jws: JWSCompactSerialization,
        of token: Span<UInt8>,
        _ key: RSAPublicKey,
        _ isSigned: Bool,
        _ workspace: inout VerificationWorkspace
    ) throws(Rejection) {
        // RFC 8017 section 8.2.2 step 1: the length is checked before any arithmetic.
        guard workspace.signature.count == key.modulusByteCount else { throw .invalidSignature(.wrongLength) }
        if isSigned { return }
        // The signature is over the received bytes, not over a re-encoding: RFC 7515 section 5.2 step 8.
        guard let digest = workspace.sha256?.digest(of: token.extracting(jws.signingInput)) else {
            throw .cryptographyFailed
        }
        guard key.isValidSignature(workspace.signature.span, of: digest) else { throw .invalidSignature(.mismatch) }
    }

    /// A header value for an error's detail: only a short name, because an attacker may have chosen it.
    private static func shortName(_ node: Int, _ header: borrowing JSONObject) -> String? {
        guard header.document.isString(node) else { return nil }
        let name = header.string(node)
        let isShort = (1...20).contains(name.utf8.count)
        let isPlain = name.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-+./".utf8.contains($0) }
        return isShort && isPlain ? name : nil
    }
}

extension VerificationWorkspace {
    /// True if a value of the header is this string.
    fileprivate func isHeader(_ node: Int, _ value: StaticString) -> Bool {
        header.document.string(node, equals: value, in: header.bytes.span)
    }
}
