package import LLGraph
internal import LLHTTP1
internal import LLHTTPServer
package import LimitedLogin

/// One refusal: the content of its `application/problem+json` (RFC 9457).
package struct Problem: Error, Sendable, Equatable {
    package let code: ProblemCode
    /// One sentence on this occurrence; never a token, a nonce or a claim's value before the signature is good.
    package let detail: String
    /// The remedy, in one sentence without a word of the client's.
    package let hint: String
    /// The claim at fault, if it is one.
    package let claim: String?
    /// Seconds after which another try makes sense (RFC 9110 section 10.2.3); nil if none does.
    package let retryAfterSeconds: Int?
    /// The scope that would be enough (RFC 6750 section 3), separated by spaces; nil for any other problem.
    package let scope: String?
    /// Graph's error, if that is the problem.
    package let graph: GraphFailure?
    /// The scheme that the credentials came under, whose challenge a 401 carries.
    var scheme = AuthScheme.bearer
    /// Whether a caller that is refused presented credentials: without any its challenge has no error (RFC 6750 section 3).
    var hasCredentials = false

    /// - Parameters:
    ///   - hint: the remedy; by default the code's own.
    ///   - retryAfter: seconds; by default the code's suggestion.
    package init(
        _ code: ProblemCode,
        _ detail: String,
        hint: String? = nil,
        claim: String? = nil,
        retryAfter: Int? = nil,
        scope: String? = nil,
        graph: GraphFailure? = nil
    ) {
        self.code = code
        self.detail = detail
        self.hint = hint ?? code.hint
        self.claim = claim
        retryAfterSeconds = retryAfter ?? code.retryAfterSeconds
        self.scope = scope
        self.graph = graph
    }

    init(_ failure: HTTPFailure) {
        self.init(ProblemCode(serverStatus: Int(failure.status)), failure.sentence)
    }

    init(_ rejection: DPoPRejection) {
        self.init(rejection == .cannotVerify ? .internalError : .invalidDPoPProof, rejection.description)
    }

    /// - Parameter token: the refused one; a mistake in copying it is named.
    package init(_ refusal: Refusal, of token: Span<UInt8> = Span()) {
        self.init(ProblemCode(refusal.kind), refusal.detail, hint: refusal.hint(for: token), claim: refusal.claim)
    }

    /// The problem of a call that failed at Graph, or on the way there.
    package init(_ failure: GraphFailure) {
        self.init(.graph(failure.error), failure.sentence, retryAfter: failure.retryAfterSeconds, graph: failure)
    }
}

/// How a route tells problems, besides RFC 9457.
enum ProblemDialect: Sendable {
    case plain
    /// OAuth's `error` and `error_description` beside the other members (RFC 6749 section 5.2).
    case introspection
    /// The same, where a refused subject token is a bad request (RFC 8693 section 2.2.2), and every outage 503.
    case exchange

    func status(of code: ProblemCode) -> Int {
        guard self == .exchange else { return code.status }
        return switch code {
        case .rejectedToken, .accessTokenNotAllowed, .accessTokenInvalid, .accessTokenExpired, .accessTokenRevoked: 400
        case .graph: 503
        default: code.status
        }
    }

    /// OAuth's code; nil for a route that is none of OAuth's.
    func error(of code: ProblemCode) -> StaticString? {
        guard self != .plain else { return nil }
        return switch (code, status(of: code)) {
        case (.invalidTarget, _): "invalid_target"
        case (.unsupportedGrantType, _): "unsupported_grant_type"
        case (_, 401): "invalid_client"
        case (_, 503), (.keyChecksExhausted, _), (.tooManyAccessTokens, _): "temporarily_unavailable"
        default: "invalid_request"
        }
    }
}

