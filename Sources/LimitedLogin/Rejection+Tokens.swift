internal import LLBytes
internal import LLJOSE

/// The form of an id token: its parts, its kind, its algorithm and its signature.
extension Rejection {
    package enum Part: String, Sendable { case header, payload, signature }

    private static let isChanged =
        "The token was changed or cut on its way, so pass it on as a string, unchanged, from "
        + "AuthenticationToken.current.tokenString to here."
    private static let isPlain =
        "Facebook neither encrypts nor nests id tokens, so have the app send AuthenticationToken.current.tokenString "
        + "instead of this one."

    package static let emptyToken = Rejection(.malformedToken, "The token is empty.").at(.size)
        .hint("Pass what the app reads from AuthenticationToken.current.tokenString; nothing was given.")

    package static func wrongPartCount(_ count: Int) -> Rejection {
        Rejection(.malformedToken, "A token has three parts separated by full stops; this has \(count).")
            .hint(
                count < 3
                    ? "The text ends too early, so copy the token anew, whole, up to the end of its third part."
                    : "Look for two tokens pasted one behind the other, or a full stop at the end."
            )
    }

    /// The JSON serialization (RFC 7515 section 7.2).
    package static let jsonSerialization =
        Rejection(.malformedToken, "The token is in the JSON serialization; only the compact one is accepted.")
        .hint("Pass the token itself, which begins with eyJ or EAA, not the JSON around it.")

    package static func emptyPart(_ part: Part) -> Rejection {
        if part == .signature {
            return Rejection(.malformedToken, "The signature is empty: the token is not signed.")
                .hint("The signature was cut off, so copy the token anew, up to its last character.")
        }
        return Rejection(.malformedToken, "The \(part.rawValue) is empty.")
            .hint("A part between the full stops was cut out, so copy the token anew, whole.")
            .at(part == .payload ? .payload : .serialization)
    }

    package static func invalidBase64URL(_ part: Part) -> Rejection {
        Rejection(.malformedToken, "The \(part.rawValue) is not base64url as RFC 7515 spells it.")
            .hint(
                part == .signature
                    ? "The end of the token is damaged or cut off, so copy the token anew, up to its last character."
                    : isChanged
            )
    }

    package static func unreadable(_ part: Part, reason: String?) -> Rejection {
        let wanted = reason.map { "strict JSON: \($0)" } ?? "a JSON object"
        return Rejection(.malformedToken, "The \(part.rawValue) is not \(wanted).", hint: isChanged)
            .at(part == .header ? .header : .payload)
    }

    package static let accessTokenAsIDToken = Rejection(.notAnIDToken).at(.serialization)
        .detail(
            "This is an access token, not an id token; one of Android, the web or classic login goes into access_token."
        )
        .hint(
            "Have the app send AuthenticationToken.current.tokenString, not AccessToken.current.tokenString, which is "
                + "of no use in Limited Login; or accept access tokens (`AccessTokenInspection`)."
        )
    package static let encryptedToken = Rejection(.notAnIDToken, hint: isPlain).at(.serialization)
        .detail("This is an encrypted token (JWE); Facebook's id tokens are signed only.")
    package static let encryptionHeader = Rejection(.notAnIDToken, hint: isPlain)
        .detail("The header speaks of encryption (enc, zip, p2c or p2s); Facebook's id tokens are signed only.")
    package static let nestedToken = Rejection(.notAnIDToken, hint: isPlain)
        .detail("This is a token within a token (cty); Facebook's id tokens are not nested.")
    package static let ownToken = Rejection(.notAnIDToken)
        .detail("This is a token that this service issued, and none of Facebook's.")
        .hint("Send Facebook's token of the login; one of POST /token is for /auth, /introspect and your services.")
    package static let ownIDToken = Rejection(.notAnIDToken)
        .detail("This is an id token that this service issued: it has no client_id.")
        .hint("Send the access token: leave requested_token_type out at /token.")

    /// - Parameter name: The value of `typ` if it is a short name.
    package static func wrongType(_ name: String?) -> Rejection {
        let type = name.map { "is \($0), so this is another kind of token; an id token's is JWT." }
        return Rejection(.notAnIDToken)
            .detail("The header's typ " + (type ?? "is not JWT, so this is another kind of token."))
            .hint(
                "The header says that this is another kind of token (Facebook's say JWT), so have the app send "
                    + "AuthenticationToken.current.tokenString."
            )
    }

    /// - Parameter name: The value of `alg` if it is a short name.
    package static func unsupportedAlgorithm(_ name: String?) -> Rejection {
        guard let name else {
            return otherAlgorithm.detail("The header's alg is missing or no algorithm's name; only RS256 is accepted.")
        }
        if name.hasPrefix("HS") {
            return Rejection(.unsupportedAlgorithm)
                .detail("The token is signed with a shared secret (\(name)); Facebook signs id tokens with RS256.")
                .hint(
                    "Find out who signed this with a shared secret, which Facebook never does: a test, or your own session token."
                )
        }
        let other = otherAlgorithm.detail("The algorithm \(name) is not accepted; Facebook signs id tokens with RS256.")
        return name == "none"
            ? other.hint("Never accept a token without a signature, and find out where it came from.") : other
    }
    private static let otherAlgorithm = Rejection(.unsupportedAlgorithm)
        .hint("Facebook signs with RS256 alone, so find out who issued this token.")

