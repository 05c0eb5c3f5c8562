internal import LLBytes

extension Rejection {
    /// The caller names no login, but the policy requires one.
    package static let bindingRequired = Rejection(
        .invalidRequest,
        .expectation,
        "The request names no login, and without one the token proves nothing about this login.",
        hint: "Give nonce or raw_nonce, taken from your session, or subject for a refresh."
    )
    package static let invalidNonce = Rejection(
        .invalidNonce,
        .expectation,
        "The nonce given is empty or holds white space, so no login can have used it.",
        hint: "Give the nonce exactly as your backend made it: not empty and without white space."
    )
    package static let invalidSubject = Rejection(
        .invalidRequest,
        .expectation,
        "The subject given is empty.",
        hint: "Give the user's id as subject; it is the claim sub of an earlier token."
    )
    package static let invalidKeyThumbprint = Rejection(
        .invalidRequest,
        .expectation,
        "The key thumbprint given is not 43 digits of base64url (RFC 7638).",
        hint: "Give the key's RFC 7638 thumbprint as an earlier answer had it (key_thumbprint): 43 digits of base64url."
    )
    /// The caller expects a nonce that was issued here, and the verifier has no ``NonceIssuer``.
    package static let noNonceIssuer = Rejection(
        .invalidRequest,
        .expectation,
        "No nonces are issued here, so the token's cannot be one of them.",
        hint: "Set `nonces` to the secret that the nonce was issued with."
    )
    package static let keysUnavailable = Rejection(.keysUnavailable)
    package static let cryptographyFailed = Rejection(
        .internalError,
        .signature,
        "OpenSSL failed, so nothing is known about the token.",
        hint: "Try again; if it fails again, restart the program and look whether the machine has memory left."
    )

    /// - Parameter keyID: The token's key ID; the sentence quotes its first 64 visible ASCII characters.
    package static func unknownKey(_ keyID: some Collection<UInt8>) -> Rejection {
        let shown = keyID.prefix(64).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
        return unknownKey(keyID: String(decoding: shown, as: UTF8.self))
    }
    package static func unknownKey(keyID: String) -> Rejection {
        Rejection(
            .unknownKey,
            .key,
            "No published key has the key ID \"\(keyID)\": the token is forged, or its key was withdrawn.",
            hint:
                "Compare the key id with what limited-login keys lists: a token older than a month outlives its key, and a "
                + "token of another issuer needs that issuer's keys (`keys`)."
        )
    }

    package static func missingClaim(_ claim: ClaimName) -> Rejection {
        Rejection(
            .missingClaim,
            claim.check,
            claim: claim,
            "The claim \(claim.spelling) is missing.",
            hint: claim == .nonce
                ? "The login was begun without a nonce: pass one to LoginConfiguration, or give subject for a refresh."
                : soundClaim(claim)
        )
    }
    package static func malformedClaim(_ claim: ClaimName, _ fault: ClaimFault) -> Rejection {
        let detail = "The claim \(claim.spelling) \(fault.rawValue)."
        return Rejection(.malformedClaim, claim.check, claim: claim, detail, hint: soundClaim(claim))
    }
    private static func soundClaim(_ claim: ClaimName) -> String {
        "No token of Facebook's lacks a sound \(claim.spelling), so find out which issuer made this one; for a test "
            + "issuer, mend its claim \(claim.spelling)."
    }
    package static func invalidIssuer(_ issuer: String) -> Rejection {
        Rejection(
            .invalidIssuer,
            .issuer,
            claim: .issuer,
            "The issuer \(quoted(issuer)) is not one of the configured issuers.",
            hint:
                "Look whether `issuers` is right, letter for letter, and whether it is a token of Facebook's."
        )
    }
    package static func expired(at date: NumericDate, now: NumericDate) -> Rejection {
        let detail = "The token expired \(seconds(from: date, to: now)) ago, at \(date.wholeSeconds)."
        return Rejection(
            .expired,
            .times,
            claim: .expiration,
            detail,
            hint: "Have the app log in again for a new token."
        )
    }
    package static func tooOld(issuedAt date: NumericDate, maximumAge: Duration, now: NumericDate) -> Rejection {
        let limit = maximumAge.components.seconds
        return Rejection(
            .tooOld,
            .times,
            claim: .issuedAt,
            "The token was issued \(seconds(from: date, to: now)) ago; at most \(limit) s are allowed.",
            hint: "Have the app log in again, or raise `maximumTokenAge` above \(limit)."
        )
    }
}

/// The tie between the token and the login. Stores of used nonces, accepted tokens and revocations detect some of these; a
/// ``TokenVerifier`` does not.
extension Rejection {
    package static let nonceNotIssued = Rejection(
        .nonceNotIssued,
        .binding,
        claim: .nonce,
        "The token's nonce was not issued here for this app: it belongs to a login begun elsewhere, or the secret it was "
            + "issued with was taken away.",
        hint:
            "Have the app log in with a nonce of POST /nonces for this very app id and secret; if the SDK refreshed the "
            + "token of a session, give the session's user as subject, alone."
    )
    package static let subjectMismatch = Rejection(
        .subjectMismatch,
        .binding,
        claim: .subject,
        "The token belongs to another person than the subject given.",
        hint: Code.subjectMismatch.hint
    )

    /// A claim's value in quotation marks on one line, cut to a readable length.
    static func quoted(_ text: String) -> String {
        text.count > 80 ? String(text.prefix(80)).debugDescription + "…" : text.debugDescription
    }

    static func seconds(from start: NumericDate, to end: NumericDate) -> String {
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