/// Writes a problem as an answer: `application/problem+json` (RFC 9457) and the fields its status needs.
enum ProblemAnswer {
    static func write(
        _ problem: Problem,
        in dialect: ProblemDialect = .plain,
        requestID: [UInt8],
        to response: inout HTTPResponse
    ) {
        let status = dialect.status(of: problem.code)
        response.status = UInt16(status)
        response.addField("Content-Type: application/problem+json")
        response.addField("Cache-Control: no-store")
        if status == problem.code.status { addChallenge(problem, dialect != .plain, to: &response) }
        if let seconds = problem.retryAfterSeconds ?? (status == 503 ? outageSeconds : nil) {
            response.addField("Retry-After", String(seconds))
        }
        response.addField("X-Request-Id", requestID)
        writeBody(problem, in: dialect, requestID: requestID, to: &response.body)
    }

    /// When to try again after an outage that names no time.
    private static let outageSeconds = 5

    /// RFC 6750 section 3: a 401 carries a challenge, and `error` says which; none where no credentials came.
    private static func addChallenge(_ problem: Problem, _ speaksOAuth: Bool, to response: inout HTTPResponse) {
        let scheme = problem.scheme.rawValue
        switch problem.code {
        case .rejectedToken, .accessTokenNotAllowed, .accessTokenInvalid, .accessTokenExpired, .accessTokenRevoked,
            .invalidSignedPlayerInfo:
            // `code` reaches the client through gateways that keep the field and drop the body.
            response.addField("WWW-Authenticate", "\(scheme) error=\"invalid_token\", code=\"\(problem.code.text)\"")
        case .unauthorizedClient:
            let error = problem.hasCredentials ? ", error=\"invalid_token\"" : ""
            response.addField("WWW-Authenticate", "Bearer realm=\"limited-login\"\(error)")
            // RFC 6749 section 5.2: OAuth clients authenticate by Basic, so a challenge of that scheme stands beside it. Other
            // routes keep to one challenge, as RFC 9110 section 11.6.1 demands: on Basic a browser asks for a password, and
            // Linux's URLSession never ends.
            if speaksOAuth { response.addField("WWW-Authenticate: Basic realm=\"limited-login\"") }
        case .missingToken: response.addField("WWW-Authenticate: Bearer realm=\"limited-login\"")
        // RFC 9449 section 7.1.
        case .invalidDPoPProof:
            response.addField("WWW-Authenticate: DPoP error=\"invalid_dpop_proof\", algs=\"ES256\"")
        case .insufficientScope:
            let scope = problem.scope.map { ", scope=\"\($0)\"" } ?? ""
            response.addField("WWW-Authenticate", "\(scheme) error=\"insufficient_scope\"\(scope)")
        default: return
        }
    }

    static func writeBody(
        _ problem: Problem,
        in dialect: ProblemDialect = .plain,
        requestID: [UInt8],
        to body: inout [UInt8]
    ) {
        JSONWriter.raw("{\"type\":\"urn:limited-login:problem:", to: &body)
        body.append(contentsOf: problem.code.text.utf8)
        JSONWriter.raw("\"", to: &body)
        JSONWriter.member("title", problem.code.title, to: &body)
        JSONWriter.member("status", dialect.status(of: problem.code), to: &body)
        JSONWriter.member("detail", problem.detail, to: &body)
        JSONWriter.member("hint", problem.hint, to: &body)
        JSONWriter.member("code", problem.code.text, to: &body)
        JSONWriter.member("claim", problem.claim, to: &body)
        JSONWriter.member("fbtrace_id", problem.graph?.traceID, to: &body)
        if let error = dialect.error(of: problem.code) {
            // RFC 6749 section 5.2. The title is a constant of ASCII, as `error_description` must be.
            JSONWriter.member("error", "\(error)", to: &body)
            JSONWriter.member("error_description", problem.code.title, to: &body)
        }
        JSONWriter.name("request_id", to: &body)
        JSONWriter.string(requestID.span, to: &body)
        JSONWriter.raw("}", to: &body)
    }
}
