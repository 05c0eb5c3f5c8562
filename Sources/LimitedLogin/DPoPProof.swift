internal import Bytes
internal import JOSE
internal import OpenSSL

/// A DPoP proof that was judged (RFC 9449): the request comes from the device whose key the token is bound to.
///
/// A proof may be 300 seconds old, and ahead of your clock by the skew. That it was not used before needs a memory:
/// accept each ``tokenID`` of a ``keyThumbprint`` once, for 300 seconds and the skew.
public struct DPoPProof: Equatable, Sendable {
    /// The RFC 7638 thumbprint of the proof's key: 43 digits of base64url.
    public let keyThumbprint: String
    /// `jti`: the proof's own name.
    public let tokenID: String
    /// `iat`: when the proof was made.
    public let issuedAt: NumericDate

    /// Greatest length of a proof in bytes. 4 KiB: real ones have about 700.
    package static let byteLimit = 4_096
    /// Greatest age of a proof in seconds: 300. RFC 9449 section 11.1 wants minutes at most.
    package static let greatestAgeSeconds = 300
    /// Greatest length of `jti` in bytes. 256: a UUID has 36.
    static let tokenIDByteLimit = 256

    /// Verifies a proof (RFC 9449 section 4.3).
    /// - Parameters:
    ///   - proof: the value of the request's one `DPoP` field. Two such fields must be refused before.
    ///   - method: the request's method.
    ///   - url: the URL of the request as the client sent it; query and fragment do not count.
    ///   - token: the token that the request brings. It must be verified by itself.
    ///   - keyThumbprint: `cnf.jkt` of that token.
    ///   - clockSkewSeconds: how far `iat` may lie ahead; less than 0 counts as 0, more than 300 as 300.
    ///   - now: the time to judge as of.
    /// - Throws: the one reason it was refused for. The answer is then 401 with
    ///   `WWW-Authenticate: DPoP error="invalid_dpop_proof", algs="ES256"`. ``DPoPRejection/cannotVerify`` is no refusal:
    ///   answer 500.
    public init(
        verifying proof: String,
        method: String,
        url: String,
        token: String,
        keyThumbprint: String,
        clockSkewSeconds: Int = 60,
        now: NumericDate
    ) throws(DPoPRejection) {
        guard let target = TargetURI(Array(url.utf8).span) else { throw .wrongURI }
        try self.init(
            verifying: Array(proof.utf8).span,
            method: Array(method.utf8).span,
            target: target,
            token: Array(token.utf8).span,
            keyThumbprint: Array(keyThumbprint.utf8).span,
            clockSkewSeconds: clockSkewSeconds,
            now: now
        )
    }

    /// The same for bytes.
    package init(
        verifying proof: Span<UInt8>,
        method: Span<UInt8>,
        target: TargetURI,
        token: Span<UInt8>,
        keyThumbprint: Span<UInt8>,
        clockSkewSeconds: Int,
        now: NumericDate
    ) throws(DPoPRejection) {
        guard proof.count <= Self.byteLimit else { throw .tooLong }
        // (2) A single well-formed JWT.
        guard let jws = try? JWSCompactSerialization(splitting: proof) else { throw .malformed }
        let key = try Self.key(proof, jws.header)
        let claims = try Self.part(proof, jws.payload)
        var signature: [UInt8] = []
        guard Base64URL.decode(proof, jws.signature, into: &signature) else { throw .malformed }
        try Self.checkSignature(signature, of: proof.extracting(jws.signingInput), key)
        // (8) `htm`, compared exactly: methods are case-sensitive (RFC 9110 section 9.1).
        guard let claimed = claims.string("htm"), claimed.utf8.span.equal(0..<claimed.utf8.count, method) else {
            throw .wrongMethod
        }
        // (9) `htu`.
        guard let uri = claims.string("htu"), TargetURI(uri.utf8.span) == target else { throw .wrongURI }
        // (10) Nonces are not given out here, so `nonce` is not read.
        // (11) `iat`.
        guard let issuedAt = claims.date("iat"),
            issuedAt.isRecent(within: Self.greatestAgeSeconds, clockSkewSeconds: clockSkewSeconds, now: now),
            Self.isInForce(claims, clockSkewSeconds, now)
        else { throw .outOfTime }
        // (3) `jti`, which the caller remembers; the other required claims are missed where they are compared.
        guard let tokenID = claims.string("jti"), (1...Self.tokenIDByteLimit).contains(tokenID.utf8.count) else {
            throw .missingTokenID
        }
        // (12) `ath`, and the key that the token is bound to (RFC 7638 section 3).
        let (tokenHash, thumbprint) = (try Self.hash(token), try Self.hash(key.thumbprintInput.span))
        guard let hash = claims.string("ath"), ConstantTime.areEqual(hash.utf8.span, tokenHash.span) else {
            throw .otherToken
        }
        guard ConstantTime.areEqual(thumbprint.span, keyThumbprint) else { throw .otherKey }
        self.keyThumbprint = String(decoding: thumbprint, as: UTF8.self)
        self.tokenID = tokenID
        self.issuedAt = issuedAt
    }

