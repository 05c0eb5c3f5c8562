/// Why a token was not accepted, with every detail: what a ``TokenRejection`` or a ``VerificationUnavailable`` tells of.
package enum Refusal: Error, Equatable, Sendable {
    /// The caller gave neither nonce nor subject, and the policy demands one.
    case bindingRequired
    /// The caller's nonce is empty or holds white space.
    case invalidNonce
    /// The caller's subject is empty.
    case invalidSubject
    /// The caller's key thumbprint is none.
    case invalidKeyThumbprint
    /// The caller asks for a nonce that was issued here, and the verifier has no ``NonceIssuer``.
    case noNonceIssuer
    /// The caller's app is not one of the policy's.
    case unknownApp
    /// These bytes are no token.
    case malformedToken(MalformedToken)
    /// This is a token, but of another kind.
    case notAnIDToken(ForeignToken)
    /// `alg` is not `RS256`; its value where it is a short name.
    case unsupportedAlgorithm(String?)
    /// The header demands an extension with `crit` or `b64`.
    case unsupportedCriticalHeader
    /// `kid` is missing, empty or no string.
    case missingKeyID
    /// No key of the set has the token's key ID, given here cut to 64 visible ASCII characters.
    case unknownKey(keyID: String)
    /// There are no keys at all: an outage of the key source, not a fault of the token.
    case keysUnavailable
    /// The signature is not the one of the key the token names.
    case invalidSignature(SignatureFault)
    /// A claim that every id token has is not there.
    case missingClaim(ClaimName)
    /// A claim has the wrong type or a value out of range.
    case malformedClaim(ClaimName, ClaimFault)
    /// The issuer is not trusted.
    case invalidIssuer(String)
    /// The token is meant for another app, or for others too.
    case invalidAudience(AudienceFault)
    /// The token's life is over.
    case expired(at: NumericDate, now: NumericDate)
    /// The token's life has not begun: `claim` lies in the future.
    case notYetValid(ClaimName, at: NumericDate, now: NumericDate)
    /// The token was issued too long ago.
    case tooOld(issuedAt: NumericDate, maximumAgeSeconds: Int, now: NumericDate)
    /// The token belongs to another login.
    case nonceMismatch(NonceFault)
    /// The token's nonce was not issued here, or for another app.
    case nonceNotIssued
    /// The token's nonce was issued here, but too long ago.
    case nonceExpired(NonceExpiry)
    /// The token's nonce was used before. A store of used nonces tells this; a ``TokenVerifier`` does not.
    case nonceUsed
    /// The token was accepted before. A store of accepted tokens tells this; a ``TokenVerifier`` does not.
    case tokenReplayed(ReplayEvidence)
    /// The login was revoked after the token was issued. Told by the memory of revocations.
    case loginRevoked
    /// The token belongs to another person.
    case subjectMismatch
    /// The token is bound to another key, or to none.
    case keyThumbprintMismatch
    /// The access token was not issued together with this token.
    case accessTokenHashMismatch
    /// The login was not a Limited Login, and the policy allows no other.
    case trackingNotAllowed

    /// What makes bytes no token at all.
    package enum MalformedToken: Equatable, Sendable {
        /// There are no bytes.
        case empty
        /// There are more than 8 KiB.
        case tooLong
        /// There are not three parts separated by full stops; their number.
        case wrongPartCount(Int)
        /// It is JSON, not the compact form (RFC 7515 section 7.2).
        case jsonSerialization
        /// The part is empty.
        case emptyPart(Part)
        /// The part is not strict base64url.
        case invalidBase64URL(Part)
        /// The part is not strict JSON; the reason as a clause.
        case invalidJSON(Part, reason: String)
        /// The part is JSON but not an object.
        case notAnObject(Part)
    }

    /// A part of a token.
    package enum Part: String, Sendable {
        /// The JOSE header.
        case header
        /// The claims.
        case payload
        /// The signature.
        case signature
    }

    /// A kind of token that is not an id token.
    package enum ForeignToken: Equatable, Sendable {
        /// An opaque access token.
        case accessToken
        /// A JWE of five parts.
        case encrypted
        /// A header that speaks of encryption.
        case encryptionHeader
        /// A token within a token (`cty`).
        case nested
        /// `typ` is not `JWT`; its value where it is a short name.
        case type(String?)
    }

    /// What is wrong with a signature.
    package enum SignatureFault: Equatable, Sendable {
        /// It has not the length of the key's modulus.
        case wrongLength
        /// It is not the key's signature of these bytes.
        case mismatch
    }

    /// What is wrong with a claim.
    package enum ClaimFault: Equatable, Sendable {
        /// It has another JSON type than its definition says.
        case wrongType
        /// It is an empty string or array.
        case empty
        /// It is a number outside 0 to 2⁵³.
        case outOfRange
        /// It is longer than its definition allows, or not ASCII.
        case outOfShape
    }

    /// What is wrong with an audience.
    package enum AudienceFault: Equatable, Sendable {
        /// The token is for another app.
        case otherApp(String)
        /// The token is for several audiences, which Facebook never issues.
        case severalAudiences
        /// `azp` names another app than `aud`.
        case otherAuthorizedParty(String)
    }

    /// Why an issued nonce is no longer good.
    package enum NonceExpiry: Equatable, Sendable {
        /// Its time is over.
        case over(at: NumericDate, now: NumericDate)
        /// It is older than the memory of used nonces, so it cannot be known that it was not used.
        case beyondMemory
    }

    /// How it is known that a token was accepted before.
    package enum ReplayEvidence: Equatable, Sendable {
        /// It is remembered.
        case remembered
        /// It is older than the memory of accepted tokens, so it cannot be known that it was not.
        case beyondMemory
    }

    /// How a nonce differs.
    package enum NonceFault: Equatable, Sendable {
        /// It is empty: the login was started without one.
        case empty
        /// It is another one.
        case different
        /// It is the SHA-256 of the nonce given: the client hashes, so the nonce is a raw nonce.
        case hashed
        /// It is the nonce given itself, though its hash was expected.
        case notHashed
    }
}

