internal import LLBytes
internal import LLJOSE

/// A verified DPoP proof (RFC 9449): the request comes from the device with the key that the token is bound to.
///
/// A proof may be 300 seconds old, and ahead of your clock by the skew. This check cannot detect a second use: accept
/// each ``tokenID`` of a ``keyThumbprint`` once, and remember it for 300 seconds and the skew.
public struct DPoPProof: Equatable, Sendable {
    /// The RFC 7638 thumbprint of the proof's key: 43 digits of base64url.
    public let keyThumbprint: String
    /// `jti`: the proof's own identifier.
    public let tokenID: String
    /// `iat`: the time at which the proof was made.
    public let issuedAt: NumericDate
}

extension DPoPProof {
    /// The greatest length of a proof, in bytes. 4 KiB: real ones have about 700 bytes.
    package static let byteLimit = 4_096
    /// The greatest age of a proof, in seconds: 300. RFC 9449 section 11.1 recommends minutes at most.
    package static let greatestAgeSeconds = 300
    /// The greatest length of `jti`, in bytes. 256: a UUID has 36.
    static let tokenIDByteLimit = 256

    /// Verifies a proof (RFC 9449 section 4.3).
    /// - Parameters:
    ///   - proof: The value of the request's only `DPoP` field. Refuse a request with two such fields before this call.
    ///   - method: The request's method.
    ///   - url: The URL of the request as the client sent it; query and fragment are ignored.
    ///   - token: The token of the request. It must be verified separately.
    ///   - keyThumbprint: `cnf.jkt` of that token.
    ///   - clockSkew: The time by which `iat` may be ahead; less than 0 counts as 0, more than 300 s as 300 s.
    ///   - now: The time for which to judge.
    /// - Throws: ``Rejection``: answer 401 with `WWW-Authenticate: DPoP error="invalid_dpop_proof", algs="ES256"`.
    ///   ``Unavailable`` if OpenSSL fails: answer 500.
    public init(
        verifying proof: String,
        method: String,
        url: String,
        token: String,
        keyThumbprint: String,
        clockSkew: Duration = VerificationPolicy.defaultClockSkew,
        now: NumericDate
    ) throws {
        self = try Rejection.asError { () throws(Rejection) in
            guard let target = TargetURI(url.utf8.span) else { throw .proofWithoutURL }
            return try DPoPProof(
                verifying: proof.utf8.span,
                method: method.utf8.span,
                target: target,
                token: token.utf8.span,
                keyThumbprint: keyThumbprint.utf8.span,
                clockSkew: clockSkew,
                now: now
            )
        }
    }

