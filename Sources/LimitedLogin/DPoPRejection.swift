internal import LLBytes

/// The reason why a DPoP proof was refused or cannot be judged. No part of the proof or the token is in it, except
/// short claims.
public struct DPoPRejection: Error, Equatable, Sendable, CustomStringConvertible {
    /// The stable codes of a refusal. Later versions may know more of them.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code as it is written in logs.
        public let rawValue: String

        private init(_ rawValue: String) { self.rawValue = rawValue }

        /// The request has no proof.
        public static let missing = Self("missing_proof")
        /// The request has more than one proof.
        public static let repeated = Self("repeated_proof")
        /// The proof is too long, or no JWT.
        public static let malformed = Self("malformed_proof")
        /// `typ` is not `dpop+jwt`.
        public static let wrongType = Self("wrong_type")
        /// `alg` is not ES256.
        public static let unsupportedAlgorithm = Self("unsupported_algorithm")
        /// The header has `crit` or `b64`.
        public static let unsupportedCriticalHeader = Self("unsupported_critical_header")
        /// `jwk` is no public P-256 key.
        public static let invalidKey = Self("invalid_key")
        /// The signature is wrong.
        public static let invalidSignature = Self("invalid_signature")
        /// `htm` or `htu` is of another request, or the request's URL is none.
        public static let wrongRequest = Self("wrong_request")
        /// `iat`, `exp` or `nbf` is missing, unreadable, or too far away.
        public static let outOfTime = Self("out_of_time")
        /// `jti` is missing, empty or too long.
        public static let missingTokenID = Self("missing_token_id")
        /// `ath` is missing, or of another token.
        public static let wrongToken = Self("wrong_token")
        /// The token is bound to another key, or to none.
        public static let wrongKey = Self("wrong_key")
        /// The proof was used before.
        public static let replayed = Self("replayed_proof")
        /// A bound token came as a Bearer.
        public static let boundBearer = Self("bound_bearer")
        /// No refusal: OpenSSL failed.
        public static let cannotVerify = Self("cannot_verify")
        /// The same as `rawValue`.
        public var description: String { rawValue }
    }

    /// The stable code.
    public let code: Code
    /// One sentence that a person can act on.
    public let description: String

    package static let missing = Self(.missing, "The token is bound to a key, and the request has no DPoP proof.")
    package static let repeated = Self(.repeated, "The request has more than one DPoP field.")
    package static let tooLong = Self(
        .malformed,
        "The DPoP proof is longer than \(DecimalNumber.grouped(DPoPProof.byteLimit)) bytes."
    )
    package static let malformed = Self(
        .malformed,
        "The DPoP proof is not a JWT: three parts of base64url, two of them JSON objects."
    )
    package static let wrongType = Self(.wrongType, "The DPoP proof's typ is not dpop+jwt.")
    package static let unsupportedAlgorithm = Self(.unsupportedAlgorithm, "The DPoP proof's alg is not ES256.")
    package static let unsupportedCriticalHeader = Self(
        .unsupportedCriticalHeader,
        "The DPoP proof demands an extension with crit or b64."
    )
    package static let invalidKey = Self(.invalidKey, "The DPoP proof's jwk is not a public P-256 key.")
    package static let invalidSignature = Self(
        .invalidSignature,
        "The DPoP proof's signature is not the one of its jwk."
    )
    package static let noURL = Self(.wrongRequest, "The URL given for the request is no http or https URL.")
    package static let noIssueTime = Self(.outOfTime, "The DPoP proof has no iat.")
    package static let missingTokenID = Self(
        .missingTokenID,
        "The DPoP proof's jti is missing, empty, or longer than 256 bytes."
    )
    package static let unboundToken = Self(.wrongKey, "The token is bound to no key, so no DPoP proof fits it.")
    package static let missingTokenHash = Self(
        .wrongToken,
        "The DPoP proof has no ath: the base64url of the token's SHA-256, without padding."
    )
    package static let otherToken = Self(.wrongToken, "The DPoP proof's ath is not the hash of the token.")
    package static let otherKey = Self(.wrongKey, "The DPoP proof's key is not the one that the token is bound to.")
    package static let replayed = Self(
        .replayed,
        "The DPoP proof's jti was seen before: make a proof with a new jti for each request."
    )
    /// RFC 9449 section 7.2: accepted as a Bearer, a stolen bound token would be useful to a thief.
    package static let boundBearer = Self(
        .boundBearer,
        "The token is bound to a key and came as a Bearer beside a DPoP field: send Authorization: DPoP with the token."
    )
    /// OpenSSL failed, so nothing is known about the proof: this is no refusal, and no reason to answer 401.
    public static let cannotVerify = Self(.cannotVerify, "The DPoP proof cannot be verified now.")

    private init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}