    /// `exp` and `nbf`, with which a proof may narrow its own time (RFC 7519 sections 4.1.4 and 4.1.5).
    private static func isInForce(_ claims: borrowing JSONObject, _ skew: Int, _ now: NumericDate) -> Bool {
        if claims.member("exp") != nil {
            guard let end = claims.date("exp"), !now.isAhead(of: end, clockSkewSeconds: skew) else { return false }
        }
        guard claims.member("nbf") != nil else { return true }
        return claims.date("nbf").map { !$0.isAhead(of: now, clockSkewSeconds: skew) } ?? false
    }

    /// (4), (5) and (7): the key of a header that has what section 4.2 asks for and nothing that is not understood. That
    /// it is the right key is proved by (12).
    private static func key(_ proof: Span<UInt8>, _ range: Range<Int>) throws(DPoPRejection) -> P256JSONWebKey {
        let header = try part(proof, range)
        guard header.string("typ")?.utf8.elementsEqual("dpop+jwt".utf8) == true else { throw .wrongType }
        guard header.string("alg")?.utf8.elementsEqual("ES256".utf8) == true else { throw .unsupportedAlgorithm }
        // RFC 7515 section 4.1.11 and RFC 7797 section 6: no extension is understood.
        guard header.member("crit") == nil, header.member("b64") == nil else { throw .unsupportedCriticalHeader }
        guard let node = header.member("jwk") else { throw .invalidKey }
        do throws(JSONWebKeyError) {
            return try P256JSONWebKey(header, node)
        } catch {
            throw .invalidKey
        }
    }

    /// (6) ES256 (RFC 7518 section 3.4) over the very bytes received.
    private static func checkSignature(
        _ signature: [UInt8],
        of message: Span<UInt8>,
        _ key: P256JSONWebKey
    ) throws(DPoPRejection) {
        guard let digest = try? SHA256.digest(of: message) else { throw .cannotVerify }
        guard let verifier = try? P256PublicKey(x: key.x, y: key.y) else { throw .invalidKey }
        guard verifier.isValidSignature(signature.span, of: digest) else { throw .invalidSignature }
    }

    /// SHA-256 in base64url.
    private static func hash(_ bytes: Span<UInt8>) throws(DPoPRejection) -> [UInt8] {
        guard let digest = try? SHA256.digest(of: bytes) else { throw .cannotVerify }
        return digest.base64URL
    }

    /// A part of the proof: one JSON object that names no member twice (RFC 7515 section 4, RFC 7519 section 4).
    private static func part(_ proof: Span<UInt8>, _ range: Range<Int>) throws(DPoPRejection) -> JSONObject {
        var bytes: [UInt8] = []
        guard Base64URL.decode(proof, range, into: &bytes),
            let part = JSONObject(bytes, limits: VerificationLimits.header)
        else { throw .malformed }
        return part
    }
}

/// Why a DPoP proof was refused, or why it cannot be judged. Nothing here holds the proof or the token.
public struct DPoPRejection: Error, Equatable, Sendable, CustomStringConvertible {
    /// One sentence that a person can act on.
    public let description: String

    package static let missing = Self("The token is bound to a key, and the request has no DPoP proof.")
    package static let repeated = Self("The request has more than one DPoP field.")
    package static let tooLong = Self("The DPoP proof is longer than \(DPoPProof.byteLimit) bytes.")
    package static let malformed = Self(
        "The DPoP proof is not a JWT: three parts of base64url, two of them JSON objects."
    )
    package static let wrongType = Self("The DPoP proof's typ is not dpop+jwt.")
    package static let unsupportedAlgorithm = Self("The DPoP proof's alg is not ES256.")
    package static let unsupportedCriticalHeader = Self("The DPoP proof demands an extension with crit or b64.")
    package static let invalidKey = Self("The DPoP proof's jwk is not a public P-256 key.")
    package static let invalidSignature = Self("The DPoP proof's signature is not the one of its jwk.")
    package static let wrongMethod = Self("The DPoP proof's htm is not the request's method.")
    package static let wrongURI = Self("The DPoP proof's htu is not the request's URL.")
    package static let outOfTime = Self(
        "The DPoP proof's iat is missing, in the future, or too long ago, or its exp or nbf forbids it."
    )
    package static let missingTokenID = Self("The DPoP proof's jti is missing, empty, or longer than 256 bytes.")
    package static let unboundToken = Self("The token is bound to no key, so no DPoP proof fits it.")
    package static let otherToken = Self("The DPoP proof's ath is not the hash of the token.")
    package static let otherKey = Self("The DPoP proof's key is not the one that the token is bound to.")
    package static let replayed = Self("The DPoP proof was used before.")
    /// OpenSSL failed, so nothing is known about the proof: no refusal, and no reason to answer 401.
    public static let cannotVerify = Self("The DPoP proof cannot be verified now.")

    private init(_ description: String) { self.description = description }
}
