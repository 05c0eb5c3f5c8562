import LLTestSupport
import Testing

@testable import LLService

@Suite("A login after a revocation at Graph with a lost or bad answer", .live)
struct LostGraphAnswerTests {
    private static let list = "/users/2954873201847263/permissions"

    /// Graph's answer, the code of the service's answer, and `ends`: true if later tokens are refused. The answers of
    /// the second kind have their table in GraphClientTests.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let ends: Bool
        let code: String
        let script: @Sendable (ScriptedPeer) throws -> Void

        init(_ code: String, ends: Bool, _ name: String, _ script: @escaping @Sendable (ScriptedPeer) throws -> Void) {
            (testDescription, self.ends, self.code, self.script) = (name, ends, code, script)
        }

        /// A service with a Graph that answers in this way.
        func service() async throws -> GraphService {
            let time = code == "graph_timeout" ? GraphService.impatience : .seconds(20)
            return try await GraphService(callTimeout: time) { _, peer in try script(peer) }
        }

        static let all: [Case] = [
            .init("graph_timeout", ends: true, "no answer in time") { $0.waitUntilClosed() },
            .init("graph_unreachable", ends: true, "a reset") { $0.reset() },
            .init("graph_unreachable", ends: true, "a cut body") {
                try $0.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntr")
            },
            .init("graph_app_not_installed", ends: true, "there is no such login") {
                try $0.answer(status: "400 Bad Request", #"{"error":{"code":190,"error_subcode":458}}"#)
            },
            .init("graph_unknown_user", ends: false, "there is no such user") {
                try $0.answer(status: "400 Bad Request", #"{"error":{"code":100,"error_subcode":33}}"#)
            },
        ]
    }

    /// The code of the answer to a request that ends the login, and the code of its token's verdict afterwards.
    private static func outcome(_ service: GraphService, _ method: String, _ target: String) throws -> [String?] {
        let token = try Tokens.mint(Tokens.claims())
        let body = target == "/uninstall" ? "{\"id_token\":\"\(token)\"}" : ""
        let answer = try service.answer(method, target, body: body)
        return [answer.code, try service.verify(token).code]
    }

    @Test("The login is over if Graph may have ended it, not if it refused or kept the rest", arguments: Case.all)
    func answers(_ answer: Case) async throws {
        for (method, target, endsLogin) in [
            ("DELETE", Self.list, true), ("POST", "/uninstall", true), ("DELETE", Self.list + "/email", false),
        ] {
            let outcome = try Self.outcome(try await answer.service(), method, target)
            #expect(outcome == [answer.code, answer.ends && endsLogin ? "login_revoked" : nil], "\(method) \(target)")
        }
    }

    @Test("The login continues if the request was never sent: no connection, no trust, or no time left")
    func unsent() async throws {
        let closed = try await GraphService()
        closed.graph.stop()
        #expect(try Self.outcome(closed, "DELETE", Self.list) == ["graph_unreachable", nil])
        let untrusted = try await GraphService(manner: .tls(try TestCertificates.shared.get().untrusted))
        #expect(try Self.outcome(untrusted, "DELETE", Self.list) == ["graph_tls_failed", nil])
        let late = try await GraphService(callTimeout: .zero)
        #expect(try Self.outcome(late, "DELETE", Self.list) == ["graph_timeout", nil] && late.graph.requestCount == 0)
    }
}
