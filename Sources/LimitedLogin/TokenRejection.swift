/// Why a token was refused.
public enum TokenRejection: Error, Equatable, Sendable {
    /// The stable codes told to callers.
    public enum Code: String, CaseIterable, Sendable {
        case invalidRequest = "invalid_request"
        case invalidNonce = "invalid_nonce"
        case unknownApp = "unknown_app"
        case malformedToken = "malformed_token"
        case notAnIDToken = "not_an_id_token"
        case unsupportedAlgorithm = "unsupported_algorithm"
        case unsupportedCriticalHeader = "unsupported_critical_header"
        case missingKeyID = "missing_key_id"
        case unknownKey = "unknown_key"
        case invalidSignature = "invalid_signature"
        case missingClaim = "missing_claim"
        case malformedClaim = "malformed_claim"
        case invalidIssuer = "invalid_issuer"
        case invalidAudience = "invalid_audience"
        case expired
        case notYetValid = "not_yet_valid"
        case tooOld = "too_old"
        case nonceMismatch = "nonce_mismatch"
        case subjectMismatch = "subject_mismatch"
        case trackingNotAllowed = "tracking_not_allowed"
        case keysUnavailable = "keys_unavailable"
    }

    /// No key in the set has the token's key ID. `VerificationWorkspace.keyID` holds its bytes, for a refetch.
    case unknownKey(keyID: String)

    /// The stable code.
    public var code: Code { .unknownKey }
    /// The claim at fault, where one is.
    public var claim: String? { nil }
    /// One sentence that helps; never the token, never a claim's value before the signature is good.
    public var detail: String { "" }
    /// The check that refused the token.
    public var check: VerificationCheck { .key }
}