    package static let algorithmOfAnotherKey = Rejection(.unsupportedAlgorithm)
        .detail("The header's alg is not the algorithm of the key that it names.")
        .hint("This service names the algorithm of its key, so find out who made this token.")

    /// - Parameter keyID: The token's key ID; the sentence quotes its first 64 visible ASCII characters.
    package static func unknownKey(_ keyID: some Collection<UInt8>) -> Rejection {
        let shown = keyID.prefix(64).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
        let text = String(decoding: shown, as: UTF8.self)
        return Rejection(
            .unknownKey,
            "No published key has the key ID \"\(text)\": the token is forged, or its key was withdrawn."
        )
    }

    package static let signatureOfWrongLength = Rejection(.invalidSignature)
        .detail("The signature does not have the length of the named key.")
    package static let keysUnavailable = Rejection(.keysUnavailable)
    package static let cryptographyFailed = Rejection(.internalError).at(.signature)
        .detail("OpenSSL failed, so nothing is known about the token.")
        .hint("Try again; if it fails again, restart the program and look whether the machine has memory left.")
}

/// The expectation of the caller.
extension Rejection {
    package static let bindingRequired = Rejection(.invalidRequest).at(.expectation)
        .detail("The request names no login, and without one the token proves nothing about this login.")
        .hint("Give nonce or raw_nonce, taken from your session, or subject for a refresh.")
    package static let invalidNonce = Rejection(.invalidNonce).at(.expectation)
        .detail("The nonce given is empty or holds white space, so no login can have used it.")
        .hint("Give the nonce exactly as your backend made it: not empty and without white space.")
    package static let invalidSubject = Rejection(.invalidRequest, "The subject given is empty.").at(.expectation)
        .hint("Give the user's id as subject; it is the claim sub of an earlier token.")
    package static let invalidKeyThumbprint = Rejection(.invalidRequest).at(.expectation)
        .detail("The key thumbprint given is not 43 digits of base64url (RFC 7638).")
        .hint(
            "Give the key's RFC 7638 thumbprint as an earlier answer had it (key_thumbprint): 43 digits of base64url."
        )
    package static let noNonceIssuer = Rejection(.invalidRequest).at(.expectation)
        .detail("No nonces are issued here, so the token's cannot be one of them.")
        .hint("Set `nonces` to the secret that the nonce was issued with.")
}

/// The claims of an id token. Stores of used nonces, accepted tokens and revocations detect some of these; a
/// ``TokenVerifier`` does not.
extension Rejection {
    package enum ClaimFault: String, Sendable {
        case wrongType = "has the wrong JSON type"
        case empty = "is empty"
        /// It is a number outside 0 to 2⁵³.
        case outOfRange = "is out of range: a time is a number of seconds from 0 to 2^53"
        /// It is longer than its definition allows, or not ASCII.
        case outOfShape = "is too long or not ASCII"
    }

    package static func missingClaim(_ claim: ClaimName) -> Rejection {
        let hint = "The login was begun without a nonce: pass one to LoginConfiguration, or give subject for a refresh."
        return Rejection(.missingClaim, "The claim \(claim.spelling) is missing.").at(claim.check, claim)
            .hint(claim == .nonce ? hint : soundClaim(claim))
    }
    package static func malformedClaim(_ claim: ClaimName, _ fault: ClaimFault) -> Rejection {
        Rejection(.malformedClaim, "The claim \(claim.spelling) \(fault.rawValue).", hint: soundClaim(claim))
            .at(claim.check, claim)
    }
    private static func soundClaim(_ claim: ClaimName) -> String {
        "No token of Facebook's lacks a sound \(claim.spelling), so find out which issuer made this one; for a test "
            + "issuer, mend its claim \(claim.spelling)."
    }

    package static func invalidIssuer(_ issuer: String) -> Rejection {
        Rejection(.invalidIssuer, "The issuer \(quoted(issuer)) is not one of the configured issuers.")
    }

    package static func otherAudience(_ app: String) -> Rejection {
        Rejection(.invalidAudience)
            .detail("The audience \(quoted(app)) is not one of the configured apps, or not the app given.")
            .hint(
                "Look whether `appIDs` is right, and FacebookAppID in the app's Info.plist, and app_id if you give one."
            )
    }
    package static let severalAudiences = Rejection(.invalidAudience)
        .detail("The token names several audiences; one for this app alone is needed.")
        .hint("Facebook issues a token for one app, so find out who made one for several.")
    package static func otherAuthorizedParty(_ app: String) -> Rejection {
        Rejection(.invalidAudience).at(.audience, .authorizedParty)
            .detail("The authorized party \(quoted(app)) is not the token's audience.")
            .hint("The token was given to another app to use, so have your own app log in.")
    }