    package init(
        verifying proof: Span<UInt8>,
        method: Span<UInt8>,
        target: TargetURI,
        token: Span<UInt8>,
        keyThumbprint: Span<UInt8>,
        clockSkew: Duration,
        now: NumericDate
    ) throws(Rejection) {
        guard proof.count <= Self.byteLimit else { throw .proofTooLong }
        // (2) A single well-formed JWT.
        var signature: [UInt8] = []
        guard let jws = JWSCompactSerialization(splitting: proof),
            let header = JSONObject(proof, jws.header, limits: VerificationLimits.header),
            let claims = JSONObject(proof, jws.payload, limits: VerificationLimits.header),
            Base64URL.decode(proof, jws.signature, into: &signature)
        else { throw .proofMalformed }
        let key = try Self.key(header)
        // The key's thumbprint is that of RFC 7638 section 3.
        guard let digest = try? SHA256.digest(of: proof.extracting(jws.signingInput)),
            let tokenHash = (try? SHA256.digest(of: token))?.base64URL, let thumbprint = try? key.thumbprint()
        else { throw .proofNotVerifiable }
        // (6) ES256 (RFC 7518 section 3.4) over exactly the received bytes.
        guard let verifier = try? PublicKey(key) else { throw .proofOfInvalidKey }
        guard verifier.isValidSignature(signature.span, of: digest) else { throw .proofOfInvalidSignature }
        // (8) `htm`, compared exactly, since methods are case-sensitive (RFC 9110 section 9.1), and (9) `htu`.
        let claimed = claims.string("htm")
        guard let claimed, claimed.utf8.span.equal(0..<claimed.utf8.count, method) else {
            throw .proofOfWrongMethod(claimed, method)
        }
        let uri = claims.string("htu")
        guard let uri, TargetURI(uri.utf8.span) == target else { throw .proofOfWrongURI(uri, target) }
        // (10) The service issues no DPoP nonces, so `nonce` is not read.
        let issuedAt = try Self.checkTimes(claims, clockSkew, now)
        // (3) `jti`, which the caller remembers; the other required claims are checked at their comparison.
        guard let tokenID = claims.string("jti"), (1...Self.tokenIDByteLimit).contains(tokenID.utf8.count) else {
            throw .proofWithoutTokenID
        }
        // (12) `ath`, and the key that the token is bound to.
        guard let hash = claims.string("ath") else { throw .proofWithoutTokenHash }
        guard ConstantTime.areEqual(hash.utf8.span, tokenHash.utf8.span) else { throw .proofOfOtherToken }
        guard ConstantTime.areEqual(thumbprint.utf8.span, keyThumbprint) else { throw .proofOfOtherKey }
        self.init(keyThumbprint: thumbprint, tokenID: tokenID, issuedAt: issuedAt)
    }

    /// (11) `iat`, and `exp` and `nbf`, with which a proof may narrow its own time (RFC 7519 sections 4.1.4 and 4.1.5).
    private static func checkTimes(
        _ claims: borrowing JSONObject,
        _ skew: Duration,
        _ now: NumericDate
    ) throws(Rejection) -> NumericDate {
        guard let issuedAt = try date("iat", claims) else { throw .proofWithoutIssueTime }
        if let unit = issuedAt.mistakenUnit { throw .proofNotInSeconds("iat", unit) }
        guard !issuedAt.isAhead(of: now, clockSkew: skew) else { throw .proofIssuedAhead(issuedAt, now) }
        guard issuedAt.isRecent(within: greatestAgeSeconds, clockSkew: skew, now: now) else {
            throw .proofIssuedBehind(issuedAt, now)
        }
        let end = try date("exp", claims)
        if let end, now.isAhead(of: end, clockSkew: skew) { throw .proofOutOfTime("exp", end, now) }
        if let start = try date("nbf", claims) {
            if let unit = start.mistakenUnit { throw .proofNotInSeconds("nbf", unit) }
            guard !start.isAhead(of: now, clockSkew: skew) else { throw .proofOutOfTime("nbf", start, now) }
        }
        return issuedAt
    }

    private static func date(_ name: StaticString, _ claims: borrowing JSONObject) throws(Rejection) -> NumericDate? {
        guard claims.member(name) != nil else { return nil }
        guard let date = claims.date(name) else { throw .proofWithUnreadableTime(name) }
        return date
    }

    /// (4), (5) and (7): the key of a header that has all members of section 4.2 and no unknown extension.
    private static func key(_ header: borrowing JSONObject) throws(Rejection) -> PublicKeyNumbers {
        guard header.string("typ")?.utf8.elementsEqual("dpop+jwt".utf8) == true else { throw .proofOfWrongType }
        guard header.string("alg")?.utf8.elementsEqual("ES256".utf8) == true else { throw .proofOfUnsupportedAlgorithm }
        // RFC 7515 section 4.1.11 and RFC 7797 section 6: no extension is understood.
        guard header.member("crit") == nil, header.member("b64") == nil else { throw .proofWithCriticalHeader }
        guard let node = header.member("jwk") else { throw .proofOfInvalidKey }
        do throws(JWKError) {
            return try PublicKeyNumbers(es256: header, node)
        } catch { throw .proofOfInvalidKey }
    }
}
