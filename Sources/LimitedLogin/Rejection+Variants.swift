// Refusals with one code and several sentences.

extension Rejection {
    /// The fault of bytes that are no token at all.
    package struct MalformedToken: Sendable {
        let check: VerificationCheck
        let detail: String
        let hint: String
    }

    package static func malformedToken(_ fault: MalformedToken) -> Rejection {
        Rejection(.malformedToken, fault.check, fault.detail, hint: fault.hint)
    }

    package enum Part: String, Sendable {
        case header, payload, signature
    }
}

extension Rejection.MalformedToken {
    private static let isCutShort = "The signature was cut off, so copy the token anew, up to its last character."
    private static let isChanged =
        "The token was changed or cut on its way, so pass it on as a string, unchanged, from "
        + "AuthenticationToken.current.tokenString to here."

    package static let empty = Self(
        check: .size,
        detail: "The token is empty.",
        hint: "Pass what the app reads from AuthenticationToken.current.tokenString; nothing was given."
    )

    /// There are not three parts separated by full stops.
    package static func wrongPartCount(_ count: Int) -> Self {
        Self(
            check: .serialization,
            detail: "A token has three parts separated by full stops; this has \(count).",
            hint: count < 3
                ? "The text ends too early, so copy the token anew, whole, up to the end of its third part."
                : "Look for two tokens pasted one behind the other, or a full stop at the end."
        )
    }

    /// It is JSON, not the compact form (RFC 7515 section 7.2).
    package static let jsonSerialization = Self(
        check: .serialization,
        detail: "The token is in the JSON serialization; only the compact one is accepted.",
        hint: "Pass the token itself, which begins with eyJ or EAA, not the JSON around it."
    )

    package static func emptyPart(_ part: Rejection.Part) -> Self {
        Self(
            check: part == .payload ? .payload : .serialization,
            detail: part == .signature
                ? "The signature is empty: the token is not signed." : "The \(part.rawValue) is empty.",
            hint: part == .signature
                ? isCutShort : "A part between the full stops was cut out, so copy the token anew, whole."
        )
    }

    package static func invalidBase64URL(_ part: Rejection.Part) -> Self {
        Self(
            check: .serialization,
            detail: "The \(part.rawValue) is not base64url as RFC 7515 spells it.",
            hint: part == .signature
                ? "The end of the token is damaged or cut off, so copy the token anew, up to its last character."
                : isChanged
        )
    }

    /// - Parameter reason: a clause.
    package static func invalidJSON(_ part: Rejection.Part, reason: String) -> Self {
        Self(
            check: part == .header ? .header : .payload,
            detail: "The \(part.rawValue) is not strict JSON: \(reason).",
            hint: isChanged
        )
    }

    package static func notAnObject(_ part: Rejection.Part) -> Self {
        Self(
            check: part == .header ? .header : .payload,
            detail: "The \(part.rawValue) is not a JSON object.",
            hint: isChanged
        )
    }
}

extension Rejection {
    package enum ForeignToken: Sendable {
        case accessToken
        /// A JWE of five parts.
        case encrypted
        /// The header has parameters of encryption.
        case encryptionHeader
        /// A token within a token (`cty`).
        case nested
        /// `typ` is not `JWT`; its value if it is a short name.
        case type(String?)
        /// An id token of the service's own issuer; it is not an access token.
        case ownIDToken
    }

    package static func notAnIDToken(_ kind: ForeignToken) -> Rejection {
        let plain =
            "Facebook neither encrypts nor nests id tokens, so have the app send AuthenticationToken.current.tokenString "
            + "instead of this one."
        let (check, detail, hint): (VerificationCheck, String, String) =
            switch kind {
            case .accessToken:
                (
                    .serialization,
                    "This is an access token, not an id token; one of Android, the web or classic login goes into access_token.",
                    "Have the app send AuthenticationToken.current.tokenString, not AccessToken.current.tokenString, which is "
                        + "of no use in Limited Login; or accept access tokens (LIMITED_LOGIN_ACCESS_TOKENS)."
                )
            case .encrypted:
                (.serialization, "This is an encrypted token (JWE); Facebook's id tokens are signed only.", plain)
            case .encryptionHeader:
                (
                    .type,
                    "The header speaks of encryption (enc, zip, p2c or p2s); Facebook's id tokens are signed only.",
                    plain
                )
            case .ownIDToken:
                (
                    .type,
                    "This is an id token that this service issued: it has no client_id.",
                    "Send the access token: leave requested_token_type out at /token."
                )
            case .nested:
                (.type, "This is a token within a token (cty); Facebook's id tokens are not nested.", plain)
            case .type(let name):
                (
                    .type,
                    name.map { "The header's typ is \($0), so this is another kind of token; an id token's is JWT." }
                        ?? "The header's typ is not JWT, so this is another kind of token.",
                    "The header says that this is another kind of token (Facebook's say JWT), so have the app send "
                        + "AuthenticationToken.current.tokenString."
                )
            }
        return Rejection(.notAnIDToken, check, detail, hint: hint)
    }

