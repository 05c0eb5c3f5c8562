import Foundation
import LLHTTP
import LLStores
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

@Suite("A person's permissions, through Graph", .live)
struct GraphRouteTests {
    private static let list = "/users/2954873201847263/permissions"
    private static let answer = """
        {"data":[{"permission":"email","status":"granted"},{"permission":"user_friends","status":"declined"},\
        {"permission":"public_profile","status":"granted"},{"permission":"user_birthday","status":"expired"}]}
        """

    @Test("Permissions are listed by status, and the requested ones as missing or declined")
    func list() async throws {
        let service = try await GraphService { _, peer in try peer.answerAndStay(Self.answer) }
        let plain = try service.answer("GET", Self.list)
        #expect(plain.status == 200 && plain["cache-control"] == "no-store")
        #expect(plain["content-type"] == "application/json")
        let members = plain.object
        #expect(Set(members.keys) == ["user_id", "app_id", "granted", "declined", "expired"])
        let (user, app) = (members["user_id"] as? String, members["app_id"] as? String)
        #expect(user == "2954873201847263" && app == InProcessService.appID)
        #expect(members["granted"] as? [String] == ["email", "public_profile"])
        let names = "user_link,email%2Cuser_friends%2cuser_birthday,user_likes,user_actions.fitness"
        let query = "?permissions=\(names)&app_id=\(InProcessService.appID)"
        let asked = try service.answer("GET", Self.list + query).object
        #expect(asked["missing"] as? [String] == ["user_link", "user_birthday"])
        #expect(asked["declined_requested"] as? [String] == ["user_friends"])
        #expect(asked["outside_limited_login"] as? [String] == ["user_likes", "user_actions.fitness"])
    }

    @Test("A good token uninstalls the app; a bad token is never sent to Facebook")
    func uninstall() async throws {
        let service = try await GraphService { _, peer in try peer.answerAndStay("{\"success\":true}") }
        let good = try Tokens.mint(Tokens.claims())
        let narrowed = "{\"id_token\":\"\(good)\",\"app_id\":\"\(InProcessService.appID)\"}"
        #expect(try service.answer("POST", "/uninstall", body: narrowed).status == 204)
        let sent = service.graph.requests.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(sent == ["id_token=\(good)&app_id=\(InProcessService.appID)"])
        let ended = try service.answer("POST", "/uninstall", body: "{\"id_token\":\"\(good)\"}")
        #expect(ended.status == 401 && ended.code == "login_revoked")
        let expired = try Tokens.mint(Tokens.claims(issuedAt: WallClock.unixSeconds() - 7_200))
        for (token, code) in [(expired, "expired"), (good.dropLast(4) + "AAAA", "invalid_signature")] {
            let response = try service.answer("POST", "/uninstall", body: "{\"id_token\":\"\(token)\"}")
            #expect(response.status == 401 && response.code == code)
            #expect(response["www-authenticate"] == "Bearer error=\"invalid_token\", code=\"\(code)\"")
        }
        #expect(service.graph.requestCount == 1)
        #expect(service.metric(#"limited_login_verifications_total{credential="id_token",result="expired"}"#) == 1)
    }

    @Test("A malformed request is refused before Graph is called")
    func refused() async throws {
        let service = try await GraphService()
        for (code, status, targets) in [
            (
                "invalid_request", 400,
                [
                    "GET /users/me/permissions", "GET /users/%31/permissions", "DELETE /users/0444/permissions",
                    "GET /users/1/permissions?permissions=", "GET /users/1/permissions?permissions=a%2",
                    "GET /users/1/permissions?permissions=a%2Fb",
                    "GET /users/1/permissions?permissions=a&permissions=b",
                    "GET /users/1/permissions?access_token=x", "DELETE /users/1/permissions?permissions=email",
                    "DELETE /users/1/permissions/e%6Dail", "DELETE /users/1/permissions/..",
                ]
            ),
            ("unknown_app", 400, ["GET /users/1/permissions?app_id=", "GET /users/1/permissions?app_id=43"]),
            ("method_not_allowed", 405, ["GET /users/1/permissions/email", "POST /users/1/permissions"]),
            (
                "not_found", 404,
                ["GET /users//permissions", "GET /users/1/permissions/", "DELETE /users/1/permissions/a/b"]
            ),
        ] {
            for target in targets {
                let words = target.split(separator: " ").map(String.init)
                let response = try service.answer(words[0], words[1])
                #expect(response.status == status && response.code == code, "\(target)")
            }
        }
        #expect(service.graph.requestCount == 0)
    }

