package import LLGraph
package import LimitedLogin

/// The stable error codes of the service's answers. They are part of the API and listed in `openapi.json`.
///
/// Each code has one row: its text, status, subject, title, and a remedy for refusals without a more precise one. The
/// rows of tokens are in the library's catalogue (``Refusal``), those of calls to Graph in `ProblemCode+Sets`.
package enum ProblemCode: Sendable, Hashable {
    case rejectedToken(TokenRejection.Code)
    case graph(GraphError)
    case accessTokenNotAllowed, accessTokenInvalid, accessTokenExpired, accessTokenRevoked, invalidRequest
    case invalidNonce, invalidPermission, unknownApp, unauthorizedClient, missingToken, invalidDPoPProof
    case tooManyProofs, insufficientScope, invalidSignedRequest, notFound, methodNotAllowed, requestTimeout,
        bodyTooLarge
    case uriTooLong, unsupportedMediaType, expectationFailed, headersTooLarge
    case keyChecksExhausted, tooManyAccessTokens, internalError, notImplemented, keysUnavailable,
        replayStoreUnavailable,
        callbackNotDelivered
    case overloaded, draining, httpVersionNotSupported
    case invalidTarget, unsupportedGrantType

    /// The service's code for a row of the library's catalogue.
    package init(_ kind: Refusal.Kind) {
        switch kind {
        case .token(let code): self = .rejectedToken(code)
        case .invalidRequest: self = .invalidRequest
        case .invalidNonce: self = .invalidNonce
        case .unknownApp: self = .unknownApp
        case .keysUnavailable: self = .keysUnavailable
        case .internalError: self = .internalError
        }
    }

    /// All codes, those of refused tokens among them.
    package static let all: [ProblemCode] =
        ofTokens + ofAccessTokens + [
            .invalidRequest, .invalidNonce, .invalidPermission, .unknownApp, .unauthorizedClient, .missingToken,
            .invalidDPoPProof, .tooManyProofs, .insufficientScope, .invalidSignedRequest, .notFound, .methodNotAllowed,
            .requestTimeout,
            .bodyTooLarge, .uriTooLong, .unsupportedMediaType, .expectationFailed,
            .keyChecksExhausted, .tooManyAccessTokens, .headersTooLarge, .internalError,
            .notImplemented, .keysUnavailable,
            .replayStoreUnavailable, .callbackNotDelivered,
            .overloaded, .draining, .httpVersionNotSupported, .invalidTarget, .unsupportedGrantType,
        ] + ofGraph

    /// The code's text in answers; clients compare it.
    package var text: String { row.text }

    /// The status code of the answer (RFC 9110 section 15, RFC 6585).
    package var status: Int { row.status }

    /// The kind of problem in words, the same for every occurrence (RFC 9457 section 3.1.3).
    package var title: String { row.title }

    /// The remedy, in one sentence, for refusals without a more precise one.
    package var hint: String { row.hint }

    /// The default time until another attempt makes sense, in seconds; nil if the same request would fail again.
    package var retryAfterSeconds: Int? { row.retryAfterSeconds }

    /// The party at fault: a token or proof, the caller, or an outage of this service or of another.
    package var subject: Subject { row.subject }

    package enum Subject: Sendable { case token, caller, outage }

    private var row: Row {
        switch self {
        case .rejectedToken(let code):
            Row(
                code.rawValue,
                401,
                .token,
                code.isOfNonces
                    ? "The login is refused for its nonce"
                    : code.isOfAccessTokens ? "The token is refused" : "The id token is refused",
                hint: "Refuse the login, and have the app log in again."
            )
        case .accessTokenNotAllowed, .accessTokenInvalid, .accessTokenExpired, .accessTokenRevoked: rowOfAccessToken
        case .graph(let error): Self.row(of: error)
        case .missingToken, .invalidDPoPProof, .tooManyProofs, .insufficientScope, .invalidSignedRequest:
            rowOfCredentials
        case .keyChecksExhausted, .tooManyAccessTokens, .internalError, .keysUnavailable, .replayStoreUnavailable,
            .callbackNotDelivered,
            .overloaded, .draining:
            rowOfOutage
        default: rowOfRequest
        }
    }

    private var rowOfAccessToken: Row {
        let (text, hint) =
            switch self {
            case .accessTokenNotAllowed:
                (
                    "access_token_not_allowed",
                    "Have an iPhone app send AuthenticationToken.current.tokenString; for logins of Android, the web or "
                        + "classic iOS set LIMITED_LOGIN_ACCESS_TOKENS to accept, and LIMITED_LOGIN_APP_SECRETS_FILE."
                )
            case .accessTokenExpired:
                (
                    "access_token_expired",
                    "Have the app log in again; the SDK renews a token that the app uses once a day."
                )
            case .accessTokenRevoked:
                ("access_token_revoked", "End the person's session, and have the person log in again.")
            default:
                (
                    "access_token_invalid",
                    "Send AccessToken.current.token (Android), AccessToken.current.tokenString (iOS) or "
                        + "authResponse.accessToken (web), whole and without quotation marks; what begins with eyJ is an id "
                        + "token."
                )
            }
        let title =
            self == .accessTokenNotAllowed ? "Access tokens are not accepted" : "The access token is refused"
        return Row(text, 401, .token, title, hint: hint)
    }

    private var rowOfCredentials: Row {
        switch self {
        case .missingToken:
            Row(
                "missing_token",
                401,
                .token,
                "There is no bearer token",
                hint: "Have the app send one field Authorization: Bearer with the id token, and the gateway pass it on."
            )
        case .invalidDPoPProof:
            Row(
                "invalid_dpop_proof",
                401,
                .token,
                "The DPoP proof is refused",
                hint:
                    "Make a new proof for each request, with the key that the token is bound to (RFC 9449 section 4.2)."
            )
        case .tooManyProofs:
            Row(
                "too_many_proofs",
                429,
                .token,
                "The device makes too many DPoP proofs",
                hint: "Have the app make at most three requests a second with one key.",
                retryAfterSeconds: 60
            )
        case .insufficientScope:
            Row(
                "insufficient_scope",
                403,
                .token,
                "The token does not show what is needed",
                hint: "Have the app log in with the permissions in the query of the gateway, or mend that query."
            )
        default:
            Row(
                "invalid_signed_request",
                403,
                .caller,
                "The signed request is refused",
                hint:
                    "Look whether LIMITED_LOGIN_APP_SECRETS_FILE has the secret of the app that sends it, and whether the "
                    + "clock is right; limited-login signed-request judge takes it apart."
            )
        }
    }

    private var rowOfOutage: Row {
        switch self {
        case .keyChecksExhausted:
            Row(
                "key_checks_exhausted",
                429,
                .outage,
                "Too many tokens name unknown keys",
                hint: "Try again when Retry-After is over, and keep users logged in.",
                retryAfterSeconds: 5
            )
        case .tooManyAccessTokens:
            Row(
                "too_many_access_tokens",
                429,
                .outage,
                "Too many access tokens wait for Graph",
                hint: "Try again when Retry-After is over, and keep users logged in.",
                retryAfterSeconds: 1
            )
        case .keysUnavailable:
            Row(
                "keys_unavailable",
                503,
                .outage,
                "The issuer's keys are not available",
                hint: "Try again when the issuer's keys can be fetched; limited-login keys shows why they cannot.",
                retryAfterSeconds: 2
            )
        case .replayStoreUnavailable:
            Row(
                "replay_store_unavailable",
                503,
                .outage,
                "The memory of what was used or revoked is not available",
                hint:
                    "Try again shortly, and keep users logged in; /readyz?verbose of the administrative listener shows the store.",
                retryAfterSeconds: 1
            )
        case .callbackNotDelivered:
            Row(
                "callback_not_delivered",
                503,
                .outage,
                "The app's backend could not be told",
                hint:
                    "Look whether the backend at LIMITED_LOGIN_CALLBACKS_URL answers 2xx; Facebook sends the callback again.",
                retryAfterSeconds: 60
            )
        case .overloaded:
            Row(
                "overloaded",
                503,
                .outage,
                "The service is overloaded",
                hint: "Try again when Retry-After is over, and keep users logged in.",
                retryAfterSeconds: 1
            )
        case .draining:
            Row(
                "draining",
                503,
                .outage,
                "The service is stopping",
                hint: "Ask another replica.",
                retryAfterSeconds: 1
            )
        default:
            Row(
                "internal_error",
                500,
                .outage,
                "The service failed",
                hint: "Try again, and look into the log of the service for the request id."
            )
        }
    }

    private var rowOfRequest: Row {
        switch self {
        case .invalidNonce:
            Row(
                "invalid_nonce",
                400,
                .caller,
                "The nonce is malformed",
                hint: "Give the nonce exactly as your backend made it: a string, not empty and without white space."
            )
        case .invalidPermission:
            Row(
                "invalid_permission",
                400,
                .caller,
                "A permission cannot be asked for",
                hint: "Name permissions as Facebook spells them; GET /openapi.json lists Limited Login's twelve."
            )
        case .unknownApp:
            Row(
                "unknown_app",
                400,
                .caller,
                "The app id is not configured",
                hint: "Give an app id that LIMITED_LOGIN_APP_IDS names, or none."
            )
        case .invalidTarget:
            Row(
                "invalid_target",
                400,
                .caller,
                "The audience is not configured",
                hint: "Name one of LIMITED_LOGIN_TOKEN_AUDIENCES as audience, or none."
            )
        case .unsupportedGrantType:
            Row(
                "unsupported_grant_type",
                400,
                .caller,
                "The grant type is not supported",
                hint: "Send grant_type=urn:ietf:params:oauth:grant-type:token-exchange."
            )
        case .unauthorizedClient:
            Row(
                "unauthorized_client",
                401,
                .caller,
                "The caller is not authorized",
                hint:
                    "Send the key of this backend as X-Api-Key; limited-login client-key new makes one, and its line goes into "
                    + "LIMITED_LOGIN_CLIENT_KEYS_FILE."
            )
        case .notFound:
            Row(
                "not_found",
                404,
                .caller,
                "There is nothing at this path",
                hint: "Compare the path with GET /openapi.json; a route that needs a setting is there once it is set."
            )
        case .methodNotAllowed:
            Row(
                "method_not_allowed",
                405,
                .caller,
                "The method is not allowed at this path",
                hint: "Use a method that the field Allow of this answer names."
            )
        case .requestTimeout:
            Row(
                "request_timeout",
                408,
                .caller,
                "The request did not arrive in time",
                hint: "Send the request again, whole and at once, with the right Content-Length."
            )
        case .bodyTooLarge:
            Row(
                "body_too_large",
                413,
                .caller,
                "The body is too large",
                hint: "Send the one credential that is to be judged, and nothing else."
            )
        default: rowOfHTTP
        }
    }
}
