// Refusals with one code and several sentences.

extension Rejection {
    package struct MalformedToken: Sendable {
        var check = VerificationCheck.serialization
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

    package static func wrongPartCount(_ count: Int) -> Self {
        Self(
            detail: "A token has three parts separated by full stops; this has \(count).",
            hint: count < 3
                ? "The text ends too early, so copy the token anew, whole, up to the end of its third part."
                : "Look for two tokens pasted one behind the other, or a full stop at the end."
        )
    }

    /// It is JSON, not the compact form (RFC 7515 section 7.2).
    package static let jsonSerialization = Self(
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
            detail: "The \(part.rawValue) is not base64url as RFC 7515 spells it.",
            hint: part == .signature
                ? "The end of the token is damaged or cut off, so copy the token anew, up to its last character."
                : isChanged
        )
    }

    package static func invalidJSON(_ part: Rejection.Part, reason: String) -> Self {
        unread(part, "strict JSON: \(reason)")
    }
    package static func notAnObject(_ part: Rejection.Part) -> Self { unread(part, "a JSON object") }
    private static func unread(_ part: Rejection.Part, _ wanted: String) -> Self {
        let check = part == .header ? VerificationCheck.header : .payload
        return Self(check: check, detail: "The \(part.rawValue) is not \(wanted).", hint: isChanged)
    }
}

extension Rejection {
    /// A token of another kind.
    package struct ForeignToken: Sendable {
        private static let plain =
            "Facebook neither encrypts nor nests id tokens, so have the app send AuthenticationToken.current.tokenString "
            + "instead of this one."

        var check = VerificationCheck.type
        let detail: String
        var hint = plain

        package static let accessToken = Self(
            check: .serialization,
            detail:
                "This is an access token, not an id token; one of Android, the web or classic login goes into access_token.",
            hint:
                "Have the app send AuthenticationToken.current.tokenString, not AccessToken.current.tokenString, which is "
                + "of no use in Limited Login; or accept access tokens (`AccessTokenInspection`)."
        )
        package static let encrypted = Self(
            check: .serialization,
            detail: "This is an encrypted token (JWE); Facebook's id tokens are signed only."
        )
        package static let encryptionHeader = Self(
            detail: "The header speaks of encryption (enc, zip, p2c or p2s); Facebook's id tokens are signed only."
        )
        /// A token within a token (`cty`).
        package static let nested = Self(
            detail: "This is a token within a token (cty); Facebook's id tokens are not nested."
        )
        package static let ownToken = Self(
            detail: "This is a token that this service issued, and none of Facebook's.",
            hint: "Send Facebook's token of the login; one of POST /token is for /auth, /introspect and your services."
        )
        /// An id token of the service's own issuer; it is not an access token.
        package static let ownIDToken = Self(
            detail: "This is an id token that this service issued: it has no client_id.",
            hint: "Send the access token: leave requested_token_type out at /token."
        )

        /// `typ` is not `JWT`.
        /// - Parameter name: its value if it is a short name.
        package static func type(_ name: String?) -> Self {
            let type = name.map { "is \($0), so this is another kind of token; an id token's is JWT." }
            return Self(
                detail: "The header's typ " + (type ?? "is not JWT, so this is another kind of token."),
                hint: "The header says that this is another kind of token (Facebook's say JWT), so have the app send "
                    + "AuthenticationToken.current.tokenString."
            )
        }
    }

    package static func notAnIDToken(_ kind: ForeignToken) -> Rejection {
        Rejection(.notAnIDToken, kind.check, kind.detail, hint: kind.hint)
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
            } else { "Facebook signs with RS256 alone, so find out who issued this token." }
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

    package struct AudienceFault: Sendable {
        var claim = ClaimName.audience
        let detail: String
        let hint: String

        package static func otherApp(_ app: String) -> Self {
            Self(
                detail:
                    "The audience \(Rejection.quoted(app)) is not one of the configured apps, or not the app given.",
                hint:
                    "Look whether `appIDs` is right, and FacebookAppID in the app's Info.plist, and app_id if "
                    + "you give one."
            )
        }

        package static let severalAudiences = Self(
            detail: "The token names several audiences; one for this app alone is needed.",
            hint: "Facebook issues a token for one app, so find out who made one for several."
        )

        package static func otherAuthorizedParty(_ app: String) -> Self {
            Self(
                claim: .authorizedParty,
                detail: "The authorized party \(Rejection.quoted(app)) is not the token's audience.",
                hint: "The token was given to another app to use, so have your own app log in."
            )
        }
    }

    package static func invalidAudience(_ fault: AudienceFault) -> Rejection {
        Rejection(.invalidAudience, .audience, claim: fault.claim, fault.detail, hint: fault.hint)
    }

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
                "Set this machine's clock right (is NTP running?), or allow for it with `clockSkew`."
        )
    }

    package struct NonceFault: Sendable {
        let detail: String
        let hint: String

        package static let empty = Self(
            detail: "The token's nonce is empty: the login was started without one, so nothing ties it to this login.",
            hint: "Have the app begin the login with a nonce: LoginConfiguration(tracking:nonce:)."
        )
        package static let different = Self(
            detail: "The token's nonce is not the one given: it belongs to another login.",
            hint:
                "Give the nonce of the very login that this token came from; if the SDK refreshed the token silently or "
                + "because the app asked, its nonce is the SDK's own, so give subject alone."
        )
        private static let ofSample = Self(
            detail: "The token's nonce is 123, the one of Facebook's sample code; it is not the one given.",
            hint:
                "Have the app pass the nonce of your backend to LoginConfiguration(tracking:nonce:) in place of \"123\"."
        )
        private static let ofSDK = Self(
            detail: "The token's nonce is an upper-case UUID, which the SDK makes itself; it is not the one given.",
            hint:
                "Have the app pass the nonce of your backend to LoginConfiguration(tracking:nonce:); for a token that the "
                + "SDK refreshed silently or because the app asked, give subject alone."
        )
        /// The client hashes the nonce, so the caller must send it as the raw nonce.
        package static let hashed = Self(
            detail: "The token's nonce is the SHA-256 of the nonce given: the client hashes it.",
            hint: "Give the same value as raw_nonce, since the app hashes its nonce."
        )
        package static let notHashed = Self(
            detail: "The token's nonce is the raw nonce itself, not its SHA-256: the client does not hash it.",
            hint: "Give the same value as nonce, since the app does not hash its nonce."
        )

        /// - Parameter nonce: The token's nonce, which is not the one given.
        static func of(_ nonce: [UInt8]) -> Self {
            if nonce.isEmpty { return .empty }
            let isUUID =
                nonce.count == 36
                && nonce.indices.allSatisfy { index in
                    [8, 13, 18, 23].contains(index)
                        ? nonce[index] == UInt8(ascii: "-")
                        : (0x30...0x39).contains(nonce[index]) || (0x41...0x46).contains(nonce[index])
                }
            return nonce == Array("123".utf8) ? .ofSample : isUUID ? .ofSDK : .different
        }
    }

    package static func nonceMismatch(_ fault: NonceFault) -> Rejection {
        Rejection(.nonceMismatch, .binding, claim: .nonce, fault.detail, hint: fault.hint)
    }

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
