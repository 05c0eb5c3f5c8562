internal import LLBytes
@_exported public import LLJOSE

/// Decides whether an id token is genuine, meant for this app, fresh, and tied to this login.
///
/// It is a pure function of the token, the expectation, the keys and the time: it fetches nothing, reads no clock, and keeps
/// nothing but prepared keys and buffers. The caller must ensure that a token or nonce is used once, by forgetting the nonce
/// once it was accepted (or by storing `jti` until `exp` and the clock skew).
public final class TokenVerifier: Sendable {
    /// The rules of the verdict.
    public let policy: VerificationPolicy
    /// Recognises the nonces of ``TokenBinding/issuedNonce``; nil if none are issued.
    package let nonces: NonceIssuer?
    /// True if a token may be judged without a login.
    let acceptsUnbound: Bool
    let apps: ByteStringSet
    let issuers: ByteStringSet
    let sessions = VerificationSessions()

    /// A verifier for one policy, and the issuer of the nonces of logins bound by ``TokenBinding/issuedNonce``, if any.
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
    ///   - workspace: This worker's buffers; afterwards they hold the token's header, key ID and payload. The verdict
    ///     does not depend on their earlier content.
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
        let key = try findKey(in: keys, &workspace)
        // RSASSA-PKCS1-v1_5 with SHA-256 over the very bytes received (RFC 7518 section 3.3, RFC 8017 section 8.2.2).
        try checkSignature(jws, of: token, key, isSigned, &workspace)
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
        let session = sessions.take()
        defer { sessions.giveBack(session) }
        return try Rejection.asError { () throws(Rejection) in
            let (jws, _) = try begin(token, expectation, session)
            return try finish(token, jws, expectation, keys: keys, now: now, session)
        }
    }

    /// The first part of a verdict: everything that needs no key.
    func begin(
        _ token: String,
        _ expectation: TokenExpectation,
        _ session: VerificationSession
    ) throws(Rejection) -> (JWSCompactSerialization, keyID: String) {
        session.workspace.recognizedNonce = nil
        try checkExpectation(expectation)
        let jws = try readEnvelope(token.utf8.span, &session.workspace)
        return (jws, String(decoding: session.workspace.keyID, as: UTF8.self))
    }

    func finish(
        _ token: String,
        _ jws: JWSCompactSerialization,
        _ expectation: TokenExpectation,
        keys: JWKSet,
        now: NumericDate,
        _ session: VerificationSession
    ) throws(Rejection) -> VerifiedToken {
        let key = try findKey(in: session.keys(of: keys), &session.workspace)
        try checkSignature(jws, of: token.utf8.span, key, false, &session.workspace)
        let claims = try judgeClaims(expectation, now, &session.workspace)
        return VerifiedToken(token, claims, session.workspace)
    }
}

/// The keys of a JWK Set, prepared for one worker and found by key ID. It is not Sendable: each worker makes its own from
/// the shared set, so that a request needs no lock and no shared reference count.
package final class VerificationKeys {
    private struct Entry {
        let keyID: [UInt8]
        let key: PublicKey?
    }

    private let entries: [Entry]
    /// The same keys as they were published. Other workers share their memory, so no request touches them.
    private let published: [JWK]

    package init(_ set: JWKSet) {
        published = set.keys
        entries = published.map { key in
            let ready = try? PublicKey(key.numbers)
            return Entry(keyID: Array(key.keyID.utf8), key: ready)
        }
    }

    /// True if both are the same keys under the same names, in the same order.
    package func areSame(as other: VerificationKeys) -> Bool {
        published.elementsEqual(other.published) { left, right in
            left.keyID.utf8.elementsEqual(right.keyID.utf8) && left.numbers == right.numbers
        }
    }

    package var isEmpty: Bool { entries.isEmpty }

    var isWhole: Bool { entries.allSatisfy { $0.key != nil } }

    package var count: Int { entries.count }

    /// The key with exactly this key ID (RFC 7515 section 4.1.4). No path, query or address is made from it.
    func key(withID keyID: [UInt8]) throws(Rejection) -> PublicKey? {
        for entry in entries where keyID.span.equal(0..<keyID.count, entry.keyID.span) {
            // The set has only valid keys, so a failure is one of OpenSSL and not the token's fault.
            guard let key = entry.key else { throw .cryptographyFailed }
            return key
        }
        return nil
    }
}
