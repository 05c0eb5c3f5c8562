import LLService
import LLTestSupport
import LimitedLogin
import Testing

/// One scripted answer of Graph to a request for permissions, and the error that names it.
struct GraphAnswerCase: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let script: @Sendable (ScriptedPeer) throws -> Void
    let expected: Rejection.Code
    /// The waiting time that the answer asks for.
    var retryAfterSeconds: Int?
    /// The number of requests that the client sends.
    var attempts = 1

    static func error(
        _ code: Int,
        sub subcode: Int? = nil,
        status: String = "400 Bad Request",
        fields: [String] = [],
        more: String = "",
        _ expected: Rejection.Code,
        retryAfter: Int? = nil,
        attempts: Int = 1
    ) -> GraphAnswerCase {
        let member = subcode.map { ",\"error_subcode\":\($0)" } ?? ""
        let text =
            "{\"error\":{\"code\":\(code)\(member)\(more),\"message\":\"secret words\",\"type\":\"OAuthException\","
            + "\"fbtrace_id\":\"AbC-_123\"}}"
        return body(text, status: status, fields: fields, expected, retryAfter: retryAfter, attempts: attempts)
    }

    static func body(
        _ body: String,
        status: String = "200 OK",
        fields: [String] = [],
        _ expected: Rejection.Code = .graphUnreadableAnswer,
        retryAfter: Int? = nil,
        attempts: Int = 1
    ) -> GraphAnswerCase {
        GraphAnswerCase(
            testDescription: "\(status) \(fields.joined()) \(body.prefix(60))",
            script: { try $0.answerAndStay(status: status, fields: fields, body) },
            expected: expected,
            retryAfterSeconds: retryAfter,
            attempts: attempts
        )
    }

    static func raw(_ name: String, _ text: String, _ expected: Rejection.Code = .graphUnreadableAnswer) -> Self {
        Self(testDescription: name, script: { try $0.send(text) }, expected: expected)
    }

    static let all = sessions + permissions + throttling + transient + statuses + bodies + hostile

    static let sessions: [GraphAnswerCase] = [
        error(190, .graphAccessTokenRefused), error(190, sub: 458, .graphAppNotInstalled),
        error(190, sub: 459, .graphUserCheckpointed), error(190, sub: 460, .graphPasswordChanged),
        error(190, sub: 463, .graphSessionExpired), error(190, sub: 464, .graphUserNotConfirmed),
        error(190, sub: 467, .graphSessionInvalidated), error(190, sub: 492, .graphRoleMissing),
        error(190, sub: 490, .graphUserCheckpointed), error(101, .graphAccessTokenRefused),
        body(#"{"error":{"message":"Error validating client secret.","code":1}}"#, .graphAccessTokenRefused),
        error(102, .graphSessionEnded),
        // An error in the body counts with any status.
        error(190, sub: 460, status: "200 OK", .graphPasswordChanged),
    ]

    static let permissions: [GraphAnswerCase] = [
        error(3, .graphCapabilityMissing), error(10, status: "403 Forbidden", .graphPermissionDenied),
        error(200, status: "403 Forbidden", .graphPermissionNotGranted), error(299, .graphPermissionNotGranted),
        body(#"{"error":{"message":"API access blocked.","code":200}}"#, .graphPolicyBlocked), error(300, .graphError),
        error(100, .graphInvalidParameter), error(100, sub: 33, .graphUnknownUser),
        error(803, status: "404 Not Found", .graphUnknownUser), error(368, .graphPolicyBlocked),
        error(506, .graphDuplicateRequest), error(99_999, .graphError),
    ]

    static let throttling: [GraphAnswerCase] = [
        error(4, status: "403 Forbidden", .graphAppThrottled, retryAfter: 60),
        error(17, .graphUserThrottled, retryAfter: 60), error(32, .graphPageThrottled, retryAfter: 60),
        error(341, .graphAppLimitReached, retryAfter: 60), error(613, .graphRateLimited, retryAfter: 60),
        error(4, fields: ["Retry-After: 7"], .graphAppThrottled, retryAfter: 7),
        error(4, fields: ["Retry-After: 0"], .graphAppThrottled, retryAfter: 1),
        error(4, fields: ["Retry-After: 999999999"], .graphAppThrottled, retryAfter: 86_400),
        error(4, fields: ["Retry-After: Sat, 21 Nov 2026 10:00:00 GMT"], .graphAppThrottled, retryAfter: 60),
        body("slow down", status: "429 Too Many Requests", .graphRateLimited),
        body("", status: "429 Too Many Requests", fields: ["Retry-After: 9"], .graphRateLimited, retryAfter: 9),
        error(99_999, status: "429 Too Many Requests", .graphRateLimited, retryAfter: 60),
    ]

    static let transient: [GraphAnswerCase] = [
        error(1, status: "500 Internal Server Error", .graphUnknownFault, attempts: 3),
        error(2, status: "500 Internal Server Error", .graphUnavailable, attempts: 3),
        error(2, status: "503 Service Unavailable", fields: ["Retry-After: 3"], .graphUnavailable, retryAfter: 3),
        error(77_777, more: ",\"is_transient\":true", .graphUnavailable, attempts: 3),
        error(77_777, status: "500 X", .graphUnavailable, attempts: 3),
    ]

    static let statuses: [GraphAnswerCase] = [
        body("", status: "500 Internal Server Error", .graphUnavailable, attempts: 3),
        body("<html>bad gateway</html>", status: "502 Bad Gateway", .graphUnavailable, attempts: 3),
        body("{}", status: "503 Service Unavailable", .graphUnavailable, attempts: 3),
        body("{\"data\":[]}", status: "400 Bad Request"),
        body("", status: "302 Found", fields: ["Location: /elsewhere"]),
    ]

    static let bodies: [GraphAnswerCase] = [
        body(""), body("<!DOCTYPE html><title>Log in</title>"),
        body("{\"data\":[{\"permission\":\"email\",\"status\":\"granted\"}"),
        body("{\"data\":[],\"data\":[{\"permission\":\"email\",\"status\":\"granted\"}]}"), body("[]"), body("{}"),
        body("{\"data\":[{}]}"), body("{\"data\":[{\"permission\":1,\"status\":\"granted\"}]}"),
        body("{\"data\":[{\"permission\":\"email\",\"status\":true}]}"),
        body(#"{"data":[{"permission":"email","status":"granted"},{"permission":"email","status":"declined"}]}"#),
        body("{\"data\":[],\"paging\":{\"next\":\"https://graph.facebook.com/more\"}}"),
        body(String(repeating: "[", count: 60_000)), body("{\"error\":\"invalid_token\"}", .graphError),
        body("{\"error\":{}}", status: "400 Bad Request", .graphError),
        body("{\"error\":{\"code\":\"190\"}}", status: "400 Bad Request", .graphError),
        body("{\"error\":{\"code\":99999999999999999999}}", status: "400 Bad Request", .graphError),
        body("{\"error\":null}", .graphError),
    ]

    static let hostile: [GraphAnswerCase] = [
        raw("nothing", "", .graphUnreachable),
        raw("an answer cut off", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"data\":", .graphUnreachable),
        raw("both framings", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"),
        raw("a coded body", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"),
        raw("a body of 1 GB announced", "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n{"),
        endless("a body of 1 GB without a length", "HTTP/1.1 400 X\r\n\r\n", [UInt8](repeating: 0x20, count: 65_536)),
        endless("a head without end", "HTTP/1.1 200 OK\r\n", Array("X: \(String(repeating: "y", count: 56))\r\n".utf8)),
    ]

    private static func endless(_ name: String, _ head: String, _ piece: [UInt8]) -> GraphAnswerCase {
        GraphAnswerCase(
            testDescription: name,
            script: { try $0.repeatPiece(piece, head: head, total: 1 << 30) },
            expected: .graphUnreadableAnswer
        )
    }
}
