internal import LLHTTP
internal import LLJOSE
package import LimitedLogin

extension Rejection {
    convenience init(_ failure: HTTPRefusal) {
        self.init(.ofServer(Int(failure.status)), failure.rawValue)
    }

    /// The remedy, with the service's settings for what the library names between grave accents.
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

    /// The reason that the log tells of a refused callback, for the operator: Facebook shows the answer to no person.
    var loggedReason: String? { code == .invalidSignedRequest ? detail : nil }
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
    /// The same as `introspection`, but a refused subject token is a bad request (RFC 8693 section 2.2.2), and every
    /// outage is 503.
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

/// Writes a problem as an answer: `application/problem+json` (RFC 9457) and the header fields that its status needs.
enum ProblemAnswer {
    static func write(
        _ problem: Rejection,
        in dialect: ProblemDialect,
        requestID: [UInt8],
        to response: inout HTTPResponse
    ) {
        let status = dialect.status(of: problem.code)
        response.status = UInt16(status)
        response.addField("Content-Type: application/problem+json")
        response.addField("Cache-Control: no-store")
        if status == problem.code.status { addChallenge(problem, dialect != .plain, to: &response) }
        if let seconds = problem.context.retryAfterSeconds ?? (status == 503 ? outageSeconds : nil) {
            response.addField("Retry-After", String(seconds))
        }
        response.addField("X-Request-Id", requestID)
        writeBody(problem, in: dialect, requestID: requestID, to: &response.body)
    }

    /// The default `Retry-After` of an outage, in seconds.
    private static let outageSeconds = 5

    /// RFC 6750 section 3: a 401 has a challenge with `error`; without credentials in the request there is no `error`.
    private static func addChallenge(_ problem: Rejection, _ speaksOAuth: Bool, to response: inout HTTPResponse) {
        let scheme = problem.context.scheme
        switch problem.code {
        case let code where code.kind == .token:
            // Some gateways keep this field and drop the body, so `code` is in both.
            response.addField("WWW-Authenticate", "\(scheme) error=\"invalid_token\", code=\"\(code)\"")
        case .unauthorizedClient:
            let error = problem.context.hasCredentials ? ", error=\"invalid_token\"" : ""
            response.addField("WWW-Authenticate", "Bearer realm=\"limited-login\"\(error)")
            // RFC 6749 section 5.2: OAuth clients authenticate with Basic, so the answer has a challenge of that scheme
            // too. Other routes send one challenge (RFC 9110 section 11.6.1): a Basic challenge makes a browser ask for
            // a password, and URLSession on Linux hang.
            if speaksOAuth { response.addField("WWW-Authenticate: Basic realm=\"limited-login\"") }
        case .missingToken: response.addField("WWW-Authenticate: Bearer realm=\"limited-login\"")
        // RFC 9449 section 7.1.
        case .invalidDPoPProof:
            response.addField("WWW-Authenticate: DPoP error=\"invalid_dpop_proof\", algs=\"ES256\"")
        case .insufficientScope:
            let scope = problem.context.scope.map { ", scope=\"\($0)\"" } ?? ""
            response.addField("WWW-Authenticate", "\(scheme) error=\"insufficient_scope\"\(scope)")
        default: return
        }
    }

    static func writeBody(
        _ problem: Rejection,
        in dialect: ProblemDialect,
        requestID: [UInt8],
        to body: inout [UInt8]
    ) {
        JSONWriter.raw("{\"type\":\"urn:limited-login:problem:", to: &body)
        body.append(contentsOf: problem.code.rawValue.utf8)
        JSONWriter.raw("\"", to: &body)
        JSONWriter.member("title", problem.code.title, to: &body)
        JSONWriter.member("status", dialect.status(of: problem.code), to: &body)
        JSONWriter.member("detail", problem.detail, to: &body)
        JSONWriter.member("hint", problem.serviceHint, to: &body)
        JSONWriter.member("code", problem.code.rawValue, to: &body)
        JSONWriter.member("claim", problem.claim, to: &body)
        JSONWriter.member("fbtrace_id", problem.context.traceID, to: &body)
        if let error = dialect.error(of: problem.code) {
            // RFC 6749 section 5.2. `error_description` must be ASCII; the title is an ASCII constant.
            JSONWriter.member("error", "\(error)", to: &body)
            JSONWriter.member("error_description", problem.code.title, to: &body)
        }
        JSONWriter.name("request_id", to: &body)
        JSONWriter.string(requestID.span, to: &body)
        JSONWriter.raw("}", to: &body)
    }
}
