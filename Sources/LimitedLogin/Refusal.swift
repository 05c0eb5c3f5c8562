internal import LLBytes

/// The catalogue of refusals of a token, with one row for each refusal.
///
/// A row has the code that callers compare, the check that refused the token, the claim at fault, and one sentence each for
/// the fault and the remedy. The service's answers, its metrics and the command line are made from it. `Refusal+Variants`
/// has the rows with variants, and `ProblemCode` the service's own rows.
package final class Refusal: Error, Equatable, Sendable {
    /// The fault is the token's, the caller's, or an outage's.
    package enum Kind: Hashable, Sendable {
        /// The token's own fault: 401.
        case token(TokenRejection.Code)
        /// A mistake of the caller, with any token: 400.
        case invalidRequest, invalidNonce, unknownApp
        /// An outage, so nothing is known about the token: 503, and 500.
        case keysUnavailable, internalError
    }

    package let kind: Kind
    /// The check that refused the token; the checks before it passed. If only a store knows the fault, this is the
    /// check of the claim at fault, although every check passed.
    package let check: VerificationCheck
    /// The claim at fault, if there is one.
    package let claim: String?
    /// The fault, in one or two sentences. A claim's value is in it only if the signature was good.
    package let detail: String
    /// The remedy, in one sentence. It quotes nothing from the token or the request.
    package let hint: String

    init(_ kind: Kind, _ check: VerificationCheck, claim: ClaimName? = nil, _ detail: String, hint: String) {
        (self.kind, self.check, self.claim) = (kind, check, claim?.spelling)
        (self.detail, self.hint) = (detail, hint)
    }

    convenience init(
        _ code: TokenRejection.Code,
        _ check: VerificationCheck,
        claim: ClaimName? = nil,
        _ detail: String,
        hint: String
    ) {
        self.init(.token(code), check, claim: claim, detail, hint: hint)
    }

    /// The code of a refused token; nil if the fault is not the token's.
    package var code: TokenRejection.Code? { if case .token(let code) = kind { code } else { nil } }

    package static func == (left: Refusal, right: Refusal) -> Bool {
        left.kind == right.kind && left.check == right.check && left.claim == right.claim
            && left.detail == right.detail && left.hint == right.hint
    }
}

extension TokenRejection {
    /// The stable codes for callers. Later versions may know more of them.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code in answers and logs.
        public let rawValue: String
        /// True if the code is about the tie to a login. A caller that names no login never gets it.
        package let isOfLogin: Bool
        /// True if an access token may be refused with it too.
        package let isOfAccessTokens: Bool
        /// True if the code is about the nonce, which other credentials may have too.
        package let isOfNonces: Bool

        private init(
            _ rawValue: String,
            isOfLogin: Bool = false,
            isOfAccessTokens: Bool = false,
            isOfNonces: Bool = false
        ) {
            (self.rawValue, self.isOfLogin) = (rawValue, isOfLogin || isOfNonces)
            (self.isOfAccessTokens, self.isOfNonces) = (isOfAccessTokens, isOfNonces)
        }

        /// The same as `rawValue`.
        public var description: String { rawValue }

        /// The token is longer than the limit.
        public static let tokenTooLong = Self("token_too_long")
        /// The token is no JWS of JSON.
        public static let malformedToken = Self("malformed_token")
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
        public static let invalidAudience = Self("invalid_audience", isOfAccessTokens: true)
        /// The token has expired.
        public static let expired = Self("expired")
        /// The token is not valid yet.
        public static let notYetValid = Self("not_yet_valid")
        /// The token was issued too long ago.
        public static let tooOld = Self("too_old", isOfAccessTokens: true)
        /// The token belongs to another login.
        public static let nonceMismatch = Self("nonce_mismatch", isOfNonces: true)
        /// The token's nonce was not issued here for this app.
        public static let nonceNotIssued = Self("nonce_not_issued", isOfNonces: true)
        /// The token's nonce was issued too long ago.
        public static let nonceExpired = Self("nonce_expired", isOfNonces: true)
        /// The token's nonce was used before.
        public static let nonceUsed = Self("nonce_used", isOfNonces: true)
        /// The token was accepted before.
        public static let tokenReplayed = Self("token_replayed", isOfLogin: true, isOfAccessTokens: true)
        /// The login was revoked after the token was issued.
        public static let loginRevoked = Self("login_revoked", isOfAccessTokens: true)
        /// The token belongs to another person.
        public static let subjectMismatch = Self("subject_mismatch", isOfLogin: true, isOfAccessTokens: true)
        /// The token is bound to another key, or to none.
        public static let keyThumbprintMismatch = Self("key_thumbprint_mismatch", isOfLogin: true)
        /// The access token was not issued together with the token.
        public static let accessTokenHashMismatch = Self("at_hash_mismatch", isOfLogin: true)
        /// The login was not a Limited Login.
        public static let trackingNotAllowed = Self("tracking_not_allowed")

