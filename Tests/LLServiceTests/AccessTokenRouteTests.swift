import Foundation
import LLHTTP
import LLJOSE
import LLStores
import LLTestSupport
import Testing

@testable import LLService

/// Scripted answers of Graph about one access token.
struct GraphStory: Sendable {
    static let token = "EAAtestBwzLixnjYBO0123456789abcdef"
    static let user = "218471"
    static let expiry = 4_000_000_000

    /// Members of `data`; nil leaves one out.
    static func data(_ changes: [(String, String?)] = []) -> String {
        var members: [(String, String)] = [
            ("app_id", "\"\(InProcessService.appID)\""), ("type", #""USER""#), ("application", #""Test""#),
            ("data_access_expires_at", "3999999999"), ("expires_at", "\(expiry)"), ("is_valid", "true"),
            ("issued_at", "1700000000"), ("user_id", "\"\(user)\""), ("scopes", #"["public_profile","email"]"#),
        ]
        for (name, json) in changes {
            members.removeAll { $0.0 == name }
            if let json { members.append((name, json)) }
        }
        return #"{"data":{\#(members.map { "\"\($0)\":\($1)" }.joined(separator: ","))}}"#
    }

    static let me = #"{"name":"Zo\u00eb M\u00fcller","email":"zoe\u0040example.com","id":"218471"}"#

    /// Answers /debug_token with `data` and /me with `me`.
    static func script(_ data: String = data(), me: String = me) -> ScriptedIssuer.Script {
        { request, peer in try peer.answerAndStay(request.path.contains("/debug_token?") ? data : me) }
    }

    /// The same with the current value of `story`.
    static func script(_ story: Locked<String>) -> ScriptedIssuer.Script {
        { request, peer in try script(story.withLock { $0 })(request, peer) }
    }

    static func error(_ code: Int, _ message: String, subcode: Int? = nil) -> String {
        let more = subcode.map { #","error_subcode":\#($0)"# } ?? ""
        return #"{"error":{"message":"\#(message)","code":\#(code)\#(more),"fbtrace_id":"AbC"}}"#
    }
}

extension GraphService {
    /// Sends an access token to /verify.
    func judge(_ members: String = "", token: String = GraphStory.token) throws -> TestResponse {
        let more = members.isEmpty ? "" : ",\(members)"
        return try answer("POST", "/verify", body: "{\"access_token\":\"\(token)\"\(more)}")
    }

    /// The number of calls of /me.
    var meCount: Int { graph.requests.count { $0.path.contains("/me?") } }
}

@Suite("POST /verify with an access token", .live)
struct AccessTokenRouteTests {
    @Test("The answer to a confirmed token holds the token's facts and the person")
    func accepted() async throws {
        let service = try await GraphService(script: GraphStory.script())
        let response = try service.judge(#""permissions":["email","user_likes","a.b","email"],"subject":"218471""#)
        #expect(response.status == 200, "\(response.text)")
        #expect(response["cache-control"] == "no-store" && response["content-type"] == "application/json")
        let expected = """
            {"access_token":{"app_id":"\(InProcessService.appID)","user_id":"218471","issued_at":1700000000,\
            "expires_at":4000000000,"data_access_expires_at":3999999999,"permissions":["public_profile","email"]},\
            "profile":{"user_id":"218471","name":"Zoë Müller","email":"zoe@example.com","email_verified":false,\
            "permissions":["public_profile","email"],"is_limited":false},"missing_permissions":["user_likes","a.b"]}
            """
        let object = try CallbackRouteTests.object(Array(expected.utf8))
        #expect(NSDictionary(dictionary: response.object) == NSDictionary(dictionary: object), "\(response.text)")
        let metrics = service.registry.render()
        #expect(metrics.contains(#"limited_login_verifications_total{credential="access_token",result="accepted"} 1"#))
        for operation in ["debug_token", "me"] {
            #expect(metrics.contains(#"graph_requests_total{operation="\#(operation)",result="ok"} 1"#))
        }
    }

    @Test("The app asks about the token, then the token asks for the granted fields, each with its appsecret_proof")
    func questions() async throws {
        let service = try await GraphService(script: GraphStory.script())
        #expect(try service.judge().status == 200)
        func proof(_ text: String) throws -> String {
            let key = Array(GraphService.secret.utf8)
            return try HMACSHA256.authenticationCode(for: Array(text.utf8).span, key: key.span).hexadecimal
        }
        let app = "\(InProcessService.appID)|\(GraphService.secret)"
        let fields = "id%2Cname%2Cfirst_name%2Cmiddle_name%2Clast_name%2Cemail%2Cpicture"
        #expect(
            service.graph.requests.map(\.line) == [
                "GET /v26.0/debug_token?input_token=\(GraphStory.token)&appsecret_proof=\(try proof(app)) HTTP/1.1",
                "GET /v26.0/me?fields=\(fields)&appsecret_proof=\(try proof(GraphStory.token)) HTTP/1.1",
            ]
        )
        let bearers = service.graph.requests.map { $0.value(of: "authorization") }
        #expect(bearers == ["Bearer \(app)", "Bearer \(GraphStory.token)"])
    }

    /// Changes of `data`, and the code of the refusal.
    static let refusals: [([(String, String?)], String)] = [
        ([("is_valid", "false")], "access_token_invalid"),
        ([("is_valid", "false"), ("error", #"{"code":190,"subcode":458}"#)], "access_token_revoked"),
        ([("expires_at", "1")], "access_token_expired"), ([("app_id", #""333""#)], "invalid_audience"),
    ]

    @Test("A token that Graph does not confirm is refused, and no second call is made", arguments: refusals)
    func refused(_ changes: [(String, String?)], _ code: String) async throws {
        let service = try await GraphService(script: GraphStory.script(GraphStory.data(changes)))
        for (members, count) in [("", 1), (#""auth_nonce":true,"nonce":"n0NceOfThisLogin""#, 2)] {
            let response = try service.judge(members)
            #expect(response.status == 401 && response.code == code, "\(response.text)")
            #expect(response["www-authenticate"] == "Bearer error=\"invalid_token\", code=\"\(code)\"")
            #expect(service.meCount == 0 && service.graph.requestCount == count)
        }
    }

    @Test("The person must be the expected one, in debug_token and in /me")
    func persons() async throws {
        let service = try await GraphService(script: GraphStory.script(me: #"{"id":"218472"}"#))
        #expect(try service.judge(#""subject":"218472""#).code == "subject_mismatch" && service.meCount == 0)
        #expect(try service.judge(#""subject":"218471""#).code == "access_token_invalid" && service.meCount == 1)
    }

    @Test("Each app asks in turn until one gets the token's facts; a token of an unknown app is refused")
    func apps() async throws {
        let other = "fedcba9876543210fedcba9876543210"
        let ours = GraphStory.data([("app_id", #""42""#)])
        let service = try await GraphService(
            appIDs: [InProcessService.appID, "42", "43"],
            secrets: "\(InProcessService.appID) \(GraphService.secret)\n42 \(other)\n43 third-\(other)\n"
        ) { request, peer in
            if request.path.contains("/me?") { return try peer.answerAndStay(GraphStory.me) }
            let asker = request.value(of: "authorization") ?? ""
            if asker.hasPrefix("Bearer 42|"), !request.path.contains("foreign") { return try peer.answerAndStay(ours) }
            let message = "(#100) The App_id in the input_token did not match the Viewing App"
            try peer.answerAndStay(status: "400 Bad Request", GraphStory.error(100, message))
        }
        // The members, the token, the code, and how often Graph was asked until then.
        for (members, token, code, count) in [
            ("", GraphStory.token, nil, 3), (#""app_id":"42""#, GraphStory.token, nil, 5),
            (#""app_id":"43""#, GraphStory.token, "invalid_audience", 6),
            ("", "EAAforeign0123456789", "invalid_audience", 9),
            (#""app_id":"44""#, GraphStory.token, "unknown_app", 9),
        ] as [(String, String, String?, Int)] {
            #expect(try service.judge(members, token: token).code == code && service.graph.requestCount == count)
        }
        #expect(service.meCount == 2)
    }

    @Test("A malformed request, or a text that is no access token, is refused before Graph is called")
    func badRequests() async throws {
        let service = try await GraphService(script: GraphStory.script())
        for (members, code) in [
            (#""nonce":"n""#, "invalid_request"), (#""raw_nonce":"n""#, "invalid_request"),
            (#""auth_nonce":true"#, "invalid_request"), (#""auth_nonce":false,"nonce":"n""#, "invalid_request"),
            (#""auth_nonce":true,"issued_nonce":true"#, "invalid_request"), (#""subject":"""#, "invalid_request"),
            (#""auth_nonce":true,"nonce":"a b""#, "invalid_nonce"), (#""app_id":"""#, "unknown_app"),
            (#""permissions":["Email"]"#, "invalid_permission"), (#""permissions":["a..b"]"#, "invalid_permission"),
            (#""other":1"#, "invalid_request"),
        ] {
            let response = try service.judge(members)
            #expect(response.status == 400 && response.code == code, "\(members): \(response.text)")
        }
        let short = try service.judge(token: "short")
        #expect(short.status == 401 && short.code == "access_token_invalid")
        let gaming = try service.judge(token: "GG|123456789012345|0123456789abcdefABCDEF")
        #expect(gaming.status == 401 && gaming.code == "access_token_invalid")
        #expect(gaming.detail.contains("gaming domain"))
        for body in [#"{"access_token":""}"#, #"{"access_token":null}"#, #"{"access_token":["EAA"]}"#] {
            #expect(try service.answer("POST", "/verify", body: body).code == "invalid_request")
        }
        #expect(service.graph.requestCount == 0)
    }

    @Test("A token without an issue time passes after a callback; after an order the refusal says until when")
    func unknownIssue() async throws {
        for kind in [RevocationKind.callback, .order] {
            let story = Locked(GraphStory.data())
            let service = try await GraphService(script: GraphStory.script(story))
            let moment = WallClock.unixSeconds() - 10
            func text(_ seconds: Int64) -> String {
                ISO8601DateFormatter().string(from: Date(timeIntervalSince1970: Double(seconds)))
            }
            service.core.revoke(GraphStory.user, at: moment, kind: kind)
            // A token of one hour, issued a moment after the revocation, and one that never expires: two hours before their
            // ends are before it.
            for (expiry, end) in [(moment + 3_610, moment + 7_200), (0, moment + 90 * 86_400)] {
                story.withLock { $0 = GraphStory.data([("issued_at", nil), ("expires_at", "\(expiry)")]) }
                let response = try service.judge()
                #expect(response.code == (kind == .callback ? nil : "login_revoked"), "\(expiry): \(response.text)")
                guard kind == .order else { continue }
                #expect(response.status == 401 && response.text.contains(#""claim":"iat""#))
                #expect(response.text.contains(text(moment)) && response.text.contains(text(end)), "\(response.text)")
            }
            story.withLock { $0 = GraphStory.data([("issued_at", nil), ("expires_at", "\(moment + 7_250)")]) }
            #expect(try service.judge().status == 200)
            // A token with an issue time is judged by that time.
            story.withLock { $0 = GraphStory.data([("issued_at", "\(moment)"), ("expires_at", "4000000000")]) }
            #expect(try service.judge().code == "login_revoked")
            story.withLock { $0 = GraphStory.data([("issued_at", "\(moment + 1)"), ("expires_at", "4000000000")]) }
            #expect(try service.judge().status == 200)
        }
    }
}
