internal import LLHTTP
internal import LLJOSE
package import LimitedLogin

extension Rejection {
    /// The remedy, with the service's setting in place of each name between grave accents.
    package var serviceHint: String {
        guard hint.utf8.contains(UInt8(ascii: "`")) else { return hint }
        let parts = hint.split(separator: "`", omittingEmptySubsequences: false).map(String.init)
        return parts.map { Self.settings[$0]?.row.environmentName ?? $0 }.joined()
    }

    private static let settings: [String: any AnySetting] = [
        "appIDs": Settings.all.appIDs, "issuers": Settings.all.issuers, "keys": Settings.all.jwksURLs,
        "tracking": Settings.all.onlyLimitedTracking,
        "clockSkew": Settings.all.clockSkew, "maximumTokenAge": Settings.all.maxTokenAgeSeconds,
        "nonces": Settings.all.nonceSecretFile, "secrets": Settings.all.appSecretsFile,
        "audiences": Settings.all.tokenAudiences,
        "scope": Settings.all.tokenScope, "AccessTokenInspection": Settings.all.accessTokensAreAccepted,
    ]

    /// Writes an answer: `application/problem+json` (RFC 9457) and the header fields that its status needs.
    func write(in dialect: ProblemDialect, requestID: [UInt8], to response: inout HTTPResponse) {
        let status = dialect.status(of: code)
        response.status = UInt16(status)
        response.addField("Content-Type: application/problem+json")
        response.addField("Cache-Control: no-store")
        if status == code.status { addChallenge(dialect != .plain, to: &response) }
        if let seconds = context.retryAfterSeconds ?? (status == 503 ? Self.outageSeconds : nil) {
            response.addField("Retry-After", String(seconds))
        }
        response.addField("X-Request-Id", requestID)
        writeBody(in: dialect, requestID: requestID, to: &response.body)
    }

    /// The default `Retry-After` of an outage, in seconds.
    private static let outageSeconds = 5

    /// RFC 6750 section 3: a 401 has a challenge with `error`; without credentials in the request there is no `error`.
    private func addChallenge(_ speaksOAuth: Bool, to response: inout HTTPResponse) {
        switch code {
        case let code where code.kind == .token:
            // Some gateways keep this field and drop the body, so `code` is in both.
            response.addField("WWW-Authenticate", "\(context.scheme) error=\"invalid_token\", code=\"\(code)\"")
        case .unauthorizedClient:
            let error = context.hasCredentials ? ", error=\"invalid_token\"" : ""
            response.addField("WWW-Authenticate", "Bearer realm=\"limited-login\"\(error)")
            // RFC 6749 section 5.2: OAuth clients authenticate with Basic, so they get that challenge too. On other
            // routes it would make a browser ask for a password, and URLSession on Linux hang.
            if speaksOAuth { response.addField("WWW-Authenticate: Basic realm=\"limited-login\"") }
        case .missingToken: response.addField("WWW-Authenticate: Bearer realm=\"limited-login\"")
        // RFC 9449 section 7.1.
        case .invalidDPoPProof:
            response.addField("WWW-Authenticate: DPoP error=\"invalid_dpop_proof\", algs=\"ES256\"")
        case .insufficientScope:
            let scope = context.scope.map { ", scope=\"\($0)\"" } ?? ""
            response.addField("WWW-Authenticate", "\(context.scheme) error=\"insufficient_scope\"\(scope)")
        default: return
        }
    }

    func writeBody(in dialect: ProblemDialect, requestID: [UInt8], to body: inout [UInt8]) {
        JSONWriter.raw("{\"type\":\"urn:limited-login:problem:", to: &body)
        body.append(contentsOf: code.rawValue.utf8)
        JSONWriter.raw("\"", to: &body)
        JSONWriter.member("title", code.title, to: &body)
        JSONWriter.member("status", dialect.status(of: code), to: &body)
        JSONWriter.member("detail", detail, to: &body)
        JSONWriter.member("hint", serviceHint, to: &body)
        JSONWriter.member("code", code.rawValue, to: &body)
        JSONWriter.member("claim", claim, to: &body)
        JSONWriter.member("fbtrace_id", context.traceID, to: &body)
        if let error = dialect.error(of: code) {
            // RFC 6749 section 5.2. `error_description` must be ASCII; the title is an ASCII constant.
            JSONWriter.member("error", "\(error)", to: &body)
            JSONWriter.member("error_description", code.title, to: &body)
        }
        JSONWriter.name("request_id", to: &body)
        JSONWriter.string(requestID.span, to: &body)
        JSONWriter.raw("}", to: &body)
    }
}

