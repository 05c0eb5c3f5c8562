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
/// Answer 503 and let the app try again. End no session for it.
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

/// The checks of a verdict, in the order they are made. Later versions may know more of them.
public struct VerificationCheck: Hashable, Comparable, CaseIterable, Sendable, CustomStringConvertible {
    private enum Known: Int, CaseIterable {
        case expectation, size, serialization, header, algorithm, criticalHeader, type, keyID, key, signature
        case payload, issuer, audience, times, identity, binding, device, tracking, accessToken
    }

    private let known: Known

    private init(_ known: Known) { self.known = known }

    /// The expectation names a configured app and a login.
    public static let expectation = VerificationCheck(.expectation)
    /// The token is not too long.
    public static let size = VerificationCheck(.size)
    /// It has three parts in strict base64url.
    public static let serialization = VerificationCheck(.serialization)
    /// Its header is one JSON object.
    public static let header = VerificationCheck(.header)
    /// `alg`.
    public static let algorithm = VerificationCheck(.algorithm)
    /// `crit` and `b64`.
    public static let criticalHeader = VerificationCheck(.criticalHeader)
    /// `typ`, and no sign of an encrypted or nested token.
    public static let type = VerificationCheck(.type)
    /// `kid`.
    public static let keyID = VerificationCheck(.keyID)
    /// The issuer's key set has that key.
    public static let key = VerificationCheck(.key)
    /// The signature.
    public static let signature = VerificationCheck(.signature)
    /// The payload is one JSON object.
    public static let payload = VerificationCheck(.payload)
    /// `iss`.
    public static let issuer = VerificationCheck(.issuer)
    /// `aud`, and `azp` where it is there.
    public static let audience = VerificationCheck(.audience)
    /// `exp`, `iat`, `nbf` and the age.
    public static let times = VerificationCheck(.times)
    /// `sub` and `jti`.
    public static let identity = VerificationCheck(.identity)
    /// `nonce` or `sub`, as the login expects.
    public static let binding = VerificationCheck(.binding)
    /// `cnf.jkt`, where the caller knows the device's key.
    public static let device = VerificationCheck(.device)
    /// `at_hash`, as far as it tells the tracking.
    public static let tracking = VerificationCheck(.tracking)
    /// `at_hash`, where the caller has the access token.
    public static let accessToken = VerificationCheck(.accessToken)

    /// All checks, in their order.
    public static let allCases = Known.allCases.map { VerificationCheck($0) }

    /// The check's name, as in ``VerificationCheck/keyID``.
    public var description: String { "\(known)" }

    /// What the check asks, for a person.
    public var title: String {
        switch known {
        case .expectation: "The expectation names a configured app and a login"
        case .size: "The token is at most \(VerificationLimits.tokenByteCount) bytes long"
        case .serialization: "The token is a JWS of three parts in strict base64url"
        case .header: "The header is one JSON object that names no member twice"
        case .algorithm: "The algorithm is RS256"
        case .criticalHeader: "The header demands no extension"
        case .type: "The token says it is a JWT, neither encrypted nor nested"
        case .keyID: "The header names its key"
        case .key: "The issuer publishes that key"
        case .signature: "The signature is the issuer's"
        case .payload: "The payload is one JSON object that names no member twice"
        case .issuer: "The issuer is trusted"
        case .audience: "The token is meant for this app"
        case .times: "The token is valid now"
        case .identity: "The token names its subject and itself"
        case .binding: "The token belongs to this login"
        case .device: "The token is bound to the key of the login's device"
        case .tracking: "The tracking of the login is allowed"
        case .accessToken: "The access token came together with the token"
        }
    }

    /// Whether the left check is made before the right one.
    public static func < (left: VerificationCheck, right: VerificationCheck) -> Bool {
        left.known.rawValue < right.known.rawValue
    }
}
