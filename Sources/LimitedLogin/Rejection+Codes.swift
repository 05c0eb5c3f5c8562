internal import LLBytes

private typealias Row = Rejection.Code

extension Rejection {
    /// The stable codes for callers. Later versions may know more of them.
    ///
    /// A code is one row of the catalogue: the status and the title of the service's answer, the party at fault, and the
    /// sentences of a refusal that has no more precise ones. The service adds its own rows to those of this library.
    public final class Code: Hashable, Sendable, CustomStringConvertible {
        /// The code in answers and logs.
        public let rawValue: String
        /// The status code of the service's answer (RFC 9110 section 15, RFC 6585).
        package let status: Int
        package let kind: Kind
        /// The kind of problem in words, the same for every occurrence (RFC 9457 section 3.1.3).
        package let title: String
        package let detail: String
        package let hint: String
        /// The time until another attempt makes sense, in seconds; nil if the same request would fail again.
        package let retryAfterSeconds: Int?
        package let check: VerificationCheck?
        package let claim: String?
        private let uses: Uses

        package enum Kind: Sendable {
            /// The token, of which a bearer is told in a challenge.
            case token
            /// Another thing that the app's client sent: a proof, a signed request, or no token at all.
            case client
            /// The caller, with any token.
            case caller
            /// This service or another one, so nothing is known about the token.
            case outage
        }

        /// The credentials and requests that a code of a refused token is for.
        struct Uses: OptionSet, Sendable {
            let rawValue: UInt8

            static let login = Uses(rawValue: 1)
            static let accessTokens = Uses(rawValue: 2)
            static let nonces: Uses = [.login, Uses(rawValue: 4)]
        }

        package static let refuseTheLogin = "Refuse the login, and have the app log in again."

        /// True if the code is about the tie to a login. A caller that names no login never gets it.
        package var isOfLogin: Bool { uses.contains(.login) }
        package var isOfAccessTokens: Bool { uses.contains(.accessTokens) }
        package var isOfNonces: Bool { uses.contains(.nonces) }

        package init(
            _ rawValue: String,
            _ status: Int,
            _ kind: Kind,
            _ title: String,
            check: VerificationCheck? = nil,
            claim: String? = nil,
            uses: UInt8 = 0,
            retryAfter seconds: Int? = nil
        ) {
            (self.rawValue, self.status, self.kind, self.title) = (rawValue, status, kind, title)
            (self.check, self.claim, retryAfterSeconds) = (check, claim, seconds)
            (self.uses, detail, hint) = (Uses(rawValue: uses), "", Code.refuseTheLogin)
        }