extension GraphFailure {
    /// The answer to a request whose call to Graph failed there or on the way.
    package var problem: Rejection {
        Rejection(error, sentence, retryAfter: retryAfterSeconds).with {
            $0.traceID = traceID
            // Graph's own message may name people, so it is left out.
            $0.logged["graph_code"] = code.map { "\($0)" }
            $0.logged["graph_subcode"] = subcode.map { "\($0)" }
            $0.logged["reason"] = reason
        }
    }
}

/// The members that a route adds to a problem of RFC 9457.
enum ProblemDialect: Sendable {
    case plain
    /// OAuth's `error` and `error_description` beside the other members (RFC 6749 section 5.2).
    case introspection
    /// The same, but a refused subject token is a bad request (RFC 8693 section 2.2.2), and every outage is 503.
    case exchange

    func status(of code: Rejection.Code) -> Int {
        guard self == .exchange else { return code.status }
        if code.kind == .token { return 400 }
        let isOutage = code.isOfGraph || code == .keyChecksExhausted || code == .tooManyAccessTokens
        return isOutage ? 503 : code.status
    }

    /// OAuth's error code; nil for a route outside OAuth.
    func error(of code: Rejection.Code) -> StaticString? {
        guard self != .plain else { return nil }
        return switch (code, status(of: code)) {
        case (.invalidTarget, _): "invalid_target"
        case (.invalidScope, _): "invalid_scope"
        case (.unsupportedGrantType, _): "unsupported_grant_type"
        case (_, 401): "invalid_client"
        case (_, 503): "temporarily_unavailable"
        default: "invalid_request"
        }
    }
}

private typealias Row = Rejection.Code

/// The service's own rows of the catalogue, listed in `openapi.json`; those of credentials are the library's.
extension Rejection.Code {
    package static let accessTokenNotAllowed =
        Row("access_token_not_allowed", 401, .token, "Access tokens are not accepted")
        .hint(
            "Have an iPhone app send AuthenticationToken.current.tokenString; for logins of Android, the web or "
                + "classic iOS set LIMITED_LOGIN_ACCESS_TOKENS to accept, and LIMITED_LOGIN_APP_SECRETS_FILE."
        )

    package static let missingToken = Row("missing_token", 401, .client, "There is no bearer token")
        .hint("Have the app send one field Authorization: Bearer with the id token, and the gateway pass it on.")
    package static let tooManyProofs =
        Row("too_many_proofs", 429, .client, "The device makes too many DPoP proofs", retryAfter: 60)
        .hint("Have the app make at most three requests a second with one key.")
    package static let insufficientScope =
        Row("insufficient_scope", 403, .client, "The token does not show what is needed")
        .hint("Have the app log in with the permissions in the query of the gateway, or mend that query.")

    package static let invalidPermission =
        Row("invalid_permission", 400, .caller, "A permission cannot be asked for")
        .hint("Name permissions as Facebook spells them; GET /openapi.json lists Limited Login's twelve.")
    package static let unsupportedGrantType =
        Row("unsupported_grant_type", 400, .caller, "The grant type is not supported")
        .hint("Send grant_type=urn:ietf:params:oauth:grant-type:token-exchange.")
    package static let unauthorizedClient = Row("unauthorized_client", 401, .caller, "The caller is not authorized")
        .hint(
            "Send the key of this backend as X-Api-Key; limited-login client-key new makes one, and its line goes into "
                + "LIMITED_LOGIN_CLIENT_KEYS_FILE."
        )
    package static let notFound = Row("not_found", 404, .caller, "There is nothing at this path")
        .hint("Compare the path with GET /openapi.json; a route that needs a setting is there once it is set.")
    package static let methodNotAllowed =
        Row("method_not_allowed", 405, .caller, "The method is not allowed at this path")
        .hint("Use a method that the field Allow of this answer names.")
    package static let requestTimeout = Row("request_timeout", 408, .caller, "The request did not arrive in time")
        .hint("Send the request again, whole and at once, with the right Content-Length.")
    package static let bodyTooLarge = Row("body_too_large", 413, .caller, "The body is too large")
        .hint("Send the one credential that is to be judged, and nothing else.")
    package static let uriTooLong = Row("uri_too_long", 414, .caller, "The request target is too long")
        .hint("Send the token in the body or in a field, not in the URL.")
    package static let unsupportedMediaType =
        Row("unsupported_media_type", 415, .caller, "The body's media type is not supported")
        .hint("Declare the body as the field Accept of this answer says; with curl, -H 'Content-Type: …'.")
    package static let expectationFailed = Row("expectation_failed", 417, .caller, "The expectation cannot be met")
        .hint("Leave out the field Expect, or send 100-continue in it.")
    package static let headersTooLarge = Row("headers_too_large", 431, .caller, "The header section is too large")
        .hint("Send at most 100 fields of 32 KiB together; cookies are not needed here.")
    package static let notImplemented =
        Row("not_implemented", 501, .caller, "The method or transfer coding is not implemented")
        .hint("Use the method and the codings of RFC 9110 and RFC 9112: POST, with Content-Length or chunked.")
    package static let httpVersionNotSupported =
        Row("http_version_not_supported", 505, .caller, "The HTTP version is not supported")
        .hint("Speak HTTP/1.1; a gateway may speak HTTP/2 with its clients.")

