import LLStandIn
import LLTestSupport
import LimitedLoginKeys
import Testing

@testable import LLService

@Suite("Routes, health and request identifiers", .live)
struct RoutingTests {
    @Test("OPTIONS lists the methods")
    func options() async throws {
        let service = try await InProcessService()
        let options = try service.answer("OPTIONS", "/verify", fields: [])
        #expect(options.status == 204 && options["allow"] == "POST, OPTIONS")
        #expect(try service.answer("OPTIONS", "*", fields: [])["allow"] != nil)
    }

    @Test(
        "A path of other services is answered with what is here instead",
        arguments: [
            ("/", "/readyz"), ("/userinfo", "/introspect"), ("/revoke", "/revocations"),
            ("/.well-known/oauth-protected-resource", "authorization_servers"), ("/authorize", "/token"),
        ]
    )
    func absent(path: String, hint: String) async throws {
        let answer = try await InProcessService().answer("GET", path, fields: [])
        #expect(answer.status == 404 && answer.code == "not_found" && answer.text.contains(hint), "\(answer.text)")
    }

    @Test("The process is live without keys, but ready only with keys and before it stops")
    func health() async throws {
        let service = try await InProcessService()
        #expect(try service.answer("GET", "/readyz", fields: []).status == 200)
        service.core.beginDraining()
        for (service, code) in [(try await InProcessService(minters: nil), "keys_unavailable"), (service, "draining")] {
            let unready = try service.answer("GET", "/readyz", fields: [])
            #expect(unready.status == 503 && unready.code == code && unready["retry-after"] != nil)
            for path in ["/livez", "/healthz"] { #expect(try service.answer("GET", path, fields: []).status == 200) }
        }
    }

    @Test("Only the administrative listener shows the state of the keys, why there are none, and a stuck thread")
    func verbose() async throws {
        let down = try await InProcessService(minters: nil, stuckThread: "http-worker-1")
        _ = await down.cache.refresh()
        let service = try await InProcessService()
        for listener in [ListenerRole.administration, .service] {
            let isTold = listener == .administration
            for target in ["/readyz?verbose", "/livez?verbose=1", "/healthz?verbose=true"] {
                let answer = try service.send("GET", target, fields: [], listener: listener).response()
                #expect(answer.status == 200 && (answer.text == "ok\n") == !isTold)
                #expect(answer.text.contains(StandInKeys.current.keyID) == isTold)
                #expect(answer.text.contains("\"status\":\"pass\"") == isTold)
            }
            let unready = try down.send("GET", "/readyz?verbose", fields: [], listener: listener).response()
            #expect(unready.status == 503 && unready.text.contains("the test's source is down") == isTold)
            for path in ["/livez", "/healthz"] {
                let answer = try down.send("GET", path, fields: [], listener: listener).response()
                #expect(answer.status == (isTold ? 503 : 200) && answer.text.contains("http-worker-1") == isTold)
            }
        }
    }

    @Test("The administrative listener has metrics, and verifies no tokens")
    func administration() async throws {
        let service = try await InProcessService(listener: .administration)
        let metrics = try service.answer("GET", "/metrics", fields: [])
        #expect(metrics.status == 200 && metrics["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
        let series = #"limited_login_verifications_total{credential="id_token",result="accepted"} 0"#
        #expect(metrics.text.contains(series))
        #expect(try service.answer(body: "{}").status == 404)
    }

    @Test("A caller's well-formed request identifier is kept, and another one is replaced")
    func callersIdentifier() async throws {
        let service = try await InProcessService()
        for value in ["Abc.9_-", "", "a b", "a,b", "ä", "<script>", String(repeating: "a", count: 129)] {
            let answer = try service.answer("GET", "/nothing", fields: ["X-Request-Id: \(value)"])
            let identifier = try #require(answer["x-request-id"])
            #expect(value == "Abc.9_-" ? identifier == value : identifier.hasPrefix("abc-1-"))
            #expect(answer.text.contains("\"request_id\":\"\(identifier)\""))
        }
    }

    @Test(
        "A request that the server itself refuses keeps its caller's identifier if its head could be read",
        arguments: [
            ("Content-Length: 99999\r\n\r\n", 413, "caller-1"),
            ("Transfer-Encoding: chunked\r\n\r\nxyz", 400, "caller-1"), ("Content-Length: 9\r\n\r\n{", 408, "caller-1"),
            ("X-Other: 1\r\n", 408, "abc-1-0"), ("Bad Name: 1\r\n\r\n", 400, "abc-1-0"),
            ("Host: another\r\n\r\n", 400, "abc-1-0"),
        ]
    )
    func identifierOfARefusal(rest: String, status: Int, identifier: String) async throws {
        let service = try await InProcessService()
        let driver = ConnectionDriver(handler: ServiceHandler(core: service.core, listener: .service))
        let fields = "Host: a\r\nX-Request-Id: caller-1\r\nContent-Type: application/json\r\n"
        driver.send("POST /verify HTTP/1.1\r\n\(fields)\(rest)")
        driver.advance(by: .seconds(6))
        let answer = try #require(driver.responses.first)
        #expect(answer.status == status && answer["x-request-id"] == identifier)
        #expect(answer.text.contains("\"request_id\":\"\(identifier)\""))
    }
}