        package static let allCases: [Self] = [
            .tokenTooLong, .malformedToken, .notAnIDToken, .unsupportedAlgorithm, .unsupportedCriticalHeader,
            .missingKeyID, .unknownKey, .invalidSignature, .missingClaim, .malformedClaim, .invalidIssuer,
            .invalidAudience, .expired, .notYetValid, .tooOld, .nonceMismatch, .nonceNotIssued, .nonceExpired,
            .nonceUsed, .tokenReplayed, .loginRevoked, .subjectMismatch, .keyThumbprintMismatch,
            .accessTokenHashMismatch, .trackingNotAllowed,
        ]
    }
}

/// Mistakes of the caller, and outages.
extension Refusal {
    /// The caller names no login, but the policy requires one.
    package static let bindingRequired = Refusal(
        .invalidRequest,
        .expectation,
        "The request names no login, and without one the token proves nothing about this login.",
        hint: "Give nonce or raw_nonce, taken from your session, or subject for a refresh."
    )
    package static let invalidNonce = Refusal(
        .invalidNonce,
        .expectation,
        "The nonce given is empty or holds white space, so no login can have used it.",
        hint: "Give the nonce exactly as your backend made it: not empty and without white space."
    )
    package static let invalidSubject = Refusal(
        .invalidRequest,
        .expectation,
        "The subject given is empty.",
        hint: "Give the user's id as subject; it is the claim sub of an earlier token."
    )
    package static let invalidKeyThumbprint = Refusal(
        .invalidRequest,
        .expectation,
        "The key thumbprint given is not 43 digits of base64url (RFC 7638).",
        hint: "Give the key's RFC 7638 thumbprint as an earlier answer had it (key_thumbprint): 43 digits of base64url."
    )
    /// The caller expects a nonce that was issued here, and the verifier has no ``NonceIssuer``.
    package static let noNonceIssuer = Refusal(
        .invalidRequest,
        .expectation,
        "No nonces are issued here, so the token's cannot be one of them.",
        hint: "Set nonce_secret_file (LIMITED_LOGIN_NONCE_SECRET_FILE) to the secret that the nonce was issued with."
    )
    package static let unknownApp = Refusal(
        .unknownApp,
        .expectation,
        "The app ID given is not one of the configured apps.",
        hint: "Give an app id that LIMITED_LOGIN_APP_IDS names, or none."
    )
    /// There are no keys at all: an outage of their source.
    package static let keysUnavailable = Refusal(
        .keysUnavailable,
        .key,
        VerificationUnavailable.keys.description,
        hint: "Try again when the issuer's keys can be fetched; limited-login keys shows why they cannot."
    )
    package static let cryptographyFailed = Refusal(
        .internalError,
        .signature,
        VerificationUnavailable.cryptography.description,
        hint: "Try again; if it fails again, restart the program and look whether the machine has memory left."
    )
}

/// The token's bytes, header and signature.
extension Refusal {
    package static let tokenTooLong = Refusal(
        .tokenTooLong,
        .size,
        "The token is longer than \(DecimalNumber.grouped(VerificationLimits.tokenByteCount)) bytes, so it is not read.",
        hint:
            "Look for what was pasted along with the token, or have the app ask for no user_friends, which puts the id of "
            + "each friend into it."
    )
    package static let unsupportedCriticalHeader = Refusal(
        .unsupportedCriticalHeader,
        .criticalHeader,
        "The header demands an extension with crit or b64; an id token from Facebook has neither.",
        hint: "Facebook's tokens demand no extension, so find out who made this one, and take the token from "
            + "AuthenticationToken.current.tokenString instead."
    )
    package static let missingKeyID = Refusal(
        .missingKeyID,
        .keyID,
        "The header does not name its key: kid is missing, empty or not a string.",
        hint: "Facebook's tokens always name their key with kid, so find out who made this one."
    )
    /// - Parameter keyID: The token's key ID; the sentence quotes its first 64 visible ASCII characters.
    package static func unknownKey(_ keyID: some Collection<UInt8>) -> Refusal {
        let shown = keyID.prefix(64).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
        return unknownKey(keyID: String(decoding: shown, as: UTF8.self))
    }
    package static func unknownKey(keyID: String) -> Refusal {
        Refusal(
            .unknownKey,
            .key,
            "No published key has the key ID \"\(keyID)\": the token is forged, or its key was withdrawn.",
            hint:
                "Compare the key id with what limited-login keys lists: a token older than a month outlives its key, and a "
                + "token of another issuer needs that issuer's keys (LIMITED_LOGIN_JWKS_URLS)."
        )
    }
}