extension Refusal {
    /// The stable code.
    package var code: TokenRejection.Code {
        switch self {
        case .bindingRequired, .invalidSubject, .invalidKeyThumbprint, .noNonceIssuer: .invalidRequest
        case .invalidNonce: .invalidNonce
        case .unknownApp: .unknownApp
        case .malformedToken: .malformedToken
        case .notAnIDToken: .notAnIDToken
        case .unsupportedAlgorithm: .unsupportedAlgorithm
        case .unsupportedCriticalHeader: .unsupportedCriticalHeader
        case .missingKeyID: .missingKeyID
        case .unknownKey: .unknownKey
        case .keysUnavailable: .keysUnavailable
        case .invalidSignature: .invalidSignature
        case .missingClaim: .missingClaim
        case .malformedClaim: .malformedClaim
        case .invalidIssuer: .invalidIssuer
        case .invalidAudience: .invalidAudience
        case .expired: .expired
        case .notYetValid: .notYetValid
        case .tooOld: .tooOld
        case .nonceMismatch: .nonceMismatch
        case .nonceNotIssued: .nonceNotIssued
        case .nonceExpired: .nonceExpired
        case .nonceUsed: .nonceUsed
        case .tokenReplayed: .tokenReplayed
        case .loginRevoked: .loginRevoked
        case .subjectMismatch: .subjectMismatch
        case .keyThumbprintMismatch: .keyThumbprintMismatch
        case .accessTokenHashMismatch: .accessTokenHashMismatch
        case .trackingNotAllowed: .trackingNotAllowed
        }
    }

    /// The claim at fault, where one is.
    package var claim: String? { claimName?.rawValue }

    private var claimName: ClaimName? {
        switch self {
        case .missingClaim(let claim), .malformedClaim(let claim, _), .notYetValid(let claim, _, _): claim
        case .invalidIssuer: .issuer
        case .invalidAudience(.otherAuthorizedParty): .authorizedParty
        case .invalidAudience: .audience
        case .expired: .expiration
        case .tooOld, .loginRevoked: .issuedAt
        case .nonceMismatch, .nonceNotIssued, .nonceExpired, .nonceUsed: .nonce
        case .tokenReplayed: .tokenID
        case .subjectMismatch: .subject
        case .keyThumbprintMismatch: .confirmation
        case .trackingNotAllowed, .accessTokenHashMismatch: .accessTokenHash
        default: nil
        }
    }

    /// The check that refused the token; the checks before it passed.
    package var check: VerificationCheck {
        switch self {
        case .bindingRequired, .invalidNonce, .invalidSubject, .invalidKeyThumbprint, .noNonceIssuer, .unknownApp:
            .expectation
        case .malformedToken(let fault): fault.check
        case .notAnIDToken(.accessToken), .notAnIDToken(.encrypted): .serialization
        case .notAnIDToken(.encryptionHeader), .notAnIDToken(.nested), .notAnIDToken(.type): .type
        case .unsupportedAlgorithm: .algorithm
        case .unsupportedCriticalHeader: .criticalHeader
        case .missingKeyID: .keyID
        case .unknownKey, .keysUnavailable: .key
        case .invalidSignature: .signature
        case .missingClaim(let claim), .malformedClaim(let claim, _): claim.check
        case .invalidIssuer: .issuer
        case .invalidAudience: .audience
        // Known only after every check was passed; `iat` is what it compares.
        case .expired, .notYetValid, .tooOld, .loginRevoked: .times
        case .nonceMismatch, .nonceNotIssued, .nonceExpired, .subjectMismatch: .binding
        case .keyThumbprintMismatch: .device
        case .accessTokenHashMismatch: .accessToken
        // Known only after every check was passed; these are the ones they speak of.
        case .nonceUsed: .binding
        case .tokenReplayed: .identity
        case .trackingNotAllowed: .tracking
        }
    }
}

extension Refusal.MalformedToken {
    fileprivate var check: VerificationCheck {
        switch self {
        case .empty, .tooLong: .size
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
