import LLHTTP
import LLTestSupport
import Testing

@testable import LLService

/// One fault of Graph's answer, and the service's answer to it.
struct GraphFault: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let status: Int
    let code: String
    var attempts = 1
    let script: @Sendable (ScriptedPeer) throws -> Void

    static func body(_ body: String, status line: String = "200 OK", _ status: Int, _ code: String, attempts: Int = 1)
        -> GraphFault
    {
        GraphFault(testDescription: "\(line) \(body.prefix(50))", status: status, code: code, attempts: attempts) {
            try $0.answerAndStay(status: line, body)
        }
    }
}

@Suite("POST /verify with an access token, and a Graph that fails", .live)
struct AccessTokenFaultTests {
    /// Each code once. GraphClientTests has the hostile answers, and AccessTokenTests the objects that say nothing.
    static let faults: [GraphFault] = [
        .body("<html>", 502, "graph_unreadable_answer"), .body("{}", 502, "graph_unreadable_answer"),
        // A yes beside an error.
        .body(GraphStory.data([("error", "{}")]), 502, "graph_unreadable_answer"),
        .body(GraphStory.error(100, "x"), status: "400 Bad Request", 502, "graph_invalid_parameter"),
        .body(GraphStory.error(4, "x"), status: "400 Bad Request", 429, "graph_app_throttled"),
        .body(GraphStory.error(368, "x"), status: "400 Bad Request", 502, "graph_error"),
        .body(GraphStory.error(803, "x"), status: "404 Not Found", 502, "graph_error"),
        .body(GraphStory.error(2, "x"), status: "500 X", 503, "graph_unavailable", attempts: 3),
        .body(GraphStory.error(1, "a desktop app."), status: "400 X", 502, "graph_access_token_refused"),
        GraphFault(testDescription: "a reset", status: 504, code: "graph_unreachable") { $0.reset() },
        GraphFault(testDescription: "never", status: 504, code: "graph_timeout") { $0.waitUntilClosed() },
    ]

    @Test("No fault in Graph's first or second answer accepts the token or blames it", arguments: faults)
    func failing(_ fault: GraphFault) async throws {
        for isSecond in [false, true] {
            let service = try await GraphService(
                callTimeout: fault.code == "graph_timeout" ? GraphService.impatience : .seconds(300)
            ) { request, peer in
                // The connection closes, because a call on a broken kept connection would be retried and counted.
                if isSecond, request.path.contains("/debug_token?") { return try peer.answer(GraphStory.data()) }
                try fault.script(peer)
            }
            let response = try service.judge()
            #expect(response.status == fault.status && response.code == fault.code, "\(response.text)")
            // Graph may read a call after the service gave it up.
            await eventually("each question is read") {
                service.graph.requestCount >= fault.attempts + (isSecond ? 1 : 0)
            }
            #expect(service.meCount == (isSecond ? fault.attempts : 0))
            #expect(service.graph.requestCount == fault.attempts + (isSecond ? 1 : 0))
            let count = #"limited_login_verifications_total{credential="access_token",result="\#(fault.code)"} 1"#
            #expect(service.registry.render().contains(count))
        }
    }

    @Test("Error 190 is about the app's own token in debug_token; later it refuses the token, with its subcode's code")
    func deadTokens() async throws {
        for (subcode, code) in [
            (463, "access_token_expired"), (458, "access_token_revoked"), (nil, "access_token_invalid"),
        ] as [(Int?, String)] {
            for call in ["/debug_token?", "/me?", "/access_token_info?"] {
                let service = try await GraphService { request, peer in
                    guard request.path.contains(call) else { return try GraphStory.script()(request, peer) }
                    try peer.answer(status: "400 Bad Request", GraphStory.error(190, "x", subcode: subcode))
                }
                let response = try service.judge(#""auth_nonce":true,"nonce":"n0NceOfThisLogin""#)
                let isFirst = call == "/debug_token?"
                #expect(response.status == (isFirst ? 502 : 401), "\(call) \(response.text)")
                let challenge = "Bearer error=\"invalid_token\", code=\"\(code)\""
                #expect(response["www-authenticate"] == (isFirst ? nil : challenge), "\(call)")
            }
        }
    }

    @Test("If Graph fails for one app, that failure is the answer, unless another app gets the token's facts")
    func openQuestion() async throws {
        let knows = Locked(true)
        let service = try await GraphService(
            appIDs: [InProcessService.appID, "42"],
            secrets: "\(InProcessService.appID) \(GraphService.secret)\n42 other-\(GraphService.secret)\n"
        ) { request, peer in
            if request.path.contains("/me?") { return try peer.answerAndStay(GraphStory.me) }
            guard request.value(of: "authorization")?.hasPrefix("Bearer 42|") == true else {
                return try peer.answerAndStay(status: "400 X", GraphStory.error(190, "x"))
            }
            if knows.withLock({ $0 }) { return try peer.answerAndStay(GraphStory.data([("app_id", #""42""#)])) }
            try peer.answerAndStay(status: "400 X", GraphStory.error(100, "did not match the Viewing App"))
        }
        #expect(try service.judge().status == 200)
        knows.withLock { $0 = false }
        let response = try service.judge()
        #expect(response.status == 502 && response.code == "graph_access_token_refused")
    }

    @Test("If the time ends before each of many apps was asked, the answer tells their number and asks for app_id")
    func manyApps() async throws {
        let ids = (1...60).map(String.init)
        let service = try await GraphService(
            appIDs: ids,
            secrets: ids.map { "\($0) \(GraphService.secret)\($0)" }.joined(separator: "\n"),
            callTimeout: GraphService.impatience
        ) { request, peer in
            // The third app gets no answer.
            guard request.number < 3 else { return peer.waitUntilClosed() }
            try peer.answerAndStay(status: "400 X", GraphStory.error(100, "did not match the Viewing App"))
        }
        let response = try service.judge()
        #expect(response.status == 504 && response.code == "graph_timeout")
        #expect(response.text.contains("2 of the 60 apps") && response.text.contains("send its app_id with it"))
    }
}
