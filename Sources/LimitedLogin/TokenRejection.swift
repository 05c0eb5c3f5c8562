/// The reason why a token was refused: a fault of the token, or a fault of the caller's expectation.
///
/// It holds neither the token nor, unless the signature was good, a claim's value. A fault of neither, such as missing
/// keys, is a ``VerificationUnavailable`` instead.
public struct TokenRejection: Error, Equatable, Sendable, CustomStringConvertible {
    /// The stable codes for callers. Later versions may know more of them.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code in answers and logs.
        public let rawValue: String

        private init(_ rawValue: String) { self.rawValue = rawValue }

        /// The expectation is empty, incomplete, or not allowed by the policy.
        public static let invalidRequest = Self("invalid_request")
        /// The given nonce is no nonce.
        public static let invalidNonce = Self("invalid_nonce")
        /// The given app is not configured.
        public static let unknownApp = Self("unknown_app")
        /// The token is no JWS of JSON.
        public static let malformedToken = Self("malformed_token")
        /// The token is longer than the limit.
        public static let tokenTooLong = Self("token_too_long")
        /// The token is of another kind.
        public static let notAnIDToken = Self("not_an_id_token")
        /// The value of `alg` is not RS256.
        public static let unsupportedAlgorithm = Self("unsupported_algorithm")
        /// The header has `crit` or `b64`.
        public static let unsupportedCriticalHeader = Self("unsupported_critical_header")
        /// The header has no `kid`.
        public static let missingKeyID = Self("missing_key_id")
        /// No published key has that ID.
        public static let unknownKey = Self("unknown_key")
        /// The signature is wrong.
        public static let invalidSignature = Self("invalid_signature")
        /// A claim is missing.
        public static let missingClaim = Self("missing_claim")
        /// A claim has the wrong type or range.
        public static let malformedClaim = Self("malformed_claim")
        /// The issuer is not trusted.
        public static let invalidIssuer = Self("invalid_issuer")
        /// The token is for another app.
        public static let invalidAudience = Self("invalid_audience")
        /// The token's life is over.
        public static let expired = Self("expired")
        /// The token's life has not begun.
        public static let notYetValid = Self("not_yet_valid")
        /// The token was issued too long ago.
        public static let tooOld = Self("too_old")
        /// The token belongs to another login.
        public static let nonceMismatch = Self("nonce_mismatch")
        /// The token's nonce was not issued here for this app.
        public static let nonceNotIssued = Self("nonce_not_issued")
        /// The token's nonce was issued too long ago.
        public static let nonceExpired = Self("nonce_expired")
        /// The token's nonce was used before.
        public static let nonceUsed = Self("nonce_used")
        /// The token was accepted before.
        public static let tokenReplayed = Self("token_replayed")
        /// The login was revoked after the token was issued.
        public static let loginRevoked = Self("login_revoked")
        /// The token belongs to another person.
        public static let subjectMismatch = Self("subject_mismatch")
        /// The token is bound to another key, or to none.
        public static let keyThumbprintMismatch = Self("key_thumbprint_mismatch")
        /// The access token was not issued together with the token.
        public static let accessTokenHashMismatch = Self("at_hash_mismatch")
        /// The login was not a Limited Login.
        public static let trackingNotAllowed = Self("tracking_not_allowed")
        /// The service's code for a ``VerificationUnavailable``; no ``TokenRejection`` has it.
        package static let keysUnavailable = Self("keys_unavailable")

        package static let allCases: [Self] = [
            .invalidRequest, .invalidNonce, .unknownApp, .tokenTooLong, .malformedToken, .notAnIDToken,
            .unsupportedAlgorithm,
            .unsupportedCriticalHeader, .missingKeyID, .unknownKey, .invalidSignature, .missingClaim, .malformedClaim,
            .invalidIssuer, .invalidAudience, .expired, .notYetValid, .tooOld, .nonceMismatch, .nonceNotIssued,
            .nonceExpired, .nonceUsed, .tokenReplayed, .loginRevoked, .subjectMismatch, .keyThumbprintMismatch,
            .accessTokenHashMismatch, .trackingNotAllowed, .keysUnavailable,
        ]

