internal import LLBytes
@_exported public import LLJOSE

/// Decides whether an id token is genuine, meant for this app, fresh, and tied to this login.
///
/// It is a pure function of the token, the expectation, the keys and the time. The caller must ensure that a nonce is used
/// once, by forgetting it once it was accepted.
public final class TokenVerifier: Sendable {
    /// The rules of the verdict.
    public let policy: VerificationPolicy
    /// Recognises the nonces of ``TokenBinding/issuedNonce``; nil if none are issued.
    package let nonces: NonceIssuer?
    /// True if a token may be judged without a login.
    let acceptsUnbound: Bool
    let apps: ByteStringSet
    let issuers: ByteStringSet
    /// The idle sessions. 64 at most: more verdicts at once are rare, and each session may have 256 KiB.
    private let idle = Locked<[VerificationSession]>([])

    /// A verifier for one policy, and the issuer of its nonces, if any.
    public convenience init(policy: VerificationPolicy, nonces: NonceIssuer? = nil) {
        self.init(policy, nonces, acceptsUnbound: policy.binding == .optional)
    }

    private init(_ policy: VerificationPolicy, _ nonces: NonceIssuer?, acceptsUnbound: Bool) {
        (self.policy, self.nonces, self.acceptsUnbound) = (policy, nonces, acceptsUnbound)
        (apps, issuers) = (ByteStringSet(policy.appIDs), ByteStringSet(policy.issuers))
    }

    /// The same verifier, but one that also judges a token without a login: for callers that cannot know the login,
    /// such as gateways and OAuth introspection clients. Every other check stays.
    package func acceptingUnbound() -> TokenVerifier { TokenVerifier(policy, nonces, acceptsUnbound: true) }

    /// Judges a token given as bytes. It allocates nothing for a good token.
    /// - Parameters:
    ///   - isSigned: True if the signature was found good before, for exactly these bytes under exactly these keys.
    ///   - workspace: This worker's buffers; afterwards they hold the token's header, key ID and payload.
    package func judge(
        _ token: Span<UInt8>,
        _ expectation: TokenExpectation,
        keys: VerificationKeys,
        isSigned: Bool = false,
        now: NumericDate,
        workspace: inout VerificationWorkspace
    ) throws(Rejection) -> VerifiedClaims {
        workspace.recognizedNonce = nil
        // The order: the expectation; then the signature, which costs most; then the claims. No claim is read before
        // the signature is good.
        try checkExpectation(expectation)
        try authenticate(token, keys: keys, isSigned: isSigned, workspace: &workspace)
        return try judgeClaims(expectation, now, &workspace)
    }

    /// The first half: the issuer's key signed these bytes. It does not read the claims. The cheapest steps come first.
    package func authenticate(
        _ token: Span<UInt8>,
        keys: VerificationKeys,
        isSigned: Bool = false,
        workspace: inout VerificationWorkspace
    ) throws(Rejection) {
        let jws = try readEnvelope(token, &workspace)
        // The key comes from the issuer's set by that name; jku, jwk, x5u and x5c are never read.
        let key = try keys.key(withID: workspace.keyID)
        // RFC 8017 section 8.2.2 step 1: the length is checked before any arithmetic.
        guard workspace.signature.count == key.signatureByteCount else { throw .signatureOfWrongLength }
        // RSASSA-PKCS1-v1_5 with SHA-256 over the very bytes received (RFC 7518 section 3.3).
        if !isSigned { try workspace.checkSignature(jws, of: token, by: key) }
    }

    /// The steps that need no key.
    @inline(__always)
    func readEnvelope(
        _ token: Span<UInt8>,
        _ workspace: inout VerificationWorkspace
    ) throws(Rejection) -> JWSCompactSerialization {
        // At most 32 KiB; three parts of strict base64url; the header is one JSON object.
        let jws = try workspace.readParts(token)
        // `alg` is exactly RS256 (RFC 8725 section 3.1): fixed here, never chosen by the token.
        try workspace.checkAlgorithm()
        // No `crit` and no `b64`; `typ` is absent or JWT; nothing encrypted, nothing nested.
        try workspace.checkType()
        // `kid` is a non-empty string (RFC 7515 section 4.1.4).
        try workspace.readKeyID()
        return jws
    }

