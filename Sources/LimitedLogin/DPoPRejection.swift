internal import LLBytes

/// The reason why a DPoP proof was refused or cannot be judged. No part of the proof or the token is in it, except
/// short claims.
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
    package static let noURL = Self("The URL given for the request is no http or https URL.")
    package static let noIssueTime = Self("The DPoP proof has no iat.")
    package static let issuedInMilliseconds = Self(
        "The DPoP proof's iat counts milliseconds; it must be whole seconds since 1970, such as Date.now() / 1000."
    )
    package static let missingTokenID = Self("The DPoP proof's jti is missing, empty, or longer than 256 bytes.")
    package static let unboundToken = Self("The token is bound to no key, so no DPoP proof fits it.")
    package static let missingTokenHash = Self(
        "The DPoP proof has no ath: the base64url of the token's SHA-256, without padding."
    )
    package static let otherToken = Self("The DPoP proof's ath is not the hash of the token.")
    package static let otherKey = Self("The DPoP proof's key is not the one that the token is bound to.")
    package static let replayed = Self(
        "The DPoP proof's jti was seen before: make a proof with a new jti for each request."
    )
    /// RFC 9449 section 7.2: a stolen bound token would be useful if it were accepted as a Bearer.
    package static let boundBearer = Self(
        "The token is bound to a key and came as a Bearer beside a DPoP field: send Authorization: DPoP with the token."
    )
    /// OpenSSL failed, so nothing is known about the proof: this is no refusal, and no reason to answer 401.
    public static let cannotVerify = Self("The DPoP proof cannot be verified now.")

    private init(_ description: String) { self.description = description }
}

/// The refusals that quote values of the proof. Its text is not secret, and its signature was good.
extension DPoPRejection {
    /// Greatest length in bytes of a quoted value. 128: enough for most URLs of an API, in a sentence that is still
    /// readable.
    private static let shownByteLimit = 128

    private static let clockAdvice = "the device's clock is wrong: correct it by the Date of this answer"

    package static func issuedAhead(_ moment: NumericDate, _ now: NumericDate) -> Self {
        Self("The DPoP proof's iat is \(seconds(from: now, to: moment)) ahead: \(clockAdvice).")
    }

    package static func issuedBehind(_ moment: NumericDate, _ now: NumericDate) -> Self {
        Self(
            "The DPoP proof's iat is \(seconds(from: moment, to: now)) behind, and at most "
                + "\(DPoPProof.greatestAgeSeconds) s are allowed. Make a proof for each request; if you do, \(clockAdvice)."
        )
    }

    package static func unreadableTime(_ claim: StaticString) -> Self {
        Self("The DPoP proof's \(claim) is no number of seconds since 1970; it stands without quotes.")
    }

    package static func expired(_ end: NumericDate, _ now: NumericDate) -> Self {
        Self("The DPoP proof's exp is \(seconds(from: end, to: now)) behind.")
    }

    package static func notYetValid(_ start: NumericDate, _ now: NumericDate) -> Self {
        Self("The DPoP proof's nbf is \(seconds(from: now, to: start)) ahead.")
    }

    package static func wrongMethod(_ claimed: String?, _ method: Span<UInt8>) -> Self {
        guard let claimed else { return Self("The DPoP proof has no htm that is a string.") }
        var asked: [UInt8] = []
        asked.append(method)
        return different("htm", claimed, "method", String(decoding: asked, as: UTF8.self))
    }

    package static func wrongURI(_ claimed: String?, _ target: TargetURI) -> Self {
        guard let claimed else { return Self("The DPoP proof has no htu that is a string.") }
        guard let uri = TargetURI(claimed.utf8.span) else {
            return Self("The DPoP proof's htu is no http or https URL with a host and without a user.")
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
        guard areShown else { return Self("The DPoP proof's \(claim) is not the request's \(name).") }
        return Self("The DPoP proof's \(claim) is \(claimed), and the request's \(name) is \(value).")
    }

    /// Whole seconds, rounded up, so that a moment outside the limit is never reported as within it.
    private static func seconds(from start: NumericDate, to end: NumericDate) -> String {
        // In range: both are from 0 to 2⁵³.
        "\(Int64((end.secondsSince1970 - start.secondsSince1970).rounded(.up))) s"
    }
}