        /// The same as `rawValue`.
        public var description: String { rawValue }
    }

    /// The reason, with every detail.
    package let refusal: Refusal

    fileprivate init(_ refusal: Refusal) { self.refusal = refusal }

    /// The stable code.
    public var code: Code { refusal.code }

    /// The claim at fault, if there is one.
    public var claim: String? { refusal.claim }

    /// The check that refused the token; the checks before it passed.
    public var check: VerificationCheck { refusal.check }

    /// One or two sentences that a person can act on.
    public var detail: String { refusal.detail }

    /// The code and the detail.
    public var description: String { "\(code): \(detail)" }
}

/// The reason why a token cannot be judged: a fault of the keys or of the clock, never of the token.
///
/// Answer 503 and let the app try again. End no session because of it.
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
    /// The place in the order.
    private let place: Int
    /// The check's name, as in ``VerificationCheck/keyID``.
    public let description: String
    /// The check's title, for a person.
    public let title: String

    private init(_ place: Int, _ description: String, _ title: String) {
        self.place = place
        self.description = description
        self.title = title
    }

    /// The expectation names a configured app and a login.
    public static let expectation = Self(0, "expectation", "You named an app and a login")
    /// The token is not too long.
    public static let size = Self(1, "size", "The token is at most \(VerificationLimits.tokenByteCount) bytes long")
    /// It has three parts in strict base64url.
    public static let serialization = Self(2, "serialization", "The token is a JWS of three parts in strict base64url")
    /// Its header is one JSON object.
    public static let header = Self(3, "header", "The header is one JSON object that names no member twice")
    /// `alg`.
    public static let algorithm = Self(4, "algorithm", "The algorithm is RS256")
    /// `crit` and `b64`.
    public static let criticalHeader = Self(5, "criticalHeader", "The header demands no extension")
    /// `typ`, and no sign of an encrypted or nested token.
    public static let type = Self(6, "type", "The token says it is a JWT, neither encrypted nor nested")
    /// `kid`.
    public static let keyID = Self(7, "keyID", "The header names its key")
    /// The issuer's key set has that key.
    public static let key = Self(8, "key", "The issuer publishes that key")
    /// The signature.
    public static let signature = Self(9, "signature", "The signature is the issuer's")
    /// The payload is one JSON object.
    public static let payload = Self(10, "payload", "The payload is one JSON object that names no member twice")
    /// `iss`.
    public static let issuer = Self(11, "issuer", "The issuer is trusted")
    /// `aud`, and `azp` if it exists.
    public static let audience = Self(12, "audience", "The token is meant for this app")
    /// `exp`, `iat`, `nbf` and the age.
    public static let times = Self(13, "times", "The token is valid now")
    /// `sub` and `jti`.
    public static let identity = Self(14, "identity", "The token names its subject and itself")
    /// `nonce` or `sub`, as the login expects.
    public static let binding = Self(15, "binding", "The token belongs to this login")
    /// `cnf.jkt`, if the caller knows the device's key.
    public static let device = Self(16, "device", "The token is bound to the key of the login's device")
    /// `at_hash`, as far as it shows the tracking.
    public static let tracking = Self(17, "tracking", "The tracking of the login is allowed")
    /// `at_hash`, if the caller has the access token.
    public static let accessToken = Self(18, "accessToken", "The access token came together with the token")

    /// All checks, in their order.
    public static let allCases: [Self] = [
        .expectation, .size, .serialization, .header, .algorithm, .criticalHeader, .type, .keyID, .key, .signature,
        .payload, .issuer, .audience, .times, .identity, .binding, .device, .tracking, .accessToken,
    ]

    /// True if the left check comes before the right one.
    public static func < (left: VerificationCheck, right: VerificationCheck) -> Bool {
        left.place < right.place
    }
}