    /// The second half: the claims are the issuer's, and they have the expected values.
    func judgeClaims(
        _ expectation: TokenExpectation,
        _ now: NumericDate,
        _ workspace: inout VerificationWorkspace
    ) throws(Rejection) -> VerifiedClaims {
        // The payload: one JSON object without a repeated member (RFC 7519 section 4).
        try workspace.readPayload()
        // `iss` is one of the configured issuers, byte for byte (OpenID Connect Core section 3.1.3.7 step 2).
        try workspace.checkIssuer(issuers)
        // `aud` is one configured app and no other; `azp`, if it exists, is the same (steps 3 to 5).
        try checkAudience(expectation.appIDBytes, &workspace)
        // now < `exp` + skew; `iat`, `nbf` <= now + skew; not too old (steps 9 and 10, RFC 7519 section 4.1.5).
        let times = try workspace.checkTimes(policy, now)
        // `sub` and `jti` exist and are not empty (OpenID Connect Core section 2, RFC 7519 section 4.1.7).
        try workspace.checkIdentity()
        // The token belongs to this login: `nonce` (step 11), `sub` (section 12.2) and `cnf.jkt` as expected.
        try checkBinding(expectation, now, &workspace)
        // `at_hash` shows that an access token came with it, and which (OpenID Connect Core sections 3.2.2.9, 3.1.3.6).
        let isLimited = try checkTracking(expectation.accessTokenBytes, &workspace)
        // All checks are passed; the rest reads the token's facts.
        return workspace.verifiedClaims(times, isLimited: isLimited, PersonalClaim.table)
    }
}

extension TokenVerifier {
    /// Verifies a token of the expected login with the JWK Set of the policy's issuers, as of `now`.
    /// - Throws: ``Rejection``, the one reason for the refusal; ``Unavailable`` if there are no keys.
    public func verify(
        _ token: String,
        expecting expectation: TokenExpectation,
        keys: JWKSet,
        now: NumericDate
    ) throws -> VerifiedToken {
        try withSession { session throws(Rejection) in
            let keys = session.keys(of: keys)
            let claims = try judge(token.utf8.span, expectation, keys: keys, now: now, workspace: &session.workspace)
            return VerifiedToken(token, claims, session.workspace)
        }
    }

    /// The key ID of a token that passes every check before the one of its key.
    func keyID(of token: String, _ expectation: TokenExpectation) throws -> String {
        try withSession { session throws(Rejection) in
            try checkExpectation(expectation)
            _ = try readEnvelope(token.utf8.span, &session.workspace)
            return String(decoding: session.workspace.keyID, as: UTF8.self)
        }
    }

    /// Runs a step of a verdict with a session of its own. The lock is not held during the step.
    private func withSession<Answer>(_ step: (VerificationSession) throws(Rejection) -> Answer) throws -> Answer {
        let session = idle.withLock { $0.popLast() } ?? VerificationSession()
        defer { idle.withLock { if $0.count < 64 { $0.append(session) } } }
        return try Rejection.asError { () throws(Rejection) in try step(session) }
    }
}