    @Test("Without secrets the routes do not exist, and a caller without its key is refused")
    func access() async throws {
        let requests = [("GET", Self.list), ("DELETE", Self.list), ("DELETE", Self.list + "/email")]
        let off = try await GraphService(secrets: nil)
        let keyless = try await GraphService(hasClients: false)
        let on = try await GraphService()
        for (method, target) in requests {
            let disabled = try off.answer(method, target)
            #expect(disabled.status == 404 && disabled.text.contains("LIMITED_LOGIN_APP_SECRETS_FILE"))
            #expect(try keyless.answer(method, target).code == "unauthorized_client")
            for fields in [[], ["X-Api-Key: wrong"]] {
                let response = try on.answer(method, target, fields: fields)
                #expect(response.status == 401 && response.code == "unauthorized_client")
            }
        }
        for service in [off, keyless, on] { #expect(service.graph.requestCount == 0) }
    }

    @Test("If several apps are configured the request must name one, and each app uses its own secret")
    func apps() async throws {
        let other = "fedcba9876543210fedcba9876543210"
        let service = try await GraphService(
            appIDs: [InProcessService.appID, "42", "43"],
            secrets: "# both\n\(InProcessService.appID)\t\(GraphService.secret)\r\n\n42 \(other)\n"
        )
        #expect(try service.answer("DELETE", Self.list).code == "invalid_request")
        #expect(try service.answer("DELETE", Self.list + "?app_id=43").code == "unknown_app")
        #expect(try service.answer("DELETE", Self.list + "?app_id=44").code == "unknown_app")
        #expect(try service.answer("DELETE", Self.list + "?app_id=42").status == 204)
        #expect(service.graph.requests.map { $0.value(of: "authorization") } == ["Bearer 42|\(other)"])
    }

    @Test("Each error of Graph has its status and sentence, also on the page", arguments: Rejection.Code.ofGraph)
    func errors(_ error: Rejection.Code) throws {
        let problem = GraphFailure(error).problem
        #expect(problem.code.rawValue.hasPrefix("graph_"))
        #expect([403, 404, 409, 429, 502, 503, 504].contains(error.status))
        #expect((problem.context.retryAfterSeconds != nil) == [429, 503].contains(error.status))
        #expect(problem.detail.hasSuffix(".") && problem.detail.count > 40)
        let page = try ProjectFiles.text("Sources/LLService/LLService.docc/Permissions.md")
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("|") && $0.contains("`\(error.rawValue)`") }
        #expect(!rows.isEmpty && rows.allSatisfy { $0.split(separator: "|").last?.contains("\(error.status)") == true })
    }

    @Test("The answer passes on Graph's time to wait and Facebook's name of the call")
    func throttled() async throws {
        let service = try await GraphService { _, peer in
            try peer.answer(
                status: "400 Bad Request",
                fields: ["Retry-After: 7"],
                "{\"error\":{\"message\":\"about Jane\",\"code\":4,\"error_subcode\":5,\"fbtrace_id\":\"AbC\"}}"
            )
        }
        let response = try service.answer("GET", Self.list)
        #expect(response.status == 429 && response.code == "graph_app_throttled")
        #expect(response["retry-after"] == "7" && response.object["fbtrace_id"] as? String == "AbC")
        #expect(!response.text.contains("Jane"))
        let log = service.log.withLock { $0.joined(separator: "\n") }
        for fact in ["AbC", "graph_app_throttled", "graph_subcode"] { #expect(log.contains(fact)) }
        for secret in ["Jane", GraphService.secret, "2954873201847263"] { #expect(!log.contains(secret)) }
        let metrics = service.registry.render()
        #expect(metrics.contains(#"requests_total{operation="list_permissions",result="graph_app_throttled"} 1"#))
        #expect(metrics.contains(#"duration_seconds_count{operation="list_permissions"} 1"#))
        #expect(!metrics.contains(#"limited_login_verifications_total{credential="id_token",result="graph_"#))
    }

    @Test("A Graph that never answers is 504, and meanwhile the same worker answers other requests")
    func hung() async throws {
        let service = try await GraphService(workerCount: 1, callTimeout: .milliseconds(600)) { _, peer in
            peer.waitUntilClosed()
        }
        let waiting = try service.connect()
        waiting.send(GraphService.request("GET", Self.list))
        #expect(try service.verify(Tokens.mint(Tokens.claims())).status == 200)
        let response = try #require(waiting.readResponses(1).first)
        #expect(response.status == 504 && response.code == "graph_timeout")
        await service.stop()
    }

    @Test("Questions of clients that left are not sent, about permissions if the queue is full; a DELETE is")
    func leftClients() async throws {
        let isOpen = Locked(false)
        let service = try await GraphService(workerCount: 1) { request, peer in
            while !isOpen.withLock({ $0 }) { try peer.pause(.milliseconds(5)) }
            if request.path.contains("/permissions") { return try peer.answerAndStay("true") }
            try GraphStory.script()(request, peer)
        }
        func send(_ count: Int, _ method: String, _ user: Int) throws -> [BlockingClient] {
            let target = method == "POST" ? "/verify" : "/users/\(user)/permissions"
            let body = method == "POST" ? #"{"access_token":"EAAtoken0123456789of\#(user)"}"# : ""
            return try (0..<count).map { _ in
                let client = try service.connect()
                client.send(GraphService.request(method, target, body: body))
                return client
            }
        }
        func areParked(_ count: Int) async {
            await eventually("\(count) wait") { service.server.counters.parked == count }
        }
        let tokens = try send(GraphWorkers.accessTokenThreadLimit, "POST", 1)
        let busy = try send(GraphWorkers.threadLimit, "GET", 1) + tokens
        await eventually("each thread asks Graph") { service.graph.requestCount == busy.count }
        let questions = try send(GraphWorkers.queueLimit - 1, "GET", 2)
        let left = try send(1, "DELETE", 3) + questions + send(1, "POST", 2)
        await areParked(busy.count + left.count)
        for client in left { client.reset() }
        await areParked(busy.count)
        let next = try send(1, "GET", 4)
        await areParked(busy.count + 1)
        isOpen.withLock { $0 = true }
        for client in busy + next { #expect(client.readResponses(1).count == 1) }
        await eventually("the login is over") { service.core.revocations.count == 1 }
        let sent = service.graph.requests.map(\.path)
        #expect(sent.contains { $0.contains("/3/permissions") } && sent.contains { $0.contains("/4/permissions") })
        #expect(!sent.contains { $0.contains("/2/permissions") || $0.contains("789of2") }, "\(sent)")
    }
}
