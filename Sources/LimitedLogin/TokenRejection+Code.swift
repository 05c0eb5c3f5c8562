extension TokenRejection {
    /// The stable codes told to callers.
    public enum Code: String, CaseIterable, Sendable {
        /// The request itself cannot be meant.
        case invalidRequest = "invalid_request"
        /// The nonce given is no nonce.
        case invalidNonce = "invalid_nonce"
        /// The app given is not configured.
        case unknownApp = "unknown_app"
        /// The token is no JWS of JSON.
        case malformedToken = "malformed_token"
        /// The token is of another kind.
        case notAnIDToken = "not_an_id_token"
        /// `alg` is not RS256.
        case unsupportedAlgorithm = "unsupported_algorithm"
        /// `crit` or `b64`.
        case unsupportedCriticalHeader = "unsupported_critical_header"
        /// No `kid`.
        case missingKeyID = "missing_key_id"
        /// No key of that ID.
        case unknownKey = "unknown_key"
        /// The signature is wrong.
        case invalidSignature = "invalid_signature"
        /// A claim is missing.
        case missingClaim = "missing_claim"
        /// A claim has the wrong type or range.
        case malformedClaim = "malformed_claim"
        /// The issuer is not trusted.
        case invalidIssuer = "invalid_issuer"
        /// The token is for another app.
        case invalidAudience = "invalid_audience"
        /// The token's life is over.
        case expired
        /// The token's life has not begun.
        case notYetValid = "not_yet_valid"
        /// The token was issued too long ago.
        case tooOld = "too_old"
        /// The token belongs to another login.
        case nonceMismatch = "nonce_mismatch"
        /// The token's nonce was not issued here for this app.
        case nonceNotIssued = "nonce_not_issued"
        /// The token's nonce was issued too long ago.
        case nonceExpired = "nonce_expired"
        /// The token's nonce was used before.
        case nonceUsed = "nonce_used"
        /// The token was accepted before.
        case tokenReplayed = "token_replayed"
        /// The token belongs to another person.
        case subjectMismatch = "subject_mismatch"
        /// The login was not a Limited Login.
        case trackingNotAllowed = "tracking_not_allowed"
        /// There are no keys to judge with.
        case keysUnavailable = "keys_unavailable"
    }

    /// The stable code.
    public var code: Code {
        switch self {
        case .bindingRequired, .invalidSubject, .noNonceIssuer: .invalidRequest
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
        case .subjectMismatch: .subjectMismatch
        case .trackingNotAllowed: .trackingNotAllowed
        }
    }

    /// The claim at fault, where one is.
    public var claim: String? { claimName?.rawValue }

    private var claimName: ClaimName? {
        switch self {
        case .missingClaim(let claim), .malformedClaim(let claim, _), .notYetValid(let claim, _, _): claim
        case .invalidIssuer: .issuer
        case .invalidAudience(.otherAuthorizedParty): .authorizedParty
        case .invalidAudience: .audience
        case .expired: .expiration
        case .tooOld: .issuedAt
        case .nonceMismatch, .nonceNotIssued, .nonceExpired, .nonceUsed: .nonce
        case .tokenReplayed: .tokenID
        case .subjectMismatch: .subject
        case .trackingNotAllowed: .accessTokenHash
        default: nil
        }
    }

    /// The check that refused the token; the checks before it passed.
    public var check: VerificationCheck {
        switch self {
        case .bindingRequired, .invalidNonce, .invalidSubject, .noNonceIssuer, .unknownApp: .expectation
        case .malformedToken(let fault): fault.check
        case .notAnIDToken(.accessToken): .serialization
        case .notAnIDToken(.encrypted), .notAnIDToken(.nested), .notAnIDToken(.type): .type
        case .unsupportedAlgorithm: .algorithm
        case .unsupportedCriticalHeader: .criticalHeader
        case .missingKeyID: .keyID
        case .unknownKey, .keysUnavailable: .key
        case .invalidSignature: .signature
        case .missingClaim(let claim), .malformedClaim(let claim, _): claim.check
        case .invalidIssuer: .issuer
        case .invalidAudience: .audience
        case .expired, .notYetValid, .tooOld: .times
        case .nonceMismatch, .nonceNotIssued, .nonceExpired, .subjectMismatch: .binding
        // Known only after every check was passed; these are the ones they speak of.
        case .nonceUsed: .binding
        case .tokenReplayed: .identity
        case .trackingNotAllowed: .tracking
        }
    }
}

extension TokenRejection.MalformedToken {
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
        case .nonce: .binding
        default: .tracking
        }
    }
}
