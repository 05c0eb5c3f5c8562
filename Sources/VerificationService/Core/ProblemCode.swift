package import Graph
package import LimitedLogin

/// Every stable error code of the service's answers; part of the API, listed in `openapi.json`.
package enum ProblemCode: Sendable, Hashable {
    case rejectedToken(TokenRejection.Code)
    case graph(GraphError)
    case accessTokenNotAllowed
    case accessTokenInvalid
    case accessTokenExpired
    case accessTokenRevoked
    case invalidRequest
    case invalidNonce
    case invalidPermission
    case unknownApp
    case unauthorizedClient
    case missingToken
    case invalidDPoPProof
    case insufficientScope
    case invalidSignedRequest
    case notFound
    case methodNotAllowed
    case requestTimeout
    case bodyTooLarge
    case uriTooLong
    case unsupportedMediaType
    case expectationFailed
    case misdirectedRequest
    case headersTooLarge
    case internalError
    case notImplemented
    case keysUnavailable
    case replayStoreUnavailable
    case callbackNotDelivered
    case overloaded
    case draining
    case httpVersionNotSupported

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
        TokenRejection.Code.allCases.map { ProblemCode($0) }.filter {
            if case .rejectedToken = $0 { true } else { false }
        } + ofAccessTokens + [
            .invalidRequest, .invalidNonce, .invalidPermission, .unknownApp, .unauthorizedClient, .missingToken,
            .invalidDPoPProof, .insufficientScope, .invalidSignedRequest, .notFound, .methodNotAllowed, .requestTimeout,
            .bodyTooLarge, .uriTooLong, .unsupportedMediaType, .expectationFailed,
            .misdirectedRequest, .headersTooLarge, .internalError, .notImplemented, .keysUnavailable,
            .replayStoreUnavailable, .callbackNotDelivered,
            .overloaded, .draining, .httpVersionNotSupported,
        ] + GraphError.allCases.map { .graph($0) }

    /// The code as clients compare it.
    package var text: String {
        switch self {
        case .rejectedToken(let code): code.rawValue
        case .graph(let error): error.rawValue
        case .accessTokenNotAllowed: "access_token_not_allowed"
        case .accessTokenInvalid: "access_token_invalid"
        case .accessTokenExpired: "access_token_expired"
        case .accessTokenRevoked: "access_token_revoked"
        case .invalidRequest: "invalid_request"
        case .invalidNonce: "invalid_nonce"
        case .invalidPermission: "invalid_permission"
        case .unknownApp: "unknown_app"
        case .unauthorizedClient: "unauthorized_client"
        case .missingToken: "missing_token"
        case .invalidDPoPProof: "invalid_dpop_proof"
        case .insufficientScope: "insufficient_scope"
        case .invalidSignedRequest: "invalid_signed_request"
        case .notFound: "not_found"
        case .methodNotAllowed: "method_not_allowed"
        case .requestTimeout: "request_timeout"
        case .bodyTooLarge: "body_too_large"
        case .uriTooLong: "uri_too_long"
        case .unsupportedMediaType: "unsupported_media_type"
        case .expectationFailed: "expectation_failed"
        case .misdirectedRequest: "misdirected_request"
        case .headersTooLarge: "headers_too_large"
        case .internalError: "internal_error"
        case .notImplemented: "not_implemented"
        case .keysUnavailable: "keys_unavailable"
        case .replayStoreUnavailable: "replay_store_unavailable"
        case .callbackNotDelivered: "callback_not_delivered"
        case .overloaded: "overloaded"
        case .draining: "draining"
        case .httpVersionNotSupported: "http_version_not_supported"
        }
    }

    /// The status code of the answer (RFC 9110 section 15, RFC 6585).
    package var status: Int {
        switch self {
        case .graph(let error): error.status
        case .rejectedToken, .unauthorizedClient, .missingToken, .invalidDPoPProof: 401
        case .accessTokenNotAllowed, .accessTokenInvalid, .accessTokenExpired, .accessTokenRevoked: 401
        case .insufficientScope, .invalidSignedRequest: 403
        case .invalidRequest, .invalidNonce, .invalidPermission, .unknownApp: 400
        case .notFound: 404
        case .methodNotAllowed: 405
        case .requestTimeout: 408
        case .bodyTooLarge: 413
        case .uriTooLong: 414
        case .unsupportedMediaType: 415
        case .expectationFailed: 417
        case .misdirectedRequest: 421
        case .headersTooLarge: 431
        case .internalError: 500
        case .notImplemented: 501
        case .keysUnavailable, .replayStoreUnavailable, .callbackNotDelivered, .overloaded, .draining: 503
        case .httpVersionNotSupported: 505
        }
    }

    /// When another try makes sense, where nothing better is known; nil where the same request would fail again.
    var retryAfterSeconds: Int? {
        switch self {
        case .keysUnavailable: 2
        case .graph(let error): error.retryAfterSeconds
        case .replayStoreUnavailable, .overloaded, .draining: 1
        case .callbackNotDelivered: 60
        default: nil
        }
    }

    /// What went wrong, the same for every occurrence (RFC 9457 section 3.1.3).
    package var title: String {
        switch self {
        case .rejectedToken(.invalidAudience), .rejectedToken(.subjectMismatch), .rejectedToken(.tokenReplayed),
            .rejectedToken(.loginRevoked):
            "The token is refused"
        case .rejectedToken: "The id token is refused"
        case .accessTokenNotAllowed: "Access tokens are not accepted"
        case .accessTokenInvalid, .accessTokenExpired, .accessTokenRevoked: "The access token is refused"
        case .graph(let error): error.title
        case .invalidRequest: "The request is malformed"
        case .invalidNonce: "The nonce is malformed"
        case .invalidPermission: "A permission is outside Limited Login's scope"
        case .unknownApp: "The app id is not configured"
        case .unauthorizedClient: "The caller is not authorized"
        case .missingToken: "There is no bearer token"
        case .invalidDPoPProof: "The DPoP proof is refused"
        case .insufficientScope: "The token does not show what is needed"
        case .invalidSignedRequest: "The signed request is refused"
        case .notFound: "There is nothing at this path"
        case .methodNotAllowed: "The method is not allowed at this path"
        case .requestTimeout: "The request did not arrive in time"
        case .bodyTooLarge: "The body is too large"
        case .uriTooLong: "The request target is too long"
        case .unsupportedMediaType: "The body's media type is not supported"
        case .expectationFailed: "The expectation cannot be met"
        case .misdirectedRequest: "This server does not answer for that host"
        case .headersTooLarge: "The header section is too large"
        case .internalError: "The service failed"
        case .notImplemented: "The method or transfer coding is not implemented"
        case .keysUnavailable: "The issuer's keys are not available"
        case .replayStoreUnavailable: "The memory of what was used or revoked is not available"
        case .callbackNotDelivered: "The app's backend could not be told"
        case .overloaded: "The service is overloaded"
        case .draining: "The service is stopping"
        case .httpVersionNotSupported: "The HTTP version is not supported"
        }
    }

    /// The code that fits a status that the HTTP server itself decided on.
    package init(serverStatus status: Int) {
        switch status {
        case 408: self = .requestTimeout
        case 413: self = .bodyTooLarge
        case 414: self = .uriTooLong
        case 415: self = .unsupportedMediaType
        case 417: self = .expectationFailed
        case 421: self = .misdirectedRequest
        case 431: self = .headersTooLarge
        case 500: self = .internalError
        case 501: self = .notImplemented
        case 503: self = .overloaded
        case 505: self = .httpVersionNotSupported
        case 405: self = .methodNotAllowed
        default: self = .invalidRequest
        }
    }
}