        /// A code of refused id tokens.
        fileprivate convenience init(
            _ name: String,
            _ uses: Uses = [],
            _ check: VerificationCheck? = nil,
            _ claim: ClaimName? = nil
        ) {
            let token = uses.contains(.accessTokens) ? "The token is refused" : "The id token is refused"
            let title = uses.contains(.nonces) ? "The login is refused for its nonce" : token
            self.init(name, 401, .token, title, check: check, claim: claim?.spelling, uses: uses.rawValue)
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
    public static let malformedToken = Rejection.Code("malformed_token")
    /// The token is of another kind.
    public static let notAnIDToken = Rejection.Code("not_an_id_token")
    /// The value of `alg` is not RS256; of a DPoP proof, not ES256; of a signed request, not HMAC-SHA256.
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
    public static let unknownKey = Rejection.Code("unknown_key", [], .key)
    /// The signature is wrong.
    public static let invalidSignature = Rejection.Code("invalid_signature", [], .signature)
    /// A claim is missing.
    public static let missingClaim = Rejection.Code("missing_claim")
    /// A claim has the wrong type or range.
    public static let malformedClaim = Rejection.Code("malformed_claim")
    /// The issuer is not trusted.
    public static let invalidIssuer = Rejection.Code("invalid_issuer", [], .issuer, .issuer)
    /// The token is for another app.
    public static let invalidAudience = Rejection.Code("invalid_audience", .accessTokens)
    /// The token has expired.
    public static let expired = Rejection.Code("expired", [], .times, .expiration)
    /// The token is not valid yet.
    public static let notYetValid = Rejection.Code("not_yet_valid")
    /// The token was issued too long ago.
    public static let tooOld = Rejection.Code("too_old", .accessTokens)
    /// The token belongs to another login.
    public static let nonceMismatch = Rejection.Code("nonce_mismatch", .nonces)
    /// The token's nonce was not issued here for this app.
    public static let nonceNotIssued = Rejection.Code("nonce_not_issued", .nonces)
    /// The token's nonce was issued too long ago.
    public static let nonceExpired = Rejection.Code("nonce_expired", .nonces)
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
    public static let tokenReplayed = Rejection.Code("token_replayed", [.login, .accessTokens])
    /// The login was revoked after the token was issued.
    public static let loginRevoked = Row("login_revoked", .accessTokens, .times, .issuedAt)
        .detail("The login was revoked after this token was issued, or in the same second.")
        .hint("The person or your backend ended this login: end its session, and have the person log in anew.")
    /// The token belongs to another person.
    public static let subjectMismatch = Row("subject_mismatch", [.login, .accessTokens])
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

/// The codes of refused access tokens alone.
extension Rejection.Code {
    /// Graph does not confirm the token, or it is not a person's token.
    public static let accessTokenInvalid = ofAccessTokens("access_token_invalid")
        .hint(
            "Send AccessToken.current.token (Android), AccessToken.current.tokenString (iOS) or "
                + "authResponse.accessToken (web), whole and without quotation marks; what begins with eyJ is an id "
                + "token."
        )
    /// The token expired.
    public static let accessTokenExpired = ofAccessTokens("access_token_expired")
        .detail("The access token expired: have the app log in again.")
        .hint("Have the app log in again; the SDK renews a token that the app uses once a day.")
    /// The person or Facebook revoked the token.
    public static let accessTokenRevoked = ofAccessTokens("access_token_revoked")
        .hint("End the person's session, and have the person log in again.")

    private static func ofAccessTokens(_ rawValue: String) -> Rejection.Code {
        Row(rawValue, 401, .token, "The access token is refused")
    }
}

/// The codes of refused DPoP proofs; ``unsupportedAlgorithm``, ``unsupportedCriticalHeader`` and ``invalidSignature`` are
/// theirs too.
extension Rejection.Code {
    /// The code of the service's answer to all of them.
    package static let invalidDPoPProof = Row("invalid_dpop_proof", 401, .client, "The DPoP proof is refused")
        .hint("Make a new proof for each request, with the key that the token is bound to (RFC 9449 section 4.2).")
    /// The request has no proof.
    public static let missingProof = ofProofs("missing_proof")
        .detail("The token is bound to a key, and the request has no DPoP proof.")
    /// The request has more than one proof.
    public static let repeatedProof = ofProofs("repeated_proof")
        .detail("The request has more than one DPoP field.")
    /// The proof is too long, or no JWT.
    public static let malformedProof = ofProofs("malformed_proof")
    /// `typ` is not `dpop+jwt`.
    public static let wrongType = ofProofs("wrong_type")
        .detail("The DPoP proof's typ is not dpop+jwt.")
    /// `jwk` is no public P-256 key.
    public static let invalidKey = ofProofs("invalid_key")
        .detail("The DPoP proof's jwk is not a public P-256 key.")
    /// `htm` or `htu` is of another request, or the request's URL is none.
    public static let wrongRequest = ofProofs("wrong_request")
    /// `iat`, `exp` or `nbf` is missing, unreadable, or too far away; of a signed request, `issued_at`.
    public static let outOfTime = ofProofs("out_of_time")
    /// `jti` is missing, empty or too long.
    public static let missingTokenID = ofProofs("missing_token_id")
        .detail("The DPoP proof's jti is missing, empty, or longer than 256 bytes.")
    /// `ath` is missing, or of another token.
    public static let wrongToken = ofProofs("wrong_token")
    /// The token is bound to another key, or to none.
    public static let wrongKey = ofProofs("wrong_key")
    /// The proof was used before.
    public static let replayedProof = ofProofs("replayed_proof")
        .detail("The DPoP proof's jti was seen before: make a proof with a new jti for each request.")
    /// A bound token came as a Bearer.
    public static let boundBearer = ofProofs("bound_bearer")

    private static func ofProofs(_ rawValue: String) -> Rejection.Code {
        Row(rawValue, 401, .client, invalidDPoPProof.title)
    }
}

/// The codes of refused signed requests; ``unsupportedAlgorithm``, ``invalidSignature``, ``outOfTime`` and ``expired`` are
/// theirs too.
extension Rejection.Code {
    /// The code of the service's answer to all of them.
    package static let invalidSignedRequest =
        Row("invalid_signed_request", 403, .caller, "The signed request is refused")
        .hint(
            "Look whether `secrets` has the secret of the app that sends it, and whether the clock is right; limited-login "
                + "signed-request judge takes it apart."
        )
    /// It is not two parts of base64url with a JSON object.
    public static let malformedRequest = ofRequests("malformed_request")
    /// It belongs to a login, not to a callback.
    public static let loginRequest = ofRequests("login_request")
        .detail("This is a login's signed request (it has code, oauth_token or access_token), not a callback's.")
    /// It belongs to a page tab.
    public static let pageTabRequest = ofRequests("page_tab_request")
        .detail("This is a page tab's signed request (it has page), not a callback's.")
    /// It belongs to an Instant Game.
    public static let instantGameRequest = ofRequests("instant_game_request")
    /// `user_id` is missing or no id.
    public static let invalidUser = ofRequests("invalid_user")
        .detail("The member user_id is missing or not 1 to 20 digits without a leading zero.")
    /// `user_id` is 0: a page removed the app. Answer 200 at the deauthorize callback and 403 at data deletion.
    public static let noPerson = ofRequests("no_person")
        .detail("The member user_id is 0: a page removed the app, and no person is named.")

    private static func ofRequests(_ rawValue: String) -> Rejection.Code {
        Row(rawValue, 403, .client, invalidSignedRequest.title)
    }

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