    /// `alg` is not `RS256`.
    /// - Parameter name: its value if it is a short name.
    package static func unsupportedAlgorithm(_ name: String?) -> Rejection {
        let isSecret = name?.hasPrefix("HS") == true
        let detail =
            name.map {
                isSecret
                    ? "The token is signed with a shared secret (\($0)); Facebook signs id tokens with RS256."
                    : "The algorithm \($0) is not accepted; Facebook signs id tokens with RS256."
            } ?? "The header's alg is missing or no algorithm's name; only RS256 is accepted."
        let hint =
            if name == "none" {
                "Never accept a token without a signature, and find out where it came from."
            } else if isSecret {
                "Find out who signed this with a shared secret, which Facebook never does: a test, or your own session token."
            } else {
                "Facebook signs with RS256 alone, so find out who issued this token."
            }
        return Rejection(.unsupportedAlgorithm, .algorithm, detail, hint: hint)
    }

    /// `alg` of a token that the service issued is not the one of the key that it names.
    package static let algorithmOfAnotherKey = Rejection(
        .unsupportedAlgorithm,
        .algorithm,
        "The header's alg is not the algorithm of the key that it names.",
        hint: "This service names the algorithm of its key, so find out who made this token."
    )

    package enum SignatureFault: Sendable {
        /// Its length differs from that of the key's modulus.
        case wrongLength
        case mismatch
    }

    /// The signature is not the one of the key that the token names.
    package static func invalidSignature(_ fault: SignatureFault) -> Rejection {
        Rejection(
            .invalidSignature,
            .signature,
            fault == .wrongLength
                ? "The signature does not have the length of the named key."
                : "The signature is not the one of the key it names: the token was altered or forged.",
            hint:
                "Compare the token with the one in the app: if both are the same, it is forged, or these keys are another "
                + "issuer's; else a character was changed or left out."
        )
    }

    package enum ClaimFault: String, Sendable {
        case wrongType = "has the wrong JSON type"
        case empty = "is empty"
        /// It is a number outside 0 to 2⁵³.
        case outOfRange = "is out of range: a time is a number of seconds from 0 to 2^53"
        /// It is longer than its definition allows, or not ASCII.
        case outOfShape = "is too long or not ASCII"
    }

    package enum AudienceFault: Sendable {
        case otherApp(String)
        /// The token is for several audiences, which Facebook never issues.
        case severalAudiences
        /// `azp` names another app than `aud`.
        case otherAuthorizedParty(String)
    }

    /// The token is meant for another app, or for others too.
    package static func invalidAudience(_ fault: AudienceFault) -> Rejection {
        let (claim, detail, hint): (ClaimName, String, String) =
            switch fault {
            case .otherApp(let app):
                (
                    .audience,
                    "The audience \(quoted(app)) is not one of the configured apps, or not the app given.",
                    "Look whether LIMITED_LOGIN_APP_IDS is right, and FacebookAppID in the app's Info.plist, and app_id if "
                        + "you give one."
                )
            case .severalAudiences:
                (
                    .audience,
                    "The token names several audiences; one for this app alone is needed.",
                    "Facebook issues a token for one app, so find out who made one for several."
                )
            case .otherAuthorizedParty(let app):
                (
                    .authorizedParty,
                    "The authorized party \(quoted(app)) is not the token's audience.",
                    "The token was given to another app to use, so have your own app log in."
                )
            }
        return Rejection(.invalidAudience, .audience, claim: claim, detail, hint: hint)
    }
}

extension Rejection {
    /// The token is not valid yet.
    package static func notYetValid(_ claim: ClaimName, at date: NumericDate, now: NumericDate) -> Rejection {
        if let unit = date.mistakenUnit {
            return Rejection(
                .notYetValid,
                .times,
                claim: claim,
                "The claim \(claim.spelling) counts \(unit); it must be seconds since 1970.",
                hint:
                    "Facebook's tokens count seconds, so find out which issuer made this one, and have it write seconds."
            )
        }
        return Rejection(
            .notYetValid,
            .times,
            claim: claim,
            "The claim \(claim.spelling) lies \(seconds(from: now, to: date)) in the future: a clock is wrong.",
            hint:
                "Set this machine's clock right (is NTP running?), or allow for it with LIMITED_LOGIN_CLOCK_SKEW_SECONDS."
        )
    }
}

