import Foundation
import LLSockets
import LLTestSupport
import Testing

@Suite("Gateways and OAuth clients, with a running service", .live)
struct GatewayTests {
    private static let enabled = ["LIMITED_LOGIN_GATEWAY": "enabled"]

    private static func request(_ token: String?, _ method: String = "GET", _ rest: String = "") -> String {
        let authorization = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
        return "\(method) /auth/orders HTTP/1.1\r\nHost: test\r\n\(authorization)\(rest)\r\n"
    }

    @Test("/auth accepts a good token and returns its claims, and refuses an expired, a foreign and a missing one")
    func verdicts() throws {
        let (issuer, service) = try RunningService.withIssuer(Self.enabled)
        let good = try service.exchange(Self.request(try issuer.token(#"{"nonce":"n","email":"a@b.c"}"#)))
        #expect(good.status == 200)
        #expect(good["x-auth-audience"] == RunningService.appID)
        #expect(good["x-auth-email"] == "a@b.c")
        let bad: [(String?, String)] = [
            (try issuer.token(#"{"nonce":"n","iat":1700000000}"#), "expired"),
            (try issuer.token(#"{"nonce":"n","aud":"987"}"#), "invalid_audience"), (nil, "missing_token"),
        ]
        for (token, code) in bad {
            let answer = try service.exchange(Self.request(token))
            #expect(answer.status == 401)
            #expect(answer.code == code)
            #expect(answer["www-authenticate"]?.hasPrefix("Bearer ") == true)
        }
        let metrics = try service.get("/metrics", admin: true).text
        #expect(metrics.contains(#"limited_login_verifications_total{credential="id_token",result="accepted"} 1"#))
        #expect(metrics.contains(#"http_route="/auth""#))
    }

    @Test("A declared body that never comes delays nothing, and the connection ends")
    func absentBody() throws {
        let (issuer, service) = try RunningService.withIssuer(Self.enabled)
        let token = try issuer.token()
        for framing in ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"] {
            let client = try BlockingClient(service.address)
            // The second request must be read neither as the first one's body nor as a request.
            client.send(Self.request(token, "POST", framing) + Self.request(token))
            let (bytes, end) = client.read()
            let answers = TestResponse.parseAll(bytes)
            #expect(end == .endOfStream)
            #expect(answers.map(\.status) == [200])
            #expect(answers.first?["connection"] == "close")
        }
    }

    @Test("Without keys a gateway gets 503, and so does an OAuth client")
    func outage() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "clients-\(UUID().uuidString)")
        // The SHA-256 of "secret".
        try Data("backend 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let issuer = try IssuerProcess()
        defer { issuer.process.end() }
        let token = try issuer.token()
        let settings = ["LIMITED_LOGIN_GATEWAY": "enabled", "LIMITED_LOGIN_CLIENT_KEYS_FILE": file.path]
        let form = "token=\(token)"
        let introspection =
            "POST /introspect HTTP/1.1\r\nHost: test\r\nX-Api-Key: secret\r\n"
            + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(form.utf8.count)\r\n\r\n\(form)"
        let down = try RunningService(jwksURL: "http://127.0.0.1:1/", environment: settings)
        for request in [Self.request(token), introspection] {
            let answer = try down.exchange(request)
            #expect(answer.status == 503)
            #expect(answer["retry-after"] != nil)
            #expect(answer["www-authenticate"] == nil)
        }
        let service = try RunningService(jwksURL: issuer.jwksURL, environment: settings)
        #expect(try service.waitUntilReady())
        #expect(try service.exchange(introspection).text.hasPrefix("{\"active\":true,"))
        #expect(try service.exchange(introspection.replacing("secret", with: "public")).status == 401)
    }

    @Test("The routes for gateways exist only if they are configured")
    func disabled() throws {
        let service = try RunningService(jwksURL: "http://127.0.0.1:1/")
        #expect(try service.exchange(Self.request("x")).status == 404)
        #expect(try service.get("/openapi.json").status == 200)
    }
}