extension ProblemCode {
    /// Those of calls that failed at Graph.
    static let ofGraph: [ProblemCode] = GraphError.allCases.map { .graph($0) }

    /// Those of questions about an access token that failed at Graph: nothing is the person's or the caller's fault there.
    static let ofGraphAboutAccessTokens = ofGraph.filter { $0.status == 429 || $0.status >= 500 }

    /// Those of refused access tokens alone.
    static let ofAccessTokens: [ProblemCode] = [
        .accessTokenNotAllowed, .accessTokenInvalid, .accessTokenExpired, .accessTokenRevoked,
    ]

    /// Those of refused tokens.
    static var ofTokens: [ProblemCode] {
        all.filter { if case .rejectedToken = $0 { true } else { false } }
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

    /// Those of Facebook's callbacks.
    static let ofCallbacks: [ProblemCode] = [
        .invalidSignedRequest, .unsupportedMediaType, .callbackNotDelivered, .replayStoreUnavailable,
    ]

    /// What any path may answer: a request that cannot be read, a path or method that is not there, an overload.
    static let ofAnyPath: [ProblemCode] = [
        .invalidRequest, .notFound, .methodNotAllowed, .requestTimeout, .bodyTooLarge, .uriTooLong, .expectationFailed,
        .misdirectedRequest, .headersTooLarge, .internalError, .notImplemented, .overloaded, .httpVersionNotSupported,
    ]
}