/// The claims.
extension Refusal {
    package static func missingClaim(_ claim: ClaimName) -> Refusal {
        Refusal(
            .missingClaim,
            claim.check,
            claim: claim,
            "The claim \(claim.spelling) is missing.",
            hint: claim == .nonce
                ? "The login was begun without a nonce: pass one to LoginConfiguration, or give subject for a refresh."
                : soundClaim(claim)
        )
    }
    package static func malformedClaim(_ claim: ClaimName, _ fault: ClaimFault) -> Refusal {
        let detail = "The claim \(claim.spelling) \(fault.rawValue)."
        return Refusal(.malformedClaim, claim.check, claim: claim, detail, hint: soundClaim(claim))
    }
    private static func soundClaim(_ claim: ClaimName) -> String {
        "No token of Facebook's lacks a sound \(claim.spelling), so find out which issuer made this one; for a test "
            + "issuer, mend its claim \(claim.spelling)."
    }
    package static func invalidIssuer(_ issuer: String) -> Refusal {
        Refusal(
            .invalidIssuer,
            .issuer,
            claim: .issuer,
            "The issuer \(quoted(issuer)) is not one of the configured issuers.",
            hint:
                "Look whether LIMITED_LOGIN_ISSUERS is right, letter for letter, and whether it is a token of Facebook's."
        )
    }
    package static func expired(at date: NumericDate, now: NumericDate) -> Refusal {
        let detail = "The token expired \(seconds(from: date, to: now)) ago, at \(date.wholeSeconds)."
        return Refusal(.expired, .times, claim: .expiration, detail, hint: "Have the app log in again for a new token.")
    }
    package static func tooOld(issuedAt date: NumericDate, maximumAgeSeconds: Int, now: NumericDate) -> Refusal {
        Refusal(
            .tooOld,
            .times,
            claim: .issuedAt,
            "The token was issued \(seconds(from: date, to: now)) ago; at most \(maximumAgeSeconds) s are allowed.",
            hint: "Have the app log in again, or raise LIMITED_LOGIN_MAX_TOKEN_AGE_SECONDS above \(maximumAgeSeconds)."
        )
    }
}

/// The tie between the token and the login. Stores of used nonces, accepted tokens and revocations detect some of these; a
/// ``TokenVerifier`` does not.
extension Refusal {
    package static let nonceNotIssued = Refusal(
        .nonceNotIssued,
        .binding,
        claim: .nonce,
        "The token's nonce was not issued here for this app: it belongs to a login begun elsewhere, or the secret it was "
            + "issued with was taken away.",
        hint:
            "Have the app log in with a nonce of POST /nonces for this very app id and secret; if the SDK refreshed the "
            + "token of a session, give the session's user as subject, alone."
    )
    package static let nonceUsed = Refusal(
        .nonceUsed,
        .binding,
        claim: .nonce,
        "The token's nonce was used before: every login needs a nonce of its own. If the SDK refreshed the token of a "
            + "session, give the session's user as subject beside the nonce.",
        hint:
            "For a token that the SDK refreshed give subject beside the nonce; for a login begin anew with a new nonce of "
            + "POST /nonces."
    )
    package static let loginRevoked = Refusal(
        .loginRevoked,
        .times,
        claim: .issuedAt,
        "The login was revoked after this token was issued, or in the same second.",
        hint: "The person or your backend ended this login: end its session, and have the person log in anew."
    )
    package static let subjectMismatch = Refusal(
        .subjectMismatch,
        .binding,
        claim: .subject,
        "The token belongs to another person than the subject given.",
        hint: "End the session of that subject and begin one with a new login."
    )
    package static let keyThumbprintMismatch = Refusal(
        .keyThumbprintMismatch,
        .device,
        claim: .confirmation,
        "The token is not bound to the key given: it comes from another device, or from an app without such a key.",
        hint:
            "Compare key_thumbprint with cnf.jkt of the login's own token: another key is another device's, and an app whose "
            + "SDK is older than 18.1 has none."
    )
    package static let accessTokenHashMismatch = Refusal(
        .accessTokenHashMismatch,
        .accessToken,
        claim: .accessTokenHash,
        "The access token given was not issued together with this id token: at_hash is missing or another's.",
        hint:
            "Give the access token of the very login that this token came from: a Limited Login has none, and a refreshed "
            + "token none of its own."
    )
    package static let trackingNotAllowed = Refusal(
        .trackingNotAllowed,
        .tracking,
        claim: .accessTokenHash,
        "The token came with an access token, so this was not a Limited Login; only that is allowed here.",
        hint: "Have the app log in with LoginConfiguration(tracking: .limited), or set LIMITED_LOGIN_TRACKING to any."
    )
}

extension Refusal {
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
