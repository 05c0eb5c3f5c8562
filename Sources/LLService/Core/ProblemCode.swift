package import LLGraph
package import LimitedLogin

/// Every stable error code of the service's answers; part of the API, listed in `openapi.json`.
package enum ProblemCode: Sendable, Hashable {
    case rejectedToken(TokenRejection.Code)
    case graph(GraphError)
    case accessTokenNotAllowed, accessTokenInvalid, accessTokenExpired, accessTokenRevoked, invalidRequest,
        invalidSignedPlayerInfo
    case invalidNonce, invalidPermission, unknownApp, unauthorizedClient, missingToken, invalidDPoPProof
    case tooManyProofs, insufficientScope, invalidSignedRequest, notFound, methodNotAllowed, requestTimeout,
        bodyTooLarge
    case uriTooLong, unsupportedMediaType, expectationFailed, misdirectedRequest, headersTooLarge
    case keyChecksExhausted, tooManyAccessTokens, internalError, notImplemented, keysUnavailable,
        replayStoreUnavailable,
        callbackNotDelivered
    case overloaded, draining, httpVersionNotSupported

    /// The service's code for a verdict's: what is the caller's mistake or an outage keeps the status it has anywhere.
    package init(_ code: TokenRejection.Code) {
        switch code {
        case .invalidRequest: self = .invalidRequest
        case .invalidNonce: self = .invalidNonce
        case .unknownApp: self = .unknownApp
        case .keysUnavailable: self = .keysUnavailable
        default: self = .rejectedToken(code)
        }
    }

    /// All codes, those of refused tokens among them.
    package static let all: [ProblemCode] =
        ofTokens + ofAccessTokens + [.invalidSignedPlayerInfo] + [
            .invalidRequest, .invalidNonce, .invalidPermission, .unknownApp, .unauthorizedClient, .missingToken,
            .invalidDPoPProof, .tooManyProofs, .insufficientScope, .invalidSignedRequest, .notFound, .methodNotAllowed,
            .requestTimeout,
            .bodyTooLarge, .uriTooLong, .unsupportedMediaType, .expectationFailed,
            .misdirectedRequest, .keyChecksExhausted, .tooManyAccessTokens, .headersTooLarge, .internalError,
            .notImplemented, .keysUnavailable,
            .replayStoreUnavailable, .callbackNotDelivered,
            .overloaded, .draining, .httpVersionNotSupported,
        ] + ofGraph

    /// The code as clients compare it.
    package var text: String { row.text }

    /// The status code of the answer (RFC 9110 section 15, RFC 6585).
    package var status: Int { row.status }

    /// The kind of problem in words, the same for every occurrence (RFC 9457 section 3.1.3).
    package var title: String { row.title }

    /// All there is to say about a code.
    private var row: (text: String, status: Int, title: String) {
        switch self {
        case .rejectedToken(let code): (code.rawValue, 401, Self.title(of: code))
        case .graph(let error): (error.rawValue, error.answer.status, error.answer.title)
        case .accessTokenNotAllowed: ("access_token_not_allowed", 401, "Access tokens are not accepted")
        case .accessTokenInvalid: ("access_token_invalid", 401, "The access token is refused")
        case .accessTokenExpired: ("access_token_expired", 401, "The access token is refused")
        case .accessTokenRevoked: ("access_token_revoked", 401, "The access token is refused")
        case .invalidSignedPlayerInfo: ("invalid_signed_player_info", 401, "The signed player info is refused")
        case .invalidRequest: ("invalid_request", 400, "The request is malformed")
        case .invalidNonce: ("invalid_nonce", 400, "The nonce is malformed")
        case .invalidPermission: ("invalid_permission", 400, "A permission cannot be asked for")
        case .unknownApp: ("unknown_app", 400, "The app id is not configured")
        case .unauthorizedClient: ("unauthorized_client", 401, "The caller is not authorized")
        case .missingToken: ("missing_token", 401, "There is no bearer token")
        case .invalidDPoPProof: ("invalid_dpop_proof", 401, "The DPoP proof is refused")
        case .tooManyProofs: ("too_many_proofs", 429, "The device makes too many DPoP proofs")
        case .insufficientScope: ("insufficient_scope", 403, "The token does not show what is needed")
        case .invalidSignedRequest: ("invalid_signed_request", 403, "The signed request is refused")
        case .notFound: ("not_found", 404, "There is nothing at this path")
        case .methodNotAllowed: ("method_not_allowed", 405, "The method is not allowed at this path")
        case .requestTimeout: ("request_timeout", 408, "The request did not arrive in time")
        case .bodyTooLarge: ("body_too_large", 413, "The body is too large")
        case .uriTooLong: ("uri_too_long", 414, "The request target is too long")
        case .unsupportedMediaType: ("unsupported_media_type", 415, "The body's media type is not supported")
        case .expectationFailed: ("expectation_failed", 417, "The expectation cannot be met")
        case .misdirectedRequest: ("misdirected_request", 421, "This server does not answer for that host")
        case .keyChecksExhausted: ("key_checks_exhausted", 429, "Too many tokens name unknown keys")
        case .tooManyAccessTokens: ("too_many_access_tokens", 429, "Too many access tokens wait for Graph")
        case .headersTooLarge: ("headers_too_large", 431, "The header section is too large")
        case .internalError: ("internal_error", 500, "The service failed")
        case .notImplemented: ("not_implemented", 501, "The method or transfer coding is not implemented")
        case .keysUnavailable: ("keys_unavailable", 503, "The issuer's keys are not available")
        case .replayStoreUnavailable:
            ("replay_store_unavailable", 503, "The memory of what was used or revoked is not available")
        case .callbackNotDelivered: ("callback_not_delivered", 503, "The app's backend could not be told")
        case .overloaded: ("overloaded", 503, "The service is overloaded")
        case .draining: ("draining", 503, "The service is stopping")
        case .httpVersionNotSupported: ("http_version_not_supported", 505, "The HTTP version is not supported")
        }
    }

    private static func title(of code: TokenRejection.Code) -> String {
        switch code {
        // What other credentials may be refused for too.
        case .invalidAudience, .tooOld, .subjectMismatch, .tokenReplayed, .loginRevoked: "The token is refused"
        case .nonceMismatch, .nonceNotIssued, .nonceExpired, .nonceUsed: "The login is refused for its nonce"
        default: "The id token is refused"
        }
    }

    /// When another try makes sense, where nothing better is known; nil where the same request would fail again.
    var retryAfterSeconds: Int? {
        switch self {
        case .keysUnavailable: 2
        case .keyChecksExhausted: 5
        case .graph(let error): error.retryAfterSeconds
        case .replayStoreUnavailable, .tooManyAccessTokens, .overloaded, .draining: 1
        case .callbackNotDelivered, .tooManyProofs: 60
        default: nil
        }
    }

    /// The code that fits a status that the HTTP server itself decided on.
    init(serverStatus status: Int) { self = Self.ofAnyPath.first { $0.status == status } ?? .invalidRequest }
}

