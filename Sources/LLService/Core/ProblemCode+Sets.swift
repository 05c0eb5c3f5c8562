internal import LLGraph
internal import LimitedLogin

extension ProblemCode {
    /// The properties of a code.
    struct Row {
        let text: String
        let status: Int
        let subject: Subject
        let title: String
        let hint: String
        let retryAfterSeconds: Int?

        init(
            _ text: String,
            _ status: Int,
            _ subject: Subject,
            _ title: String,
            hint: String,
            retryAfterSeconds: Int? = nil
        ) {
            (self.text, self.status, self.subject) = (text, status, subject)
            (self.title, self.hint, self.retryAfterSeconds) = (title, hint, retryAfterSeconds)
        }
    }
}

extension ProblemCode {
    static let ofGraph: [ProblemCode] = GraphError.allCases.map { .graph($0) }

    /// The codes for a failed question to Graph about an access token. Such a failure is never the person's or the
    /// caller's fault.
    static let ofGraphAboutAccessTokens = ofGraph.filter { $0.status == 429 || $0.status >= 500 }

    /// The codes of refused access tokens alone.
    static let ofAccessTokens: [ProblemCode] = [
        .accessTokenNotAllowed, .accessTokenInvalid, .accessTokenExpired, .accessTokenRevoked,
    ]

    /// The codes of both refused id tokens and refused access tokens.
    static let ofTokensOfEitherKind = TokenRejection.Code.allCases.filter(\.isOfAccessTokens).map {
        ProblemCode.rejectedToken($0)
    }

    /// The codes of a nonce that comes with a credential other than an id token.
    static let ofNonces = TokenRejection.Code.allCases.filter(\.isOfNonces).map { ProblemCode.rejectedToken($0) }

    static let ofTokens = TokenRejection.Code.allCases.map { ProblemCode.rejectedToken($0) }

    /// The codes of refused tokens that are tied to no login. Nonce, subject, device, access token and earlier use are
    /// not checked.
    static let ofUnboundTokens = TokenRejection.Code.allCases.filter { !$0.isOfLogin }.map {
        ProblemCode.rejectedToken($0)
    }

    /// The codes that any path may answer: a request that cannot be read, an unknown path or method, an overload.
    static let ofAnyPath: [ProblemCode] = [
        .invalidRequest, .notFound, .methodNotAllowed, .requestTimeout, .bodyTooLarge, .uriTooLong, .expectationFailed,
        .headersTooLarge, .internalError, .notImplemented, .overloaded, .httpVersionNotSupported,
    ]
}

extension ProblemCode {
    /// The row for a failed call to Graph (RFC 9110 section 15). The status is 403 or 404 if the person or the app is
    /// at fault, 429 if Graph is asked too often, 503 if it is down, 504 if it is unreachable or too slow, and 502 if
    /// its answer or our configuration is invalid.
    static func row(of error: GraphError) -> Row {
        let (status, title) = error.answer
        let subject: Subject = status == 429 || status >= 500 ? .outage : .caller
        return Row(
            error.rawValue,
            status,
            subject,
            title,
            hint: hint(status),
            retryAfterSeconds: error.retryAfterSeconds
        )
    }

    private static func hint(_ status: Int) -> String {
        switch status {
        case 403: "Look at the app in Facebook's App Dashboard, and have the person log in to the app again."
        case 404:
            "Take the person for logged out, and have them log in again; the id is the claim sub of a token for this app."
        case 409: "Do nothing: Graph is at it already."
        case 429: "Try again when Retry-After is over, and ask less often."
        case 502:
            "Look at app_secrets_file and the settings graph_… (config/README.md); the log has Graph's number at level debug."
        default: "Try again shortly, and keep users logged in."
        }
    }
}

extension GraphError {
    /// The default time until another attempt makes sense, in seconds, if Graph gave none.
    fileprivate var retryAfterSeconds: Int? {
        if isThrottling { return GraphLimits.defaultRetryAfterSeconds }
        return isTransient ? 5 : nil
    }

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

extension ProblemCode {
    /// The code for a status that the HTTP server itself chose.
    init(serverStatus status: Int) { self = Self.ofAnyPath.first { $0.status == status } ?? .invalidRequest }

    /// The rows of refusals by the HTTP layer.
    var rowOfHTTP: Row {
        switch self {
        case .uriTooLong:
            Row(
                "uri_too_long",
                414,
                .caller,
                "The request target is too long",
                hint: "Send the token in the body or in a field, not in the URL."
            )
        case .unsupportedMediaType:
            Row(
                "unsupported_media_type",
                415,
                .caller,
                "The body's media type is not supported",
                hint: "Declare the body as the field Accept of this answer says; with curl, -H 'Content-Type: …'."
            )
        case .expectationFailed:
            Row(
                "expectation_failed",
                417,
                .caller,
                "The expectation cannot be met",
                hint: "Leave out the field Expect, or send 100-continue in it."
            )
        case .headersTooLarge:
            Row(
                "headers_too_large",
                431,
                .caller,
                "The header section is too large",
                hint: "Send at most 100 fields of 32 KiB together; cookies are not needed here."
            )
        case .notImplemented:
            Row(
                "not_implemented",
                501,
                .caller,
                "The method or transfer coding is not implemented",
                hint: "Use the method and the codings of RFC 9110 and RFC 9112: POST, with Content-Length or chunked."
            )
        case .httpVersionNotSupported:
            Row(
                "http_version_not_supported",
                505,
                .caller,
                "The HTTP version is not supported",
                hint: "Speak HTTP/1.1; a gateway may speak HTTP/2 with its clients."
            )
        default:
            Row(
                "invalid_request",
                400,
                .caller,
                "The request is malformed",
                hint: "Mend the request as detail says; GET /openapi.json describes each route's."
            )
        }
    }
}
