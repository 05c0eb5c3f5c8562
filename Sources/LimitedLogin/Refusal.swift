/// The reason why a token was not accepted, with every detail: the content of a ``TokenRejection`` or
/// ``VerificationUnavailable``.
package enum Refusal: Error, Equatable, Sendable {
    /// The caller gave neither nonce nor subject, and the policy demands one.
    case bindingRequired
    /// The caller's nonce is empty or has white space.
    case invalidNonce
    case invalidSubject
    case invalidKeyThumbprint
    /// The caller asks for a nonce issued here, and the verifier has no ``NonceIssuer``.
    case noNonceIssuer
    case unknownApp
    /// The token has more than 32 KiB.
    case tokenTooLong
    case malformedToken(MalformedToken)
    case notAnIDToken(ForeignToken)
    /// `alg` is not `RS256`; its value if it is a short name.
    case unsupportedAlgorithm(String?)
    /// The header demands an extension with `crit` or `b64`.
    case unsupportedCriticalHeader
    /// `kid` is missing, empty or no string.
    case missingKeyID
    /// No key of the set has the token's key ID, which is cut here to 64 visible ASCII characters.
    case unknownKey(keyID: String)
    /// There are no keys at all: an outage of the key source, not a fault of the token.
    case keysUnavailable
    /// The signature is not the one of the key the token names.
    case invalidSignature(SignatureFault)
    case missingClaim(ClaimName)
    case malformedClaim(ClaimName, ClaimFault)
    case invalidIssuer(String)
    /// The token is meant for another app, or for others as well.
    case invalidAudience(AudienceFault)
    case expired(at: NumericDate, now: NumericDate)
    /// The token's life has not begun: `claim` is in the future.
    case notYetValid(ClaimName, at: NumericDate, now: NumericDate)
    case tooOld(issuedAt: NumericDate, maximumAgeSeconds: Int, now: NumericDate)
    /// The token belongs to another login.
    case nonceMismatch(NonceFault)
    /// The token's nonce was not issued here, or for another app.
    case nonceNotIssued
    case nonceExpired(NonceExpiry)
    /// The token's nonce was used before. A store of used nonces detects this; a ``TokenVerifier`` does not.
    case nonceUsed
    /// The token was accepted before. A store of accepted tokens detects this; a ``TokenVerifier`` does not.
    case tokenReplayed(ReplayEvidence)
    /// The login was revoked after the token was issued. The memory of revocations detects this.
    case loginRevoked
    case subjectMismatch
    /// The token is bound to another key, or to none.
    case keyThumbprintMismatch
    /// The access token was not issued together with this token.
    case accessTokenHashMismatch
    /// The login was not a Limited Login, and the policy allows no other.
    case trackingNotAllowed

    /// The fault of bytes that are no token at all.
    package enum MalformedToken: Equatable, Sendable {
        case empty
        /// The number of parts separated by full stops, which is not three.
        case wrongPartCount(Int)
        /// It is JSON, not the compact form (RFC 7515 section 7.2).
        case jsonSerialization
        case emptyPart(Part)
        case invalidBase64URL(Part)
        /// The part is not strict JSON; the reason as a clause.
        case invalidJSON(Part, reason: String)
        case notAnObject(Part)
    }

    package enum Part: String, Sendable {
        case header
        case payload
        case signature
    }

    package enum ForeignToken: Equatable, Sendable {
        case accessToken
        /// A JWE of five parts.
        case encrypted
        /// The header has parameters of encryption.
        case encryptionHeader
        /// A token within a token (`cty`).
        case nested
        /// `typ` is not `JWT`; its value if it is a short name.
        case type(String?)
    }

    package enum SignatureFault: Equatable, Sendable {
        /// Its length is not that of the key's modulus.
        case wrongLength
        case mismatch
    }

    package enum ClaimFault: Equatable, Sendable {
        case wrongType
        case empty
        /// It is a number outside 0 to 2⁵³.
        case outOfRange
        /// It is longer than its definition allows, or not ASCII.
        case outOfShape
    }

    package enum AudienceFault: Equatable, Sendable {
        case otherApp(String)
        /// The token is for several audiences, which Facebook never issues.
        case severalAudiences
        /// `azp` names another app than `aud`.
        case otherAuthorizedParty(String)
    }

    /// The reason why an issued nonce is no longer good.
    package enum NonceExpiry: Equatable, Sendable {
        case over(at: NumericDate, now: NumericDate)
        /// It is older than the memory of used nonces, so it may have been used.
        case beyondMemory
    }

    /// The evidence that a token was accepted before.
    package enum ReplayEvidence: Equatable, Sendable {
        case remembered
        /// It is older than the memory of accepted tokens, so it may have been accepted.
        case beyondMemory
    }

    /// The difference between the nonces.
    package enum NonceFault: Equatable, Sendable {
        /// It is empty: the login was started without one.
        case empty
        case different
        /// It is the SHA-256 of the given nonce: the client hashes, so the nonce is a raw nonce.
        case hashed
        /// It is the given nonce itself, although its hash was expected.
        case notHashed
    }
}

