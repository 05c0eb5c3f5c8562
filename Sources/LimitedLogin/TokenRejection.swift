/// Why a token was refused: the token's own fault, or the fault of what the caller expects of it.
///
/// Nothing here holds the token, nor a claim's value unless the signature was good. A fault of neither, such as keys
/// that cannot be had, is a ``VerificationUnavailable`` instead.
public struct TokenRejection: Error, Equatable, Sendable, CustomStringConvertible {
    /// The stable codes told to callers. Later versions may know more of them.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Known: String, CaseIterable {
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
            case nonceNotIssued = "nonce_not_issued"
            case nonceExpired = "nonce_expired"
            case nonceUsed = "nonce_used"
            case tokenReplayed = "token_replayed"
            case loginRevoked = "login_revoked"
            case subjectMismatch = "subject_mismatch"
            case keyThumbprintMismatch = "key_thumbprint_mismatch"
            case accessTokenHashMismatch = "at_hash_mismatch"
            case trackingNotAllowed = "tracking_not_allowed"
            case keysUnavailable = "keys_unavailable"
        }

        private let known: Known

        private init(_ known: Known) { self.known = known }

        /// The expectation is empty, incomplete, or not allowed by the policy.
        public static let invalidRequest = Code(.invalidRequest)
        /// The nonce given is no nonce.
        public static let invalidNonce = Code(.invalidNonce)
        /// The app given is not configured.
        public static let unknownApp = Code(.unknownApp)
        /// The token is no JWS of JSON.
        public static let malformedToken = Code(.malformedToken)
        /// The token is of another kind.
        public static let notAnIDToken = Code(.notAnIDToken)
        /// `alg` is not RS256.
        public static let unsupportedAlgorithm = Code(.unsupportedAlgorithm)
        /// The header has `crit` or `b64`.
        public static let unsupportedCriticalHeader = Code(.unsupportedCriticalHeader)
        /// The header has no `kid`.
        public static let missingKeyID = Code(.missingKeyID)
        /// No published key has that ID.
        public static let unknownKey = Code(.unknownKey)
        /// The signature is wrong.
        public static let invalidSignature = Code(.invalidSignature)
        /// A claim is missing.
        public static let missingClaim = Code(.missingClaim)
        /// A claim has the wrong type or range.
        public static let malformedClaim = Code(.malformedClaim)
        /// The issuer is not trusted.
        public static let invalidIssuer = Code(.invalidIssuer)
        /// The token is for another app.
        public static let invalidAudience = Code(.invalidAudience)
        /// The token's life is over.
        public static let expired = Code(.expired)
        /// The token's life has not begun.
        public static let notYetValid = Code(.notYetValid)
        /// The token was issued too long ago.
        public static let tooOld = Code(.tooOld)
        /// The token belongs to another login.
        public static let nonceMismatch = Code(.nonceMismatch)
        /// The token's nonce was not issued here for this app.
        public static let nonceNotIssued = Code(.nonceNotIssued)
        /// The token's nonce was issued too long ago.
        public static let nonceExpired = Code(.nonceExpired)
        /// The token's nonce was used before.
        public static let nonceUsed = Code(.nonceUsed)
        /// The token was accepted before.
        public static let tokenReplayed = Code(.tokenReplayed)
        /// The login was revoked after the token was issued.
        public static let loginRevoked = Code(.loginRevoked)
        /// The token belongs to another person.
        public static let subjectMismatch = Code(.subjectMismatch)
        /// The token is bound to another key, or to none.
        public static let keyThumbprintMismatch = Code(.keyThumbprintMismatch)
        /// The access token was not issued together with the token.
        public static let accessTokenHashMismatch = Code(.accessTokenHashMismatch)
        /// The login was not a Limited Login.
        public static let trackingNotAllowed = Code(.trackingNotAllowed)
        /// The service's code for a ``VerificationUnavailable``; no ``TokenRejection`` has it.
        package static let keysUnavailable = Code(.keysUnavailable)

        package static let allCases = Known.allCases.map { Code($0) }

        /// The code as it is written in answers and logs.
        public var rawValue: String { known.rawValue }

        /// The same as `rawValue`.
        public var description: String { rawValue }
    }

    /// Why, with every detail.
    package let refusal: Refusal

    fileprivate init(_ refusal: Refusal) { self.refusal = refusal }

    /// The stable code.
    public var code: Code { refusal.code }

    /// The claim at fault, where one is.
    public var claim: String? { refusal.claim }

    /// The check that refused the token; the checks before it passed.
    public var check: VerificationCheck { refusal.check }

    /// One sentence or two that a person can act on.
    public var detail: String { refusal.detail }

    /// The code and the detail.
    public var description: String { "\(code): \(detail)" }
}

/// Why it cannot be told whether a token is good: a fault of the keys or of the clock, never of the token.
///
/// Answer 503 and let the app try again. Nobody should be logged out for it.
public struct VerificationUnavailable: Error, Equatable, Sendable, CustomStringConvertible {
    /// There are no keys to verify with, or they cannot be used.
    public static let keys = VerificationUnavailable("No keys are available to verify with; try again later.")
    /// The clock gives no time.
    public static let clock = VerificationUnavailable("The clock gives no time to judge a token by; set it right.")

    /// One sentence for the log.
    public let description: String

    private init(_ description: String) { self.description = description }
}

extension Refusal {
    /// The error that the library throws for it.
    package var error: any Error {
        self == .keysUnavailable ? VerificationUnavailable.keys : TokenRejection(self)
    }
}
