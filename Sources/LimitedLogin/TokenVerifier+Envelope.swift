internal import LLBytes
internal import LLJOSE

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
}

/// The parts of a token, its header and its signature. Tokens of Facebook and those that this program issues take the same
/// steps.
extension VerificationWorkspace {
    /// Decodes the three parts and reads the header: one JSON object without a repeated member (RFC 7515 section 4).
    mutating func readParts(_ token: Span<UInt8>) throws(Rejection) -> JWSCompactSerialization {
        keyID.removeAll(keepingCapacity: true)
        // At most 32 KiB, before any work is done.
        guard !token.isEmpty else { throw .emptyToken }
        guard token.count <= VerificationLimits.tokenByteCount else { throw Rejection(.tokenTooLong) }
        // Three parts (RFC 7515 section 7.1), each strict base64url (section 2).
        let jws: JWSCompactSerialization
        do throws(JWSError) {
            jws = try JWSCompactSerialization(splitting: token)
        } catch {
            switch error {
            case .emptyHeader: throw .emptyPart(.header)
            case .emptySignature: throw .emptyPart(.signature)
            case .notThreeParts(let count): throw Self.rejection(ofPartCount: count, token)
            }
        }
        guard Base64URL.decode(token, jws.header, into: &header.bytes) else {
            throw .invalidBase64URL(.header)
        }
        guard Base64URL.decode(token, jws.payload, into: &claimsSet.bytes) else {
            throw .invalidBase64URL(.payload)
        }
        guard Base64URL.decode(token, jws.signature, into: &signature) else {
            throw .invalidBase64URL(.signature)
        }
        try Self.read(.header, &header)
        parameters = JOSEHeader(header)
        return jws
    }

    /// Recognises texts that people send by mistake.
    private static func rejection(ofPartCount count: Int, _ token: Span<UInt8>) -> Rejection {
        if token[0] == UInt8(ascii: "{") { return .jsonSerialization }
        // RFC 7516 section 7.1: a JWE in compact serialization has five parts.
        if count == 5, isWord(token, with: "-_.") { return .encryptedToken }
        return isOpaque(token) ? .accessTokenAsIDToken : .wrongPartCount(count)
    }

    /// True if these bytes look like one of Facebook's access tokens: letters and digits without a full stop (with `|`
    /// in an app's own token), and far longer than a word. An id token that was cut off within its header is none: every
    /// JOSE header begins with `{"`, in base64url `eyJ`.
    private static func isOpaque(_ token: Span<UInt8>) -> Bool {
        token.count >= 20 && !token.equal(0..<3, "eyJ") && isWord(token, with: "|-_")
    }

    private static func isWord(_ token: Span<UInt8>, with others: String) -> Bool {
        token.indices.allSatisfy { ASCII.isAlphanumeric(token[$0]) || others.utf8.contains(token[$0]) }
    }

    private static func read(_ part: Rejection.Part, _ object: inout JSONObject) throws(Rejection) {
        let isObject: Bool
        do throws(JSONError) {
            isObject = try object.read()
        } catch { throw .unreadable(part, reason: error.reason.rawValue) }
        guard isObject else { throw .unreadable(part, reason: nil) }
    }

    /// The payload: one JSON object without a repeated member (RFC 7519 section 4).
    mutating func readPayload() throws(Rejection) {
        // A JWS may have an empty payload (RFC 7515 section 3); a token has claims.
        guard !claimsSet.bytes.isEmpty else { throw .emptyPart(.payload) }
        try Self.read(.payload, &claimsSet)
        claims = PayloadClaims(claimsSet)
    }

    mutating func checkAlgorithm() throws(Rejection) {
        guard let algorithm = parameters.algorithm, isHeader(algorithm, "RS256") else {
            throw .unsupportedAlgorithm(parameters.algorithm.flatMap { shortName($0) })
        }
    }

    /// No `crit` (RFC 7515 section 4.1.11) and no `b64` (RFC 7797 section 6): no extension is understood. `typ` is `JWT` or
    /// absent (RFC 8725 section 3.11); nothing is encrypted or nested.
    /// - Parameter isOwn: True for a token of this program: `typ` is then `at+jwt` or `JWT`, and never absent.
    mutating func checkType(isOwn: Bool = false) throws(Rejection) {
        guard !parameters.demandsExtension else { throw Rejection(.unsupportedCriticalHeader) }
        if let type = parameters.type {
            guard isHeader(type, "JWT") || isOwn && isHeader(type, "at+jwt") else {
                throw .wrongType(shortName(type))
            }
        } else if isOwn {
            throw .wrongType(nil)
        }
        // RFC 7519 section 5.2: `cty` means that the payload is a token itself.
        guard !parameters.hasContentType else { throw .nestedToken }
        guard !parameters.hasEncryption else { throw .encryptionHeader }
    }

    /// `kid` is a string that is not empty (RFC 7515 section 4.1.4). No set has a key ID beyond the limit, so a fetch for a
    /// longer one would be useless.
    mutating func readKeyID() throws(Rejection) {
        guard let node = parameters.keyID, header.document.stringRange(node)?.isEmpty == false else {
            throw Rejection(.missingKeyID)
        }
        header.appendString(node, to: &keyID)
        guard keyID.count <= JWK.Limits.keyIDByteCount else {
            defer { keyID.removeAll(keepingCapacity: true) }
            throw .unknownKey(keyID)
        }
    }

    /// The signature is over the received bytes, not over a re-encoding: RFC 7515 section 5.2 step 8.
    mutating func checkSignature(
        _ jws: JWSCompactSerialization,
        of token: Span<UInt8>,
        _ isValid: (Span<UInt8>, SHA256Digest) -> Bool
    ) throws(Rejection) {
        guard let digest = try? SHA256.digest(of: token.extracting(jws.signingInput)) else { throw .cryptographyFailed }
        guard isValid(signature.span, digest) else { throw Rejection(.invalidSignature) }
    }

    /// A header value for an error's detail: only a short name, because an attacker may have chosen it.
    private func shortName(_ node: Int) -> String? {
        guard header.document.isString(node) else { return nil }
        let name = header.string(node)
        let isShort = (1...20).contains(name.utf8.count)
        let isPlain = name.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-+./".utf8.contains($0) }
        return isShort && isPlain ? name : nil
    }

    func isHeader(_ node: Int, _ value: StaticString) -> Bool {
        header.document.string(node, equals: value, in: header.bytes.span)
    }
}

extension TokenVerifier {
    func findKey(
        in keys: VerificationKeys,
        _ workspace: inout VerificationWorkspace
    ) throws(Rejection) -> PublicKey {
        guard !keys.isEmpty else { throw .keysUnavailable }
        guard let key = try keys.key(withID: workspace.keyID) else { throw .unknownKey(workspace.keyID) }
        return key
    }

    func checkSignature(
        _ jws: JWSCompactSerialization,
        of token: Span<UInt8>,
        _ key: PublicKey,
        _ isSigned: Bool = false,
        _ workspace: inout VerificationWorkspace
    ) throws(Rejection) {
        // RFC 8017 section 8.2.2 step 1: the length is checked before any arithmetic.
        guard workspace.signature.count == key.signatureByteCount else { throw .signatureOfWrongLength }
        if isSigned { return }
        try workspace.checkSignature(jws, of: token) { key.isValidSignature($0, of: $1) }
    }
}
