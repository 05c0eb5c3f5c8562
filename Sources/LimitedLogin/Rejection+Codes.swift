internal import LLBytes

private typealias Row = Rejection.Code

extension Rejection {
    /// The stable codes for callers. Later versions may know more of them.
    ///
    /// A code is one row of the catalogue: the status and the title of the service's answer, the party at fault, and the
    /// sentences of a refusal that has no more precise ones.
    public final class Code: Hashable, Sendable, CustomStringConvertible {
        /// The code in answers and logs.
        public let rawValue: String
        package let status: Int
        package let kind: Kind
        /// The kind of problem in words, the same for every occurrence (RFC 9457 section 3.1.3).
        package let title: String
        package let detail: String
        package let hint: String
        /// Nil if the same request would fail again.
        package let retryAfterSeconds: Int?
        let check: VerificationCheck?
        let claim: ClaimName?
        private let uses: Uses

        package enum Kind: Sendable {
            case token
            /// Another thing that the app's client sent: a proof, a signed request, or no token at all.
            case client
            case caller
            /// This service or another one, so nothing is known about the token.
            case outage
        }

        /// The credentials and requests that a code of a refused token is for.
        fileprivate struct Uses: OptionSet, Sendable {
            let rawValue: UInt8

            static let login = Uses(rawValue: 1)
            static let accessTokens = Uses(rawValue: 2)
            static let nonces: Uses = [.login, .accessTokens, Uses(rawValue: 4)]
        }

        package static let refuseTheLogin = "Refuse the login, and have the app log in again."

        /// True if the code is about the tie to a login. A caller that names no login never gets it.
        package var isOfLogin: Bool { uses.contains(.login) }
        package var isOfAccessTokens: Bool { uses.contains(.accessTokens) }

        package init(
            _ rawValue: String,
            _ status: Int,
            _ kind: Kind,
            _ title: String,
            check: VerificationCheck? = nil,
            retryAfter seconds: Int? = nil
        ) {
            (self.rawValue, self.status, self.kind, self.title) = (rawValue, status, kind, title)
            (self.check, claim, uses, retryAfterSeconds) = (check, nil, [], seconds)
            (detail, hint) = ("", Code.refuseTheLogin)
        }

        /// A code of refused id tokens.
        fileprivate init(_ name: String, _ uses: Uses, _ check: VerificationCheck? = nil, _ claim: ClaimName? = nil) {
            (rawValue, status, kind, retryAfterSeconds) = (name, 401, .token, nil)
            let token = uses.contains(.accessTokens) ? "The token is refused" : "The id token is refused"
            title = uses.contains(.nonces) ? "The login is refused for its nonce" : token
            (self.check, self.claim, self.uses) = (check, claim, uses)
            (detail, hint) = ("", Code.refuseTheLogin)
        }

        private init(_ row: Code, detail: String, hint: String) {
            (rawValue, status, kind, title) = (row.rawValue, row.status, row.kind, row.title)
            (check, claim, retryAfterSeconds, uses) = (row.check, row.claim, row.retryAfterSeconds, row.uses)
            (self.detail, self.hint) = (detail, hint)
        }

        package func detail(_ sentence: String) -> Code { Code(self, detail: sentence, hint: hint) }
        package func hint(_ sentence: String) -> Code { Code(self, detail: detail, hint: sentence) }

        /// The same as `rawValue`.
        public var description: String { rawValue }

        /// True if both have the same raw value.
        public static func == (left: Code, right: Code) -> Bool { left.rawValue == right.rawValue }

        /// Hashes the raw value.
        public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }
    }
}

