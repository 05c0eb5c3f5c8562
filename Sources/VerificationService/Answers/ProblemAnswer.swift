internal import Graph
internal import HTTP1

/// Writes a problem as an answer: `application/problem+json` (RFC 9457) and the fields its status needs.
enum ProblemAnswer {
    static func write(_ problem: Problem, requestID: [UInt8], to response: inout HTTPResponse) {
        response.status = UInt16(problem.code.status)
        response.addField("Content-Type: application/problem+json")
        response.addField("Cache-Control: no-store")
        addChallenge(problem, to: &response)
        if let seconds = problem.retryAfterSeconds { response.addField("Retry-After", String(seconds)) }
        response.addField("X-Request-Id", requestID)
        writeBody(problem, requestID: requestID, to: &response.body)
    }

    /// RFC 6750 section 3: a 401 carries a challenge, and `error` says which; none where no credentials came.
    private static func addChallenge(_ problem: Problem, to response: inout HTTPResponse) {
        switch problem.code {
        case .rejectedToken: response.addField("WWW-Authenticate: Bearer error=\"invalid_token\"")
        case .missingToken: response.addField("WWW-Authenticate: Bearer realm=\"limited-login\"")
        case .insufficientScope:
            let scope = problem.scope.map { ", scope=\"\($0)\"" } ?? ""
            response.addField("WWW-Authenticate", "Bearer error=\"insufficient_scope\"\(scope)")
        default: return
        }
    }

    static func writeBody(_ problem: Problem, requestID: [UInt8], to body: inout [UInt8]) {
        JSONWriter.raw("{\"type\":\"urn:limited-login:problem:", to: &body)
        body.append(contentsOf: problem.code.text.utf8)
        JSONWriter.raw("\",", to: &body)
        JSONWriter.member("title", problem.code.title, to: &body)
        JSONWriter.raw(",\"status\":", to: &body)
        JSONWriter.integer(problem.code.status, to: &body)
        JSONWriter.raw(",", to: &body)
        JSONWriter.member("detail", problem.detail, to: &body)
        JSONWriter.raw(",", to: &body)
        JSONWriter.member("code", problem.code.text, to: &body)
        if let claim = problem.claim {
            JSONWriter.raw(",", to: &body)
            JSONWriter.member("claim", claim, to: &body)
        }
        if let name = problem.graph?.failure.traceID {
            JSONWriter.raw(",", to: &body)
            JSONWriter.member("fbtrace_id", name, to: &body)
        }
        JSONWriter.raw(",\"request_id\":", to: &body)
        JSONWriter.string(requestID.span, to: &body)
        JSONWriter.raw("}", to: &body)
    }
}