extension TokenVerifier {
    func checkExpectation(_ expectation: TokenExpectation) throws(Rejection) {
        let binding = expectation.binding
        if let nonce = binding.nonce, !Nonce.isValid(nonce.span) { throw .invalidNonce }
        guard binding.issue != .required || nonces != nil else { throw .noNonceIssuer }
        guard acceptsUnbound || !binding.isUnbound else { throw .bindingRequired }
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

/// The steps that tokens of Facebook and those that this program issues have in common.
extension VerificationWorkspace {
    /// Decodes the three parts and reads the header: one JSON object without a repeated member (RFC 7515 section 4).
    mutating func readParts(_ token: Span<UInt8>) throws(Rejection) -> JWSCompactSerialization {
        keyID.removeAll(keepingCapacity: true)
        guard !token.isEmpty else { throw .emptyToken }
        guard token.count <= VerificationLimits.tokenByteCount else { throw Rejection(.tokenTooLong) }
        // Three parts (RFC 7515 section 7.1), each strict base64url (section 2).
        guard let jws = JWSCompactSerialization(splitting: token) else { throw Self.rejection(ofParts: token) }
        guard Base64URL.decode(token, jws.header, into: &header.bytes) else { throw .invalidBase64URL(.header) }
        guard Base64URL.decode(token, jws.payload, into: &claimsSet.bytes) else { throw .invalidBase64URL(.payload) }
        guard Base64URL.decode(token, jws.signature, into: &signature) else { throw .invalidBase64URL(.signature) }
        try Self.read(.header, &header)
        parameters.find(HeaderParameter.names, in: header)
        return jws
    }

    /// Recognises texts that people send by mistake.
    private static func rejection(ofParts token: Span<UInt8>) -> Rejection {
        let dot = UInt8(ascii: ".")
        let count = 1 + token.indices.count { token[$0] == dot }
        // An unsecured or stripped token has an empty signature (RFC 7515 appendix A.5).
        if count == 3 { return .emptyPart(token[0] == dot ? .header : .signature) }
        if token[0] == UInt8(ascii: "{") { return .jsonSerialization }
        // RFC 7516 section 7.1: a JWE in compact serialization has five parts.
        if count == 5, isWord(token, with: "-_.") { return .encryptedToken }
        return isOpaque(token) ? .accessTokenAsIDToken : .wrongPartCount(count)
    }

    /// True if these bytes look like one of Facebook's access tokens: letters and digits (with `|` in an app's own token), far
    /// longer than a word. An id token that was cut off within its header begins with `eyJ`, as every JOSE header does.
    private static func isOpaque(_ token: Span<UInt8>) -> Bool {
        token.count >= 20 && !token.equal(0..<3, "eyJ") && isWord(token, with: "|-_")
    }

    private static func isWord(_ token: Span<UInt8>, with others: String) -> Bool {
        token.indices.allSatisfy { ASCII.isAlphanumeric(token[$0]) || others.utf8.contains(token[$0]) }
    }

    private static func read(_ part: Rejection.Part, _ object: inout JSONObject) throws(Rejection) {
        do throws(JSONError) {
            if try object.read() { return }
        } catch { throw .unreadable(part, reason: error.reason.rawValue) }
        throw .unreadable(part, reason: nil)
    }

    mutating func readPayload() throws(Rejection) {
        // A JWS may have an empty payload (RFC 7515 section 3); a token has claims.
        guard !claimsSet.bytes.isEmpty else { throw .emptyPart(.payload) }
        try Self.read(.payload, &claimsSet)
        claims.find(ClaimName.names, in: claimsSet)
    }

    mutating func checkAlgorithm() throws(Rejection) {
        let algorithm = parameters[.alg]
        guard let algorithm, isHeader(algorithm, "RS256") else {
            throw .unsupportedAlgorithm(algorithm.flatMap { shortName($0) })
        }
    }

    /// No `crit` (RFC 7515 section 4.1.11) and no `b64` (RFC 7797 section 6): no extension is understood. `typ` is `JWT` or
    /// absent (RFC 8725 section 3.11); nothing is encrypted or nested.
    /// - Parameter isOwn: True for a token of this program: `typ` is then `at+jwt` or `JWT`, and never absent.
    mutating func checkType(isOwn: Bool = false) throws(Rejection) {
        guard parameters[.crit] == nil, parameters[.b64] == nil else { throw Rejection(.unsupportedCriticalHeader) }
        let type = parameters[.typ]
        guard type.map({ isHeader($0, "JWT") || isOwn && isHeader($0, "at+jwt") }) ?? !isOwn else {
            throw .wrongType(type.flatMap { shortName($0) })
        }
        // RFC 7519 section 5.2: `cty` means that the payload is a token itself.
        guard parameters[.cty] == nil else { throw .nestedToken }
        // RFC 7516 section 4.1, RFC 7518 section 4.8.1.
        guard parameters[.enc] == nil, parameters[.zip] == nil, parameters[.p2c] == nil, parameters[.p2s] == nil else {
            throw .encryptionHeader
        }
    }

    /// `kid` is a string that is not empty (RFC 7515 section 4.1.4). No set has a key ID beyond the limit, so a fetch for a
    /// longer one would be useless.
    mutating func readKeyID() throws(Rejection) {
        guard let node = parameters[.kid], header.document.stringRange(node)?.isEmpty == false else {
            throw Rejection(.missingKeyID)
        }
        header.appendString(node, to: &keyID)
        guard keyID.count <= JWSCompactSerialization.keyIDByteCount else {
            defer { keyID.removeAll(keepingCapacity: true) }
            throw .unknownKey(keyID)
        }
    }

    /// The signature is over the received bytes, not over a re-encoding: RFC 7515 section 5.2 step 8.
    mutating func checkSignature(
        _ jws: JWSCompactSerialization,
        of token: Span<UInt8>,
        by key: PublicKey
    ) throws(Rejection) {
        guard let digest = try? SHA256.digest(of: token.extracting(jws.signingInput)) else { throw .cryptographyFailed }
        guard key.isValidSignature(signature.span, of: digest) else { throw Rejection(.invalidSignature) }
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

/// The keys of a JWK Set, found by key ID. It is not Sendable: each worker makes its own, so that a request needs no lock and
/// no shared reference count.
package final class VerificationKeys {
    private let entries: [(keyID: [UInt8], key: PublicKey?)]
    /// The same keys as they were published. Other workers share their memory, so no request touches them.
    private let published: [JWK]

    package init(_ set: JWKSet) {
        published = set.keys
        entries = published.map { (Array($0.keyID.utf8), try? PublicKey($0.numbers)) }
    }

    /// True if both are the same keys under the same names, in the same order.
    package func areSame(as other: VerificationKeys) -> Bool {
        published.elementsEqual(other.published) { left, right in
            left.keyID.utf8.elementsEqual(right.keyID.utf8) && left.numbers == right.numbers
        }
    }

    package var isEmpty: Bool { entries.isEmpty }
    var isWhole: Bool { entries.allSatisfy { $0.key != nil } }

    /// The key with exactly this key ID (RFC 7515 section 4.1.4). No path, query or address is made from it.
    func key(withID keyID: [UInt8]) throws(Rejection) -> PublicKey {
        guard !isEmpty else { throw .keysUnavailable }
        for entry in entries where keyID.span.equal(0..<keyID.count, entry.keyID.span) {
            // The set has only valid keys, so a failure is one of OpenSSL and not the token's fault.
            guard let key = entry.key else { throw .cryptographyFailed }
            return key
        }
        throw .unknownKey(keyID)
    }
}