/// The tie between the token and the login.
extension Rejection {
    /// The difference between the nonces.
    package enum NonceFault: Sendable {
        /// It is empty: the login was started without one.
        case empty
        case different
        /// It is the nonce of Facebook's sample code.
        case ofSample
        /// It is an upper-case UUID: the SDK made it, because the app gave none.
        case ofSDK
        /// It is the SHA-256 of the given nonce: the client hashes it, so the caller must send it as the raw nonce.
        case hashed
        /// It is the given nonce itself, but its hash was expected.
        case notHashed

        /// - Parameter nonce: The token's nonce, which is not the one given.
        init(of nonce: [UInt8]) {
            let isUUID =
                nonce.count == 36
                && nonce.indices.allSatisfy { index in
                    [8, 13, 18, 23].contains(index)
                        ? nonce[index] == UInt8(ascii: "-")
                        : (0x30...0x39).contains(nonce[index]) || (0x41...0x46).contains(nonce[index])
                }
            self = nonce.isEmpty ? .empty : nonce == Array("123".utf8) ? .ofSample : isUUID ? .ofSDK : .different
        }
    }

    /// The token belongs to another login.
    package static func nonceMismatch(_ fault: NonceFault) -> Rejection {
        let (detail, hint) =
            switch fault {
            case .empty:
                (
                    "The token's nonce is empty: the login was started without one, so nothing ties it to this login.",
                    "Have the app begin the login with a nonce: LoginConfiguration(tracking:nonce:)."
                )
            case .different:
                (
                    "The token's nonce is not the one given: it belongs to another login.",
                    "Give the nonce of the very login that this token came from; if the SDK refreshed the token silently or "
                        + "because the app asked, its nonce is the SDK's own, so give subject alone."
                )
            case .ofSample:
                (
                    "The token's nonce is 123, the one of Facebook's sample code; it is not the one given.",
                    "Have the app pass the nonce of your backend to LoginConfiguration(tracking:nonce:) in place of \"123\"."
                )
            case .ofSDK:
                (
                    "The token's nonce is an upper-case UUID, which the SDK makes itself; it is not the one given.",
                    "Have the app pass the nonce of your backend to LoginConfiguration(tracking:nonce:); for a token that the "
                        + "SDK refreshed silently or because the app asked, give subject alone."
                )
            case .hashed:
                (
                    "The token's nonce is the SHA-256 of the nonce given: the client hashes it.",
                    "Give the same value as raw_nonce, since the app hashes its nonce."
                )
            case .notHashed:
                (
                    "The token's nonce is the raw nonce itself, not its SHA-256: the client does not hash it.",
                    "Give the same value as nonce, since the app does not hash its nonce."
                )
            }
        return Rejection(.nonceMismatch, .binding, claim: .nonce, detail, hint: hint)
    }

    /// The reason why an issued nonce is no longer good.
    package enum NonceExpiry: Sendable {
        case over(at: NumericDate, now: NumericDate)
        /// It is older than the memory of used nonces, so it may have been used.
        case olderThanStore
    }

    package static func nonceExpired(_ expiry: NonceExpiry) -> Rejection {
        let (detail, hint) =
            switch expiry {
            case .over(let date, let now):
                (
                    "The token's nonce expired \(seconds(from: date, to: now)) ago.",
                    "For a token that the SDK refreshed give subject beside the nonce; for a login ask for a new nonce when the "
                        + "person taps the button, not before."
                )
            case .olderThanStore:
                (
                    "The token's nonce was issued before the present memory of used nonces began (the service or its store was "
                        + "restarted), so it may have been used.",
                    "Begin the login anew with a new nonce of POST /nonces."
                )
            }
        return Rejection(.nonceExpired, .binding, claim: .nonce, detail, hint: hint)
    }

    /// The evidence that a token was accepted before.
    package enum ReplayEvidence: Sendable {
        case remembered
        /// It is older than the memory of accepted tokens, so it may have been accepted.
        case olderThanStore
    }

    package static func tokenReplayed(_ evidence: ReplayEvidence) -> Rejection {
        Rejection(
            .tokenReplayed,
            .identity,
            claim: .tokenID,
            evidence == .remembered
                ? "The token was accepted before, and each is accepted once."
                : "The token was issued before the present memory of accepted tokens began (the service or its store was "
                    + "restarted), so it may have been accepted before.",
            hint: "Have the app log in again for a token of its own."
        )
    }
}
