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