    package static func expired(at date: NumericDate, now: NumericDate) -> Rejection {
        Rejection(.expired, "The token expired \(seconds(from: date, to: now)) ago, at \(date.wholeSeconds).")
            .hint("Have the app log in again for a new token.")
    }
    package static func notYetValid(_ claim: ClaimName, at date: NumericDate, now: NumericDate) -> Rejection {
        let rejection = Rejection(.notYetValid).at(.times, claim)
        if let unit = date.mistakenUnit {
            return rejection.detail("The claim \(claim.spelling) counts \(unit); it must be seconds since 1970.")
                .hint(
                    "Facebook's tokens count seconds, so find out which issuer made this one, and have it write seconds."
                )
        }
        let lead = seconds(from: now, to: date)
        return rejection.detail("The claim \(claim.spelling) lies \(lead) in the future: a clock is wrong.")
            .hint("Set this machine's clock right (is NTP running?), or allow for it with `clockSkew`.")
    }
    package static func tooOld(issuedAt date: NumericDate, maximumAge: Duration, now: NumericDate) -> Rejection {
        let (age, limit) = (seconds(from: date, to: now), maximumAge.components.seconds)
        return Rejection(.tooOld, "The token was issued \(age) ago; at most \(limit) s are allowed.")
            .hint("Have the app log in again, or raise `maximumTokenAge` above \(limit).")
    }

    package static let emptyNonce = Rejection(.nonceMismatch)
        .detail("The token's nonce is empty: the login was started without one, so nothing ties it to this login.")
        .hint("Have the app begin the login with a nonce: LoginConfiguration(tracking:nonce:).")
    package static let differentNonce = Rejection(.nonceMismatch)
        .detail("The token's nonce is not the one given: it belongs to another login.")
        .hint(
            "Give the nonce of the very login that this token came from; if the SDK refreshed the token silently or "
                + "because the app asked, its nonce is the SDK's own, so give subject alone."
        )
    private static let nonceOfSample = Rejection(.nonceMismatch)
        .detail("The token's nonce is 123, the one of Facebook's sample code; it is not the one given.")
        .hint("Have the app pass the nonce of your backend to LoginConfiguration(tracking:nonce:) in place of \"123\".")
    private static let nonceOfSDK = Rejection(.nonceMismatch)
        .detail("The token's nonce is an upper-case UUID, which the SDK makes itself; it is not the one given.")
        .hint(
            "Have the app pass the nonce of your backend to LoginConfiguration(tracking:nonce:); for a token that the "
                + "SDK refreshed silently or because the app asked, give subject alone."
        )
    package static let hashedNonce = Rejection(.nonceMismatch)
        .detail("The token's nonce is the SHA-256 of the nonce given: the client hashes it.")
        .hint("Give the same value as raw_nonce, since the app hashes its nonce.")
    package static let nonceNotHashed = Rejection(.nonceMismatch)
        .detail("The token's nonce is the raw nonce itself, not its SHA-256: the client does not hash it.")
        .hint("Give the same value as nonce, since the app does not hash its nonce.")

    static func otherNonce(_ nonce: [UInt8]) -> Rejection {
        if nonce.isEmpty { return emptyNonce }
        let groups = nonce.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        let isUUID =
            groups.map(\.count) == [8, 4, 4, 4, 12] && groups.joined().allSatisfy("0123456789ABCDEF".utf8.contains)
        return nonce == Array("123".utf8) ? nonceOfSample : isUUID ? nonceOfSDK : differentNonce
    }

    package static let nonceNotIssued = Rejection(.nonceNotIssued)
        .detail(
            "The token's nonce was not issued here for this app: it belongs to a login begun elsewhere, or the secret it "
                + "was issued with was taken away."
        )
        .hint(
            "Have the app log in with a nonce of POST /nonces for this very app id and secret; if the SDK refreshed the "
                + "token of a session, give the session's user as subject, alone."
        )
    package static func nonceExpired(at date: NumericDate, now: NumericDate) -> Rejection {
        Rejection(.nonceExpired, "The token's nonce expired \(seconds(from: date, to: now)) ago.")
            .hint(
                "For a token that the SDK refreshed give subject beside the nonce; for a login ask for a new nonce when the "
                    + "person taps the button, not before."
            )
    }
    package static let nonceOlderThanStore = Rejection(.nonceExpired)
        .detail(
            "The token's nonce was issued before the present memory of used nonces began (the service or its store was "
                + "restarted), so it may have been used."
        )
        .hint("Begin the login anew with a new nonce of POST /nonces.")
    package static let tokenOlderThanStore = Rejection(.tokenReplayed)
        .detail(
            "The token was issued before the present memory of accepted tokens began (the service or its store was "
                + "restarted), so it may have been accepted before."
        )

    package static let subjectMismatch = Rejection(.subjectMismatch)

    /// A claim's value in quotation marks on one line, cut to a readable length.
    private static func quoted(_ text: String) -> String {
        text.count > 80 ? String(text.prefix(80)).debugDescription + "…" : text.debugDescription
    }

    private static func seconds(from start: NumericDate, to end: NumericDate) -> String {
        // Both are from 0 to 2⁵³, so the difference fits.
        "\(max(0, end.wholeSeconds - start.wholeSeconds)) s"
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
