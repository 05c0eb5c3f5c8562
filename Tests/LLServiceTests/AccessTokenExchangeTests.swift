import LLHTTP
import LLStores
import LLTestSupport
import Testing

@testable import LLService

@Suite("POST /token with an access token", .live)
struct AccessTokenExchangeTests {
    private static func exchange(_ service: GraphService, _ more: String = "", token: String = GraphStory.token) throws
        -> TestResponse
    {
        try service.exchange(OwnTokenTests.body(token, String(more.dropFirst()), type: OwnTokenTests.accessToken))
    }

    private static func service(_ script: @escaping ScriptedIssuer.Script) async throws -> GraphService {
        try await GraphService(gateway: GatewaySettings(), tokens: try OwnTokens.settings(), script: script)
    }

    @Test("/token exchanges a token that Graph confirms for one that /auth accepts, with the chosen claims")
    func exchanged() async throws {
        let service = try await Self.service(GraphStory.script())
        let answer = try Self.exchange(service, "&subject=\(GraphStory.user)")
        #expect(answer.status == 200, "\(answer.text)")
        let token = try #require(answer.object["access_token"] as? String)
        let auth = try service.answer("GET", "/auth?permissions=email", fields: ["Authorization: Bearer \(token)"])
        #expect(auth.status == 200, "\(auth.text)")
        #expect(auth["x-auth-subject"] == GraphStory.user && auth["x-auth-email"] == "zoe@example.com")
        #expect(service.registry.render().contains("limited_login_exchanges_total{outcome=\"issued\"} 1"))
    }

    @Test("A refusal is 400 with the code of /verify; every failure of Graph is 503")
    func refusals() async throws {
        let service = try await Self.service(GraphStory.script())
        let cases: [(String, String, String)] = [
            ("&subject=1", GraphStory.token, "subject_mismatch"), ("&nonce=n", GraphStory.token, "invalid_request"),
            ("&raw_nonce=n&auth_nonce=true", GraphStory.token, "invalid_request"),
            ("&auth_nonce=true", GraphStory.token, "invalid_request"),
            ("&key_thumbprint=x", GraphStory.token, "invalid_request"), ("", "short", "access_token_invalid"),
            ("&app_id=7", GraphStory.token, "unknown_app"), ("&audience=x", GraphStory.token, "invalid_target"),
        ]
        for (more, token, code) in cases {
            let answer = try Self.exchange(service, more, token: token)
            #expect(answer.status == 400 && answer.code == code, "\(more): \(answer.text)")
            #expect(answer.text.contains("\"error\":\""), "\(answer.text)")
        }
        let down = try await Self.service { _, peer in
            try peer.answerAndStay(status: "400 Bad Request", GraphStory.error(4, "limit"))
        }
        let answer = try Self.exchange(down)
        #expect(answer.status == 503 && answer["retry-after"] != nil, "\(answer.text)")
        #expect(answer.text.contains(#""error":"temporarily_unavailable""#))
    }

    @Test("After a callback a token without an issue time still gives one that is good", arguments: [-600, 2])
    func afterCallback(seconds: Int64) async throws {
        let now = WallClock.unixSeconds()
        let data = GraphStory.data([("issued_at", nil), ("expires_at", "\(now + 4_200)")])
        let service = try await Self.service(GraphStory.script(data))
        service.core.revoke(GraphStory.user, at: now + seconds, kind: .callback)
        let answer = try Self.exchange(service)
        #expect(answer.status == 200, "\(answer.text)")
        let token = try #require(answer.object["access_token"] as? String)
        #expect(try service.answer("GET", "/auth", fields: ["Authorization: Bearer \(token)"]).status == 200)
    }
}
