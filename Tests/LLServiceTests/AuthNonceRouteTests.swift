import LLHTTP
import LLStores
import LLTestSupport
import Testing

@testable import LLService

/// A Graph that answers about a token, its person and the nonce of its login.
struct LoginStory {
    /// The answer about the login: the whole body if it begins with `{`, else the nonce.
    let nonce = Locked("")

    func script() -> ScriptedIssuer.Script {
        let nonce = nonce
        return { request, peer in
            guard request.path.contains("/access_token_info?") else { return try GraphStory.script()(request, peer) }
            let text = nonce.withLock { $0 }
            try peer.answerAndStay(text.hasPrefix("{") ? text : Self.info("\"\(text)\""))
        }
    }

    static func info(_ json: String) -> String {
        #"{"access_token":"x","token_type":"bearer","expires_in":5183999,"auth_type":"reauthenticate","auth_nonce":\#(json)}"#
    }
}

extension GraphService {
    /// The number of calls about a login.
    fileprivate var infoCount: Int { graph.requests.count { $0.path.contains("/access_token_info?") } }

    /// A store that is complete for nonces issued now, as after a minute of running.
    static func memory() -> ReplayStore { .memory(MemoryReplayStore(now: WallClock.unixMilliseconds() - 60_000)) }

    func issueNonce(_ body: String = "{}") throws -> String {
        try DecodedNonce(answer("POST", "/nonces", body: body)).nonce
    }
}

@Suite("POST /verify with an access token and the nonce of its login", .live)
struct AuthNonceRouteTests {
    private static let given = #""auth_nonce":true,"nonce":"n0NceOfThisLogin""#
    private static let issued = #""auth_nonce":true,"issued_nonce":true"#

    @Test("The nonce of the login is requested last, with the token alone, and answered")
    func accepted() async throws {
        let story = LoginStory()
        story.nonce.withLock { $0 = "n0NceOfThisLogin" }
        let service = try await GraphService(script: story.script())
        let response = try service.judge(Self.given)
        #expect(response.status == 200, "\(response.text)")
        #expect(response.text.contains(#""permissions":["public_profile","email"],"nonce":"n0NceOfThisLogin"}"#))
        #expect(service.graph.requests.count == 3)
        let question = try #require(service.graph.requests.last)
        let query = "client_id=\(InProcessService.appID)&access_token=\(GraphStory.token)"
        #expect(question.line == "GET /v26.0/oauth/access_token_info?\(query) HTTP/1.1")
        #expect(question.value(of: "authorization") == nil)
        let metrics = service.registry.render()
        #expect(metrics.contains(#"graph_requests_total{operation="access_token_info",result="ok"} 1"#))
        // The service does not remember the backend's own nonce, so it is accepted again.
        #expect(try service.judge(Self.given).status == 200)
        // Without auth_nonce the nonce is not requested.
        #expect(try service.judge().status == 200 && service.infoCount == 2)
    }

    @Test("An issued nonce must be ours, for this app and unexpired, and works once; a refused token uses up nothing")
    func issued() async throws {
        let story = LoginStory()
        let issuer = try DecodedNonce.issuer()
        func start() async throws -> GraphService {
            try await GraphService(
                appIDs: [InProcessService.appID, "42"],
                replayStore: GraphService.memory(),
                nonces: issuer,
                script: story.script()
            )
        }
        let service = try await start()
        func code(_ nonce: String, _ more: String = "") throws -> String? {
            story.nonce.withLock { $0 = nonce }
            return try service.judge(Self.issued + more).code
        }
        let nonce = try service.issueNonce(#"{"app_id":"\#(InProcessService.appID)"}"#)
        #expect(nonce.utf8.allSatisfy { 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 })
        #expect(try code(nonce, #","subject":"9""#) == "subject_mismatch")
        service.core.revoke(GraphStory.user, at: WallClock.unixSeconds())
        #expect(try code(nonce) == "login_revoked")

        let next = try await start()
        #expect(try next.judge(Self.issued).code == nil)
        #expect(try next.judge(Self.issued).code == "nonce_used")
        // A nonce can be used once, by an id token or an access token.
        let shared = try next.issueNonce(#"{"app_id":"\#(InProcessService.appID)"}"#)
        let token = try Tokens.mint(Tokens.claims(nonce: shared))
        #expect(try next.verify(token, #""issued_nonce":true"#).status == 200)
        story.nonce.withLock { $0 = shared }
        #expect(try next.judge(Self.issued).code == "nonce_used")
    }

    @Test("A refusal before the third call requests no nonce, and an id token takes no auth_nonce")
    func notAsked() async throws {
        let service = try await GraphService(script: GraphStory.script(me: #"{"id":"9"}"#))
        #expect(try service.judge(Self.given).code == "access_token_invalid" && service.infoCount == 0)
        let response = try service.verify(Tokens.mint(Tokens.claims()), #""nonce":"n-1","auth_nonce":true"#)
        #expect(response.status == 400 && response.detail.contains("auth_nonce is for an access token alone"))
        let bare = try service.judge(#""nonce":"n0NceOfThisLogin""#)
        #expect(bare.status == 400 && bare.detail.contains("auth_type=reauthenticate"))
    }
}
