internal import LLBytes

extension Rejection {
    /// The service answers all of them with one code.
    private static func proof(_ code: Code, _ detail: String? = nil) -> Rejection {
        Rejection(code, detail, answer: .invalidDPoPProof)
    }

    package static let proofMissing = proof(.missingProof)
    package static let proofRepeated = proof(.repeatedProof)
    package static let proofTooLong = proof(
        .malformedProof,
        "The DPoP proof is longer than \(DecimalNumber.grouped(DPoPProof.byteLimit)) bytes."
    )
    package static let proofMalformed = proof(
        .malformedProof,
        "The DPoP proof is not a JWT: three parts of base64url, two of them JSON objects."
    )
    package static let proofOfWrongType = proof(.wrongType)
    package static let proofOfUnsupportedAlgorithm = proof(.unsupportedAlgorithm, "The DPoP proof's alg is not ES256.")
    package static let proofWithCriticalHeader = proof(
        .unsupportedCriticalHeader,
        "The DPoP proof demands an extension with crit or b64."
    )
    package static let proofOfInvalidKey = proof(.invalidKey)
    package static let proofOfInvalidSignature = proof(
        .invalidSignature,
        "The DPoP proof's signature is not the one of its jwk."
    )
    package static let proofWithoutURL = proof(.wrongRequest, "The URL given for the request is no http or https URL.")
    package static let proofWithoutIssueTime = proof(.outOfTime, "The DPoP proof has no iat.")
    package static let proofWithoutTokenID = proof(.missingTokenID)
    package static let proofOfUnboundToken = proof(.wrongKey, "The token is bound to no key, so no DPoP proof fits it.")
    package static let proofOfUnreadableBinding = proof(
        .wrongKey,
        "The token's cnf has no readable thumbprint jkt, so no key can use the token."
    )
    package static let proofWithoutTokenHash = proof(
        .wrongToken,
        "The DPoP proof has no ath: the base64url of the token's SHA-256, without padding."
    )
    package static let proofOfOtherToken = proof(.wrongToken, "The DPoP proof's ath is not the hash of the token.")
    package static let proofOfOtherKey = proof(
        .wrongKey,
        "The DPoP proof's key is not the one that the token is bound to."
    )
    package static let proofReplayed = proof(.replayedProof)
    /// RFC 9449 section 7.2: accepted as a Bearer, a stolen bound token would be useful to a thief.
    package static let boundBearer = proof(
        .boundBearer,
        "The token is bound to a key and came as a Bearer beside a DPoP field: send Authorization: DPoP with the token."
    )
    static let proofNotVerifiable = Rejection(.internalError, "The DPoP proof cannot be verified now.")
}

/// The refusals that quote values of the proof. Its text is not secret, and its signature was good.
extension Rejection {
    /// The greatest length of a quoted value, in bytes. 128: enough for most URLs of an API, and the sentence stays
    /// readable.
    private static let shownByteLimit = 128

    private static let clockAdvice = "the device's clock is wrong: correct it by the Date of this answer"

    package static func proofIssuedAhead(_ moment: NumericDate, _ now: NumericDate) -> Rejection {
        proof(.outOfTime, "The DPoP proof's iat is \(roundedSeconds(from: now, to: moment)) ahead: \(clockAdvice).")
    }

    package static func proofIssuedBehind(_ moment: NumericDate, _ now: NumericDate) -> Rejection {
        proof(
            .outOfTime,
            "The DPoP proof's iat is \(roundedSeconds(from: moment, to: now)) behind, and at most "
                + "\(DPoPProof.greatestAgeSeconds) s are allowed. Make a proof for each request; if you do, \(clockAdvice)."
        )
    }

    package static func proofWithUnreadableTime(_ claim: StaticString) -> Rejection {
        proof(
            .outOfTime,
            "The DPoP proof's \(claim) is no number of seconds since 1970: write it in seconds and without quotes."
        )
    }

    package static func proofNotInSeconds(_ claim: StaticString, _ unit: StaticString) -> Rejection {
        proof(
            .outOfTime,
            "The DPoP proof's \(claim) counts \(unit); it must be whole seconds since 1970, such as "
                + "Math.floor(Date.now() / 1000)."
        )
    }

    package static func proofExpired(_ end: NumericDate, _ now: NumericDate) -> Rejection {
        proof(.outOfTime, "The DPoP proof's exp is \(roundedSeconds(from: end, to: now)) behind.")
    }

    package static func proofNotYetValid(_ start: NumericDate, _ now: NumericDate) -> Rejection {
        proof(.outOfTime, "The DPoP proof's nbf is \(roundedSeconds(from: now, to: start)) ahead.")
    }

    package static func proofOfWrongMethod(_ claimed: String?, _ method: Span<UInt8>) -> Rejection {
        guard let claimed else { return proof(.wrongRequest, "The DPoP proof has no htm that is a string.") }
        var asked: [UInt8] = []
        asked.append(method)
        return different("htm", claimed, "method", String(decoding: asked, as: UTF8.self))
    }

    package static func proofOfWrongURI(_ claimed: String?, _ target: TargetURI) -> Rejection {
        guard let claimed else { return proof(.wrongRequest, "The DPoP proof has no htu that is a string.") }
        guard let uri = TargetURI(claimed.utf8.span) else {
            return proof(.wrongRequest, "The DPoP proof's htu is no http or https URL with a host and without a user.")
        }
        // Both are in the normalised spelling that is compared, which has no query.
        let values = [uri, target].map { String(decoding: $0.normalized, as: UTF8.self) }
        return different("htu", values[0], "URL", values[1])
    }

    /// Two values that should be equal; the sentence quotes them if both are short and visible.
    private static func different(_ claim: String, _ claimed: String, _ name: String, _ value: String) -> Rejection {
        let areShown = [claimed, value].allSatisfy { text in
            (1...shownByteLimit).contains(text.utf8.count) && text.utf8.allSatisfy(ASCII.isVisible)
        }
        guard areShown else { return proof(.wrongRequest, "The DPoP proof's \(claim) is not the request's \(name).") }
        return proof(.wrongRequest, "The DPoP proof's \(claim) is \(claimed), and the request's \(name) is \(value).")
    }

    /// Whole seconds, rounded up, so that a time outside the limit is never reported as within it.
    private static func roundedSeconds(from start: NumericDate, to end: NumericDate) -> String {
        // In range: both are from 0 to 2⁵³.
        "\(Int64((end.secondsSince1970 - start.secondsSince1970).rounded(.up))) s"
    }
}