/// The refusals that quote values of the proof. Its text is not secret, and its signature was good.
extension DPoPRejection {
    /// The greatest length of a quoted value, in bytes. 128: enough for most URLs of an API, and the sentence stays
    /// readable.
    private static let shownByteLimit = 128

    private static let clockAdvice = "the device's clock is wrong: correct it by the Date of this answer"

    package static func issuedAhead(_ moment: NumericDate, _ now: NumericDate) -> Self {
        Self(.outOfTime, "The DPoP proof's iat is \(seconds(from: now, to: moment)) ahead: \(clockAdvice).")
    }

    package static func issuedBehind(_ moment: NumericDate, _ now: NumericDate) -> Self {
        Self(
            .outOfTime,
            "The DPoP proof's iat is \(seconds(from: moment, to: now)) behind, and at most "
                + "\(DPoPProof.greatestAgeSeconds) s are allowed. Make a proof for each request; if you do, \(clockAdvice)."
        )
    }

    package static func unreadableTime(_ claim: StaticString) -> Self {
        Self(
            .outOfTime,
            "The DPoP proof's \(claim) is no number of seconds since 1970: write it in seconds and without quotes."
        )
    }

    package static func notInSeconds(_ claim: StaticString, _ unit: StaticString) -> Self {
        Self(
            .outOfTime,
            "The DPoP proof's \(claim) counts \(unit); it must be whole seconds since 1970, such as "
                + "Math.floor(Date.now() / 1000)."
        )
    }

    package static func expired(_ end: NumericDate, _ now: NumericDate) -> Self {
        Self(.outOfTime, "The DPoP proof's exp is \(seconds(from: end, to: now)) behind.")
    }

    package static func notYetValid(_ start: NumericDate, _ now: NumericDate) -> Self {
        Self(.outOfTime, "The DPoP proof's nbf is \(seconds(from: now, to: start)) ahead.")
    }

    package static func wrongMethod(_ claimed: String?, _ method: Span<UInt8>) -> Self {
        guard let claimed else { return Self(.wrongRequest, "The DPoP proof has no htm that is a string.") }
        var asked: [UInt8] = []
        asked.append(method)
        return different("htm", claimed, "method", String(decoding: asked, as: UTF8.self))
    }

    package static func wrongURI(_ claimed: String?, _ target: TargetURI) -> Self {
        guard let claimed else { return Self(.wrongRequest, "The DPoP proof has no htu that is a string.") }
        guard let uri = TargetURI(claimed.utf8.span) else {
            return Self(.wrongRequest, "The DPoP proof's htu is no http or https URL with a host and without a user.")
        }
        // Both are in the normalised spelling that is compared, which has no query.
        let values = [uri, target].map { String(decoding: $0.normalized, as: UTF8.self) }
        return different("htu", values[0], "URL", values[1])
    }

    /// Two values that should be equal; the sentence quotes them if both are short and visible.
    private static func different(_ claim: String, _ claimed: String, _ name: String, _ value: String) -> Self {
        let areShown = [claimed, value].allSatisfy { text in
            (1...shownByteLimit).contains(text.utf8.count) && text.utf8.allSatisfy(ASCII.isVisible)
        }
        guard areShown else { return Self(.wrongRequest, "The DPoP proof's \(claim) is not the request's \(name).") }
        return Self(.wrongRequest, "The DPoP proof's \(claim) is \(claimed), and the request's \(name) is \(value).")
    }

    /// Whole seconds, rounded up, so that a time outside the limit is never reported as within it.
    private static func seconds(from start: NumericDate, to end: NumericDate) -> String {
        // In range: both are from 0 to 2⁵³.
        "\(Int64((end.secondsSince1970 - start.secondsSince1970).rounded(.up))) s"
    }
}