extension ProblemCode {
    static let ofGraph: [ProblemCode] = GraphError.allCases.map { .graph($0) }

    /// Those of questions about an access token that failed at Graph: nothing is the person's or the caller's fault there.
    static let ofGraphAboutAccessTokens = ofGraph.filter { $0.status == 429 || $0.status >= 500 }

    /// Those of refused access tokens alone.
    static let ofAccessTokens: [ProblemCode] = [
        .accessTokenNotAllowed, .accessTokenInvalid, .accessTokenExpired, .accessTokenRevoked,
    ]

    /// Those of a nonce that other credentials than id tokens bring.
    static let ofNonces: [ProblemCode] = [
        .rejectedToken(.nonceMismatch), .rejectedToken(.nonceNotIssued), .rejectedToken(.nonceExpired),
        .rejectedToken(.nonceUsed),
    ]

    static let ofTokens = TokenRejection.Code.allCases.map { ProblemCode($0) }.filter {
        if case .rejectedToken = $0 { true } else { false }
    }

    /// Those of refused tokens that are tied to no login: nonce, subject, device, access token and an earlier use are not
    /// looked at.
    static var ofUnboundTokens: [ProblemCode] {
        let ofBinding: [TokenRejection.Code] = [
            .nonceMismatch, .nonceNotIssued, .nonceExpired, .nonceUsed, .tokenReplayed, .subjectMismatch,
            .keyThumbprintMismatch, .accessTokenHashMismatch,
        ]
        return ofTokens.filter { !ofBinding.map { .rejectedToken($0) }.contains($0) }
    }

    /// What any path may answer: a request that cannot be read, a path or method that is not there, an overload.
    static let ofAnyPath: [ProblemCode] = [
        .invalidRequest, .notFound, .methodNotAllowed, .requestTimeout, .bodyTooLarge, .uriTooLong, .expectationFailed,
        .misdirectedRequest, .headersTooLarge, .internalError, .notImplemented, .overloaded, .httpVersionNotSupported,
    ]
}

extension GraphError {
    /// Seconds until another try makes sense, if Graph did not say.
    fileprivate var retryAfterSeconds: Int? {
        if isThrottling { return GraphLimits.defaultRetryAfterSeconds }
        return isTransient ? 5 : nil
    }

    /// The title, and the status code of the answer: 403 and 404 where the person or the app is at fault, 429 where Graph is
    /// asked too often, 503 where it is down, 504 where it cannot be reached or is too slow, 502 where its answer or our
    /// configuration is no good (RFC 9110 section 15).
    fileprivate var answer: (status: Int, title: String) {
        switch self {
        case .accessTokenRefused: (502, "Graph refuses the app's access token")
        case .appNotInstalled: (404, "The person is not logged in to the app")
        case .userCheckpointed: (403, "The person's account is at a checkpoint")
        case .passwordChanged: (403, "The person changed their password")
        case .sessionExpired: (403, "The person's session has expired")
        case .userNotConfirmed: (403, "The person's account is not confirmed")
        case .sessionInvalidated: (403, "The person's session was ended")
        case .roleMissing: (403, "The person lacks a role")
        case .sessionEnded: (403, "The session is over")
        case .capabilityMissing: (403, "The app lacks a capability")
        case .permissionDenied: (403, "Graph denies the app this")
        case .permissionNotGranted: (403, "The permission is not granted")
        case .policyBlocked: (403, "Facebook blocks this by its policies")
        case .invalidParameter: (502, "Graph refuses a parameter")
        case .unknownUser: (404, "Graph knows no such person")
        case .duplicateRequest: (409, "Graph was asked the same before")
        case .appThrottled: (429, "The app asks Graph too often")
        case .userThrottled: (429, "Graph was asked about the person too often")
        case .pageThrottled: (429, "Graph was asked about a page too often")
        case .appLimitReached: (429, "The app has reached its limit at Graph")
        case .rateLimited: (429, "Graph's rate limit is reached")
        case .unknownFault: (503, "Graph failed")
        case .unavailable: (503, "Graph is out of service")
        case .other: (502, "Graph answered an error")
        case .refused: (502, "Graph did not do it")
        case .unreadableAnswer: (502, "Graph's answer cannot be read")
        case .unreachable: (504, "Graph cannot be reached")
        case .timedOut: (504, "Graph did not answer in time")
        case .tlsFailed: (502, "The connection to Graph cannot be secured")
        }
    }
}