/// The codes of refused id tokens; some are of access tokens too.
extension Rejection.Code {
    /// The token is longer than the limit.
    public static let tokenTooLong = Row("token_too_long", [], .size)
        .detail(
            "The token is longer than \(DecimalNumber.grouped(VerificationLimits.tokenByteCount)) bytes, so it is not read."
        )
        .hint(
            "Look for what was pasted along with the token, or have the app ask for no user_friends, which puts the id of "
                + "each friend into it."
        )
    /// The token is no JWS of JSON.
    public static let malformedToken = Rejection.Code("malformed_token", [], .serialization)
    /// The token is of another kind.
    public static let notAnIDToken = Rejection.Code("not_an_id_token", [], .type)
    /// The value of `alg` is not RS256.
    public static let unsupportedAlgorithm = Rejection.Code("unsupported_algorithm", [], .algorithm)
    /// The header has `crit` or `b64`.
    public static let unsupportedCriticalHeader = Row("unsupported_critical_header", [], .criticalHeader)
        .detail("The header demands an extension with crit or b64; an id token from Facebook has neither.")
        .hint(
            "Facebook's tokens demand no extension, so find out who made this one, and take the token from "
                + "AuthenticationToken.current.tokenString instead."
        )
    /// The header has no `kid`.
    public static let missingKeyID = Row("missing_key_id", [], .keyID)
        .detail("The header does not name its key: kid is missing, empty or not a string.")
        .hint("Facebook's tokens always name their key with kid, so find out who made this one.")
    /// No published key has that ID.
    public static let unknownKey = Row("unknown_key", [], .key)
        .hint(
            "Compare the key id with what limited-login keys lists: a token older than a month outlives its key, and a "
                + "token of another issuer needs that issuer's keys (`keys`)."
        )
    /// The signature is wrong.
    public static let invalidSignature = Row("invalid_signature", [], .signature)
        .detail("The signature is not the one of the key it names: the token was altered or forged.")
        .hint(
            "Compare the token with the one in the app: if both are the same, it is forged, or these keys are another "
                + "issuer's; else a character was changed or left out."
        )
    /// A claim is missing.
    public static let missingClaim = Rejection.Code("missing_claim", [])
    /// A claim has the wrong type or range.
    public static let malformedClaim = Rejection.Code("malformed_claim", [])
    /// The issuer is not trusted.
    public static let invalidIssuer = Row("invalid_issuer", [], .issuer, .issuer)
        .hint("Look whether `issuers` is right, letter for letter, and whether it is a token of Facebook's.")
    /// The token is for another app.
    public static let invalidAudience = Rejection.Code("invalid_audience", .accessTokens, .audience, .audience)
    /// The token has expired.
    public static let expired = Rejection.Code("expired", [], .times, .expiration)
    /// The token is not valid yet.
    public static let notYetValid = Rejection.Code("not_yet_valid", [], .times)
    /// The token was issued too long ago.
    public static let tooOld = Rejection.Code("too_old", .accessTokens, .times, .issuedAt)
    /// The token belongs to another login.
    public static let nonceMismatch = Rejection.Code("nonce_mismatch", .nonces, .binding, .nonce)
    /// The token's nonce was not issued here for this app.
    public static let nonceNotIssued = Rejection.Code("nonce_not_issued", .nonces, .binding, .nonce)
    /// The token's nonce was issued too long ago.
    public static let nonceExpired = Rejection.Code("nonce_expired", .nonces, .binding, .nonce)
    /// The token's nonce was used before.
    public static let nonceUsed = Row("nonce_used", .nonces, .binding, .nonce)
        .detail(
            "The token's nonce was used before: every login needs a nonce of its own. If the SDK refreshed the token of a "
                + "session, give the session's user as subject beside the nonce."
        )
        .hint(
            "For a token that the SDK refreshed give subject beside the nonce; for a login begin anew with a new nonce of "
                + "POST /nonces."
        )
    /// The token was accepted before.
    public static let tokenReplayed = Row("token_replayed", [.login, .accessTokens], .identity, .tokenID)
        .detail("The token was accepted before, and each is accepted once.")
        .hint("Have the app log in again for a token of its own.")
    /// The login was revoked after the token was issued.
    public static let loginRevoked = Row("login_revoked", .accessTokens, .times, .issuedAt)
        .detail("The login was revoked after this token was issued, or in the same second.")
        .hint("The person or your backend ended this login: end its session, and have the person log in anew.")
    /// The token belongs to another person.
    public static let subjectMismatch = Row("subject_mismatch", [.login, .accessTokens], .binding, .subject)
        .detail("The token belongs to another person than the subject given.")
        .hint("End the session of that subject and begin one with a new login.")
    /// The token is bound to another key, or to none.
    public static let keyThumbprintMismatch = Row("key_thumbprint_mismatch", .login, .device, .confirmation)
        .detail(
            "The token is not bound to the key given: it comes from another device, or from an app without such a key."
        )
        .hint(
            "Compare key_thumbprint with cnf.jkt of the login's own token: another key is another device's, and an app whose "
                + "SDK is older than 18.1 has none."
        )
    /// The access token was not issued together with the token.
    public static let accessTokenHashMismatch = Row("at_hash_mismatch", .login, .accessToken, .accessTokenHash)
        .detail("The access token given was not issued together with this id token: at_hash is missing or another's.")
        .hint(
            "Give the access token of the very login that this token came from: a Limited Login has none, and a refreshed "
                + "token none of its own."
        )
    /// The login was not a Limited Login.
    public static let trackingNotAllowed = Row("tracking_not_allowed", [], .tracking, .accessTokenHash)
        .detail("The token came with an access token, so this was not a Limited Login; only that is allowed here.")
        .hint("Have the app log in with LoginConfiguration(tracking: .limited), or set `tracking` to any.")

    package static let ofTokens: [Rejection.Code] = [
        .tokenTooLong, .malformedToken, .notAnIDToken, .unsupportedAlgorithm, .unsupportedCriticalHeader,
        .missingKeyID, .unknownKey, .invalidSignature, .missingClaim, .malformedClaim, .invalidIssuer,
        .invalidAudience, .expired, .notYetValid, .tooOld, .nonceMismatch, .nonceNotIssued, .nonceExpired,
        .nonceUsed, .tokenReplayed, .loginRevoked, .subjectMismatch, .keyThumbprintMismatch,
        .accessTokenHashMismatch, .trackingNotAllowed,
    ]
}