extension Refusal {
    /// The stable code.
    package var code: TokenRejection.Code { row.code }

    /// The claim at fault, if there is one.
    package var claim: String? { row.claim?.spelling }

    /// The check that refused the token; the checks before it passed. A fault that only a memory detects has the check
    /// of its claim, although the token passed every check.
    package var check: VerificationCheck { row.check }

    private var row: (code: TokenRejection.Code, claim: ClaimName?, check: VerificationCheck) {
        switch self {
        case .bindingRequired, .invalidSubject, .invalidKeyThumbprint, .noNonceIssuer:
            (.invalidRequest, nil, .expectation)
        case .invalidNonce: (.invalidNonce, nil, .expectation)
        case .unknownApp: (.unknownApp, nil, .expectation)
        case .tokenTooLong: (.tokenTooLong, nil, .size)
        case .malformedToken(let fault): (.malformedToken, nil, fault.check)
        case .notAnIDToken(.accessToken), .notAnIDToken(.encrypted): (.notAnIDToken, nil, .serialization)
        case .notAnIDToken: (.notAnIDToken, nil, .type)
        case .unsupportedAlgorithm: (.unsupportedAlgorithm, nil, .algorithm)
        case .unsupportedCriticalHeader: (.unsupportedCriticalHeader, nil, .criticalHeader)
        case .missingKeyID: (.missingKeyID, nil, .keyID)
        case .unknownKey: (.unknownKey, nil, .key)
        case .keysUnavailable: (.keysUnavailable, nil, .key)
        case .invalidSignature: (.invalidSignature, nil, .signature)
        case .missingClaim(let claim): (.missingClaim, claim, claim.check)
        case .malformedClaim(let claim, _): (.malformedClaim, claim, claim.check)
        case .invalidIssuer: (.invalidIssuer, .issuer, .issuer)
        case .invalidAudience(.otherAuthorizedParty): (.invalidAudience, .authorizedParty, .audience)
        case .invalidAudience: (.invalidAudience, .audience, .audience)
        case .expired: (.expired, .expiration, .times)
        case .notYetValid(let claim, _, _): (.notYetValid, claim, .times)
        case .tooOld: (.tooOld, .issuedAt, .times)
        case .nonceMismatch: (.nonceMismatch, .nonce, .binding)
        case .nonceNotIssued: (.nonceNotIssued, .nonce, .binding)
        case .nonceExpired: (.nonceExpired, .nonce, .binding)
        case .nonceUsed: (.nonceUsed, .nonce, .binding)
        case .tokenReplayed: (.tokenReplayed, .tokenID, .identity)
        case .loginRevoked: (.loginRevoked, .issuedAt, .times)
        case .subjectMismatch: (.subjectMismatch, .subject, .binding)
        case .keyThumbprintMismatch: (.keyThumbprintMismatch, .confirmation, .device)
        case .accessTokenHashMismatch: (.accessTokenHashMismatch, .accessTokenHash, .accessToken)
        case .trackingNotAllowed: (.trackingNotAllowed, .accessTokenHash, .tracking)
        }
    }

    /// No key has this ID, which is cut to 64 visible ASCII characters.
    static func unknownKey(_ keyID: some Collection<UInt8>) -> Refusal {
        let shown = keyID.prefix(64).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
        return .unknownKey(keyID: String(decoding: shown, as: UTF8.self))
    }
}

extension Refusal.MalformedToken {
    fileprivate var check: VerificationCheck {
        switch self {
        case .empty: .size
        case .emptyPart(.payload): .payload
        case .wrongPartCount, .jsonSerialization, .emptyPart, .invalidBase64URL: .serialization
        case .invalidJSON(let part, _), .notAnObject(let part): part == .header ? .header : .payload
        }
    }
}

extension ClaimName {
    fileprivate var check: VerificationCheck {
        switch self {
        case .issuer: .issuer
        case .audience, .authorizedParty: .audience
        case .expiration, .issuedAt, .notBefore: .times
        case .subject, .tokenID: .identity
        case .nonce, .confirmation: .binding
        default: .tracking
        }
    }
}
