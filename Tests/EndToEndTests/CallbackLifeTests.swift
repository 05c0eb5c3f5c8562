import Foundation
import LLHTTP
import LLTestSupport
import Testing

@Suite("Facebook's callbacks, in running services", .live, .serialized)
struct CallbackLifeTests {
    private static let user = "2954873201847263"
    private static let appSecret = "a-secret-for-these-tests"
    private static let webhookSecrets = [
        "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NA==",
    ]

    /// Verifies the token until the verdict is as expected; false if it never is.
    private static func waits(_ service: RunningService, _ token: String, for code: String?) throws -> Bool {
        try becomesTrue {
            let answer = try service.verify(token)
            return answer.code == code && (answer.status == 200) == (code == nil)
        }
    }

    @Test(
        "After a user removes the app every replica refuses the old token, and a new login is accepted",
        .needsRedis
    )
    func life() throws {
        let redis = try RedisServer()
        let backend = try ScriptedIssuer { _, peer in try peer.answer("{}") }
        defer { backend.stop() }
        let port = try FreePort.take()
        let issuer = try IssuerProcess(
            arguments: ["--app-secret", Self.appSecret, "--service-url", "http://127.0.0.1:\(port)"]
        )
        let folder = try ShortFolder()
        let secrets = try folder.write("secrets", "\(RunningService.appID) \(Self.appSecret)\n")
        let webhookSecret = try folder.write("webhooks", Self.webhookSecrets[0] + "\n")
        var environment = [
            "LIMITED_LOGIN_APP_SECRETS_FILE": secrets, "LIMITED_LOGIN_LISTEN": "127.0.0.1:\(port)",
            "LIMITED_LOGIN_CALLBACKS_URL": "http://127.0.0.1:\(backend.port)/webhooks",
            "LIMITED_LOGIN_CALLBACKS_SECRET_FILE": webhookSecret,
            "LIMITED_LOGIN_DATA_DELETION_STATUS_URL": "https://app.example/deletion",
            "LIMITED_LOGIN_REPLAY_STORE": "redis://127.0.0.1:\(redis.port)",
        ]
        let first = try RunningService(jwksURL: issuer.jwksURL, environment: environment)
        environment["LIMITED_LOGIN_LISTEN"] = "127.0.0.1:0"
        let second = try RunningService(jwksURL: issuer.jwksURL, environment: environment)
        #expect(try first.waitUntilReady() && second.waitUntilReady())

        let now = WallClock.unixSeconds()
        let old = try issuer.token("{\"nonce\":\"n-1\",\"iat\":\(now - 30)}")
        for service in [first, second] { #expect(try service.verify(old).status == 200) }
        // If the store is not connected yet, Facebook sends the request again.
        var answer = try issuer.post("/users/\(Self.user)/deauthorize?issued_at=\(now)")
        let deadline = Date(timeIntervalSinceNow: 30)
        while answer.code == "replay_store_unavailable", Date() < deadline {
            answer = try issuer.post("/users/\(Self.user)/deauthorize?issued_at=\(now)")
        }
        #expect(answer.status == 200 && answer.text == "{}", "\(answer.text)")
        #expect(try first.verify(old).code == "login_revoked")
        #expect(try Self.waits(second, old, for: "login_revoked"))
        // A repeated request has the same identifier.
        #expect(try issuer.post("/users/\(Self.user)/deauthorize?issued_at=\(now)").status == 200)
        #expect(Set(backend.requests.map { $0.value(of: "webhook-id") }).count == 1)
        // The next login has a later second; the skew allows it to be ahead of the clock.
        let new = try issuer.token("{\"nonce\":\"n-1\",\"iat\":\(now + 5)}")
        for service in [first, second] { #expect(try service.verify(new).status == 200) }
        // Logins of other users are still accepted.
        let other = try issuer.token("{\"nonce\":\"n-1\",\"sub\":\"77\",\"iat\":\(now - 30)}")
        for service in [first, second] { #expect(try service.verify(other).status == 200) }

        // The secret of the webhooks is changed while the service runs.
        try folder.write("webhooks", Self.webhookSecrets.joined(separator: "\n") + "\n")
        first.process.signal(SIGHUP)
        #expect(first.process.waitForError("\"configuration reloaded\""), "\(first.process.errorText)")
        let deletion = try issuer.post("/users/\(Self.user)/data-deletion")
        #expect(
            deletion.status == 200 && deletion.text.contains("https://app.example/deletion?code="),
            "\(deletion.text)"
        )
        let signatures = backend.requests.last?.value(of: "webhook-signature")?.split(separator: " ")
        #expect(signatures?.count == 2)
        for service in [first, second] {
            service.process.terminate()
            #expect(service.process.waitForExit() == 0)
            for text in [Self.user, Self.appSecret, Self.webhookSecrets[0]] {
                #expect(!service.process.errorText.contains(text))
            }
        }
    }

    @Test("The stand-in reports a service that is not configured or cannot be reached")
    func standIn() throws {
        let issuer = try IssuerProcess()
        #expect(try issuer.post("/users/1/deauthorize").text.contains("--service-url"))
        #expect(try issuer.post("/users/x/deauthorize").status == 404)
        let blind = try IssuerProcess(arguments: ["--service-url", "http://127.0.0.1:1"])
        #expect(try blind.post("/users/1/data-deletion").status == 502)
    }

    @Test("The command line makes signed requests and judges them, with the documented exit codes")
    func commandLine() throws {
        let folder = try ShortFolder()
        let file = try folder.write("secrets", "42 \(Self.appSecret)\n43 another-\(Self.appSecret)\n")
        func run(_ arguments: [String], input: String? = nil, secrets: String? = file) throws -> FinishedRun {
            var environment = ["LIMITED_LOGIN_APP_IDS": "42,43"]
            environment["LIMITED_LOGIN_APP_SECRETS_FILE"] = secrets
            return try FinishedRun(["signed-request"] + arguments, environment: environment, input: input)
        }
        let made = try run(["make", "218471", "--app-id", "43"])
        #expect(made.exitCode == 0, "\(made.errors)")
        let judged = try run(["judge", "-"], input: made.output)
        #expect(judged.exitCode == 0, "\(judged.errors)")
        #expect(judged.output.hasPrefix("app: 43\nuser: 218471\nissued: "))
        let dated = try run(["make", "218471", "--app-id", "42", "--issued-at", "1700000000"]).output
        let json = try run(["judge", "--json", "--at", "2023-11-14T22:13:30Z", "-"], input: dated)
        #expect(
            json.output == "{\"app_id\":\"42\",\"user_id\":\"218471\",\"issued_at\":1700000000}\n",
            "\(json.errors)"
        )
        let late = try run(["judge", "-"], input: dated)
        #expect(late.exitCode == 1 && late.output.hasPrefix("refused: invalid_signed_request: The member issued_at"))
        // A signed request begins with base64url and so may begin with a hyphen, like an option.
        let other = made.output.hasPrefix("-") ? "x" : "-"
        let rest = made.output.dropFirst().trimmingCharacters(in: .newlines)
        let forged = try run(["judge", "--json", "--", other + rest])
        #expect(forged.exitCode == 1 && forged.output.hasPrefix("{\"code\":\"invalid_signed_request\",\"detail\":\""))
        #expect(try run(["make", "1"]).errors.contains("name one with --app-id"))
        #expect(try run(["judge", "a.b"], secrets: nil).exitCode == 78)
        for output in [made, judged, forged] { #expect(!(output.output + output.errors).contains(Self.appSecret)) }
    }
}