    package static let keyChecksExhausted =
        Row("key_checks_exhausted", 429, .outage, "Too many tokens name unknown keys", retryAfter: 5)
        .detail(
            "The token's key is not cached, and too many tokens name unknown keys for the issuer to be asked in time; try "
                + "again."
        )
        .hint(keepUsers)
    package static let tooManyAccessTokens =
        Row("too_many_access_tokens", 429, .outage, "Too many access tokens wait for Graph", retryAfter: 1)
        .detail("Too many access tokens are waiting for Graph; try again shortly.")
        .hint(keepUsers)
    package static let replayStoreUnavailable =
        Row(
            "replay_store_unavailable",
            503,
            .outage,
            "The memory of what was used or revoked is not available",
            retryAfter: 1
        )
        .detail(
            "It cannot be known now whether this was used before; try again shortly, with a new login or proof if need be."
        )
        .hint(
            "Try again shortly, and keep users logged in; /readyz?verbose of the administrative listener shows the store."
        )
    package static let callbackNotDelivered =
        Row("callback_not_delivered", 503, .outage, "The app's backend could not be told", retryAfter: 60)
        .detail("The app's backend has not taken it; send it again.")
        .hint("Look whether the backend at LIMITED_LOGIN_CALLBACKS_URL answers 2xx; POST /revocations tells it again.")
    package static let overloaded = Row("overloaded", 503, .outage, "The service is overloaded", retryAfter: 1)
        .hint(keepUsers)
    package static let draining = Row("draining", 503, .outage, "The service is stopping", retryAfter: 1)
        .hint("Ask another replica.")

    private static let keepUsers = "Try again when Retry-After is over, and keep users logged in."

    /// All codes, those of refused tokens among them.
    package static let all: [Rejection.Code] =
        ofTokens + ofAccessTokens + [
            .invalidRequest, .invalidNonce, .invalidPermission, .unknownApp, .unauthorizedClient, .missingToken,
            .invalidDPoPProof, .tooManyProofs, .insufficientScope, .invalidSignedRequest, .notFound, .methodNotAllowed,
            .requestTimeout, .bodyTooLarge, .uriTooLong, .unsupportedMediaType, .expectationFailed,
            .keyChecksExhausted, .tooManyAccessTokens, .headersTooLarge, .internalError, .notImplemented,
            .keysUnavailable, .replayStoreUnavailable, .callbackNotDelivered, .overloaded, .draining,
            .httpVersionNotSupported, .invalidTarget, .invalidScope, .unsupportedGrantType,
        ] + ofGraph

    static let ofAccessTokens: [Rejection.Code] = [
        .accessTokenNotAllowed, .accessTokenInvalid, .accessTokenExpired, .accessTokenRevoked,
    ]

    /// The codes of refused tokens without the checks of a login: nonce, subject, device, access token, earlier use.
    static let ofUnboundTokens = ofTokens.filter { !$0.isOfLogin }

    /// The codes if a token cannot be judged now.
    static let ofJudging: [Rejection.Code] = [.keyChecksExhausted, .keysUnavailable, .replayStoreUnavailable]

    /// The codes that any path may answer: a request that cannot be read, an unknown path or method, an overload.
    static let ofAnyPath: [Rejection.Code] = [
        .invalidRequest, .notFound, .methodNotAllowed, .requestTimeout, .bodyTooLarge, .uriTooLong, .expectationFailed,
        .headersTooLarge, .internalError, .notImplemented, .overloaded, .httpVersionNotSupported,
    ]

    /// The code for a status that the HTTP server itself chose.
    static func ofServer(_ status: Int) -> Rejection.Code { ofAnyPath.first { $0.status == status } ?? .invalidRequest }

    /// The codes for a failed question to Graph about an access token: never the person's or the caller's fault.
    static let ofGraphAboutAccessTokens = ofGraph.filter { $0.kind == .outage }

    /// The codes for a login, by an id token or an access token.
    static let ofLogins = ofTokens + ofJudging + ofAccessTokens + [.tooManyAccessTokens] + ofGraphAboutAccessTokens

    package var isOfGraph: Bool { Self.ofGraph.contains(self) }
}
