import LLTestSupport
import Testing

@testable import LLService

@Suite("A login after a revocation at Graph with a lost or bad answer", .live)
struct LostGraphAnswerTests {
    private static let list = "/users/2954873201847263/permissions"

    /// Graph's answer by the request's number, the code of the service's answer, and `ends`: true if later tokens are
    /// refused.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let ends: Bool
        let code: String
        let script: @Sendable (_ number: Int, ScriptedPeer) throws -> Void

        init(
            _ name: String,
            ends: Bool,
            _ code: String,
            _ script: @escaping @Sendable (_ number: Int, ScriptedPeer) throws -> Void
        ) {
            (testDescription, self.ends, self.code, self.script) = (name, ends, code, script)
        }

        /// A service with a Graph that answers in this way.
        func service() async throws -> GraphService {
            let time = code == "graph_timeout" ? GraphService.impatience : .seconds(20)
            return try await GraphService(callTimeout: time) { request, peer in try script(request.number, peer) }
        }

        /// Graph answers with this status and error.
        static func error(_ status: String, _ numbers: String, ends: Bool, _ code: String) -> Case {
            .init("\(status) with \(numbers)", ends: ends, code) { _, peer in
                try peer.answer(status: status, "{\"error\":{\(numbers)}}")
            }
        }

        static let gone = "\"code\":190,\"error_subcode\":458"

        static let unknown: [Case] = [
            .error("400 Bad Request", gone, ends: true, "graph_app_not_installed"),
            .error("500 Internal Server Error", "\"code\":1", ends: true, "graph_unknown_fault"),
            .error("400 Bad Request", "\"code\":9,\"is_transient\":true", ends: true, "graph_unavailable"),
            .init("no answer in time", ends: true, "graph_timeout") { _, peer in peer.waitUntilClosed() },
            .init("a reset", ends: true, "graph_unreachable") { _, peer in peer.reset() },
            .init("a cut body", ends: true, "graph_unreachable") { _, peer in
                try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntr")
            },
            .init("200 and a page", ends: true, "graph_unreadable_answer") { _, peer in try peer.answer("<html>") },
            .init("503 alone", ends: true, "graph_unavailable") { _, peer in
                try peer.answer(status: "503 Service Unavailable", "")
            },
        ]

        static let refused: [Case] = [
            .error("400 Bad Request", "\"code\":190", ends: false, "graph_access_token_refused"),
            .error("400 Bad Request", "\"code\":100,\"error_subcode\":33", ends: false, "graph_unknown_user"),
            .error("400 Bad Request", "\"code\":4", ends: false, "graph_app_throttled"),
            .init("false", ends: false, "graph_refused") { _, peer in try peer.answer("false") },
            .init("429 alone", ends: false, "graph_rate_limited") { _, peer in
                try peer.answer(status: "429 Too Many Requests", "")
            },
            .init("a redirect", ends: false, "graph_unreadable_answer") { _, peer in
                try peer.answer(status: "302 Found", fields: ["Location: /"], "")
            },
            .init("404 and a page", ends: false, "graph_unreadable_answer") { _, peer in
                try peer.answer(status: "404 Not Found", "<html>")
            },
        ]
    }

    /// The code of the answer to a request that ends the login, and the code of its token's verdict afterwards.
    private static func outcome(_ service: GraphService, _ method: String, _ target: String) throws -> [String?] {
        let token = try Tokens.mint(Tokens.claims())
        let body = target == "/uninstall" ? "{\"id_token\":\"\(token)\"}" : ""
        let answer = try service.answer(method, target, body: body)
        let verify = try service.answer("POST", "/verify", body: "{\"id_token\":\"\(token)\",\"nonce\":\"n-1\"}")
        return [answer.code, verify.code]
    }

    @Test(
        "The login is over if Graph may have ended it, and continues if Graph refused",
        arguments: Case.unknown + Case.refused,
        [("DELETE", Self.list), ("POST", "/uninstall")]
    )
    func answers(_ answer: Case, _ request: (method: String, target: String)) async throws {
        let service = try await answer.service()
        let outcome = try Self.outcome(service, request.method, request.target)
        #expect(outcome == [answer.code, answer.ends ? "login_revoked" : nil])
    }

    @Test(
        "The login is over if the first attempt may have ended it, whatever Graph answers to the second",
        arguments: [
            (Case.gone, "graph_app_not_installed"), ("\"code\":190", "graph_access_token_refused"),
            ("\"code\":506", "graph_duplicate_request"),
        ]
    )
    func secondAttempt(_ numbers: String, _ code: String) async throws {
        let service = try await GraphService { request, peer in
            try peer.answer(
                status: request.number == 1 ? "500 Internal Server Error" : "400 Bad Request",
                request.number == 1 ? "" : "{\"error\":{\(numbers)}}"
            )
        }
        #expect(try Self.outcome(service, "DELETE", Self.list) == [code, "login_revoked"])
        #expect(service.graph.requestCount == 2)
    }

    @Test("The login continues if the request was never sent: no connection, no trust, or no time left")
    func unsent() async throws {
        let closed = try await GraphService()
        closed.graph.stop()
        #expect(try Self.outcome(closed, "DELETE", Self.list) == ["graph_unreachable", nil])
        let untrusted = try await GraphService(manner: .tls(try TestCertificates.shared.get().untrusted))
        #expect(try Self.outcome(untrusted, "DELETE", Self.list) == ["graph_tls_failed", nil])
        let late = try await GraphService(callTimeout: .zero)
        #expect(try Self.outcome(late, "DELETE", Self.list) == ["graph_timeout", nil])
        #expect(late.graph.requestCount == 0)
    }

    @Test("The login continues if only one permission was to be revoked, whatever the answer", arguments: Case.unknown)
    func onePermission(_ answer: Case) async throws {
        let service = try await answer.service()
        #expect(try Self.outcome(service, "DELETE", Self.list + "/email") == [answer.code, nil])
    }
}