/// The codes of other credentials, of a caller's mistakes and of outages.
extension Rejection.Code {
    /// Graph does not confirm the access token, or it is not a person's token.
    public static let accessTokenInvalid = Row("access_token_invalid", 401, .token, "The access token is refused")
        .hint(
            "Send AccessToken.current.token (Android), AccessToken.current.tokenString (iOS) or "
                + "authResponse.accessToken (web), whole and without quotation marks; what begins with eyJ is an id "
                + "token."
        )
    /// The access token expired.
    public static let accessTokenExpired = Row("access_token_expired", 401, .token, "The access token is refused")
        .detail("The access token expired: have the app log in again.")
        .hint("Have the app log in again; the SDK renews a token that the app uses once a day.")
    /// The person or Facebook revoked the access token.
    public static let accessTokenRevoked = Row("access_token_revoked", 401, .token, "The access token is refused")
        .detail("The access token was revoked, by the person or by Facebook: have the app log in again.")
        .hint(
            "The person removed the app or changed the password, or Facebook ended the session: end yours, and have the "
                + "person log in again."
        )
    /// The DPoP proof is refused. The sentences tell the causes apart.
    public static let invalidDPoPProof = Row("invalid_dpop_proof", 401, .client, "The DPoP proof is refused")
        .hint("Make a new proof for each request, with the key that the token is bound to (RFC 9449 section 4.2).")
    /// The signed request is refused. The sentences tell the causes apart.
    public static let invalidSignedRequest =
        Row("invalid_signed_request", 403, .client, "The signed request is refused")
        .hint(
            "Look whether `secrets` has the secret of the app that sends it, and whether the clock is right; limited-login "
                + "signed-request judge takes it apart."
        )

    package static let invalidRequest = Row("invalid_request", 400, .caller, "The request is malformed")
        .hint("Compare the request with its route's example in GET /openapi.json.")
    package static let invalidNonce = Row("invalid_nonce", 400, .caller, "The nonce is malformed")
        .hint("Give the nonce exactly as your backend made it: a string, not empty and without white space.")
    package static let unknownApp =
        Row("unknown_app", 400, .caller, "The app id is not configured", check: .expectation)
        .detail("The app ID given is not one of the configured apps.")
        .hint("Give an app id that `appIDs` names, or none.")
    package static let invalidTarget = Row("invalid_target", 400, .caller, "The audience is not configured")
        .detail("The audience is none of the configured ones.")
        .hint("Name one of `audiences` as audience or resource, or none.")
    package static let invalidScope = Row("invalid_scope", 400, .caller, "The scope is not offered")
        .detail("The scope is not within the configured one.")
        .hint("Name scopes of `scope` as scope, or none.")
    package static let keysUnavailable =
        Row("keys_unavailable", 503, .outage, "The issuer's keys are not available", check: .key, retryAfter: 2)
        .detail("The issuer's keys could not be fetched; try again shortly.")
        .hint("Try again when the issuer's keys can be fetched; limited-login keys shows why they cannot.")
    package static let internalError = Row("internal_error", 500, .outage, "The service failed")
        .hint("Try again, and look into the log of the service for the request id.")
}

/// The checks of a verdict, in their order. Later versions may know more of them.
@nonexhaustive  // SE-0487
public enum VerificationCheck: String, CaseIterable, Sendable {
    /// The expectation names a configured app and a login.
    case expectation = "You named an app and a login"
    /// The token is not too long.
    case size = "The token has 1 to 32,768 bytes"
    /// It has three parts in strict base64url.
    case serialization = "The token is a JWS of three parts in strict base64url"
    /// Its header is one JSON object.
    case header = "The header is one JSON object that names no member twice"
    /// `alg`.
    case algorithm = "The algorithm is RS256"
    /// `crit` and `b64`.
    case criticalHeader = "The header demands no extension"
    /// `typ`, and no sign of an encrypted or nested token.
    case type = "The token says it is a JWT, neither encrypted nor nested"
    /// `kid`.
    case keyID = "The header names its key"
    /// The issuer's key set has that key.
    case key = "The issuer publishes that key"
    /// The signature.
    case signature = "The signature is the issuer's"
    /// The payload is one JSON object.
    case payload = "The payload is one JSON object that names no member twice"
    /// `iss`.
    case issuer = "The issuer is trusted"
    /// `aud`, and `azp` if it exists.
    case audience = "The token is meant for this app"
    /// `exp`, `iat`, `nbf` and the age.
    case times = "The token is valid now"
    /// `sub` and `jti`.
    case identity = "The token names its subject and itself"
    /// `nonce` or `sub`, as the login expects.
    case binding = "The token belongs to this login"
    /// `cnf.jkt`, if the caller knows the device's key.
    case device = "The token is bound to the key of the login's device"
    /// `at_hash`, as far as it shows the tracking.
    case tracking = "The tracking of the login is allowed"
    /// `at_hash`, if the caller has the access token.
    case accessToken = "The access token came together with the token"

    /// The check's title, for a person.
    public var title: String { rawValue }
}
