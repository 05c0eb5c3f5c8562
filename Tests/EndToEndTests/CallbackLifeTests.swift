import Dispatch
import Foundation
import LLHTTP
import LLTestSupport
import Testing

@Suite("Facebook's callbacks and revocations, in running services", .live, .serialized)
struct CallbackLifeTests {
    private static let user = "2954873201847263"
    private static let appSecret = "a-secret-for-these-tests"

    @Test("After a user removes the app every replica refuses the old token, and the log tells nothing", .needsRedis)
    func life() throws {
        let redis = try RedisServer()
        let backend = try ScriptedIssuer { _, peer in try peer.answer("{}") }
        defer { backend.stop() }
        let port = try FreePort.take()
        let issuer = try IssuerProcess("--app-secret", Self.appSecret, "--service-url", "http://127.0.0.1:\(port)")
        let folder = try ShortFolder()
        let settings = [
            "app_secrets_file": try folder.write("secrets", "\(RunningService.appID) \(Self.appSecret)\n"),
            "callbacks_url": "http://127.0.0.1:\(backend.port)/webhooks",
            "callbacks_secret_file": try folder.write("webhooks", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3\n"),
            "data_deletion_status_url": "https://app.example/deletion",
            "replay_store": "redis://127.0.0.1:\(redis.port)",
        ]
        let services = try [port, 0].map { port in
            try RunningService(issuer, settings.merging(["listen": "127.0.0.1:\(port)"]) { $1 })
        }
        let old = try issuer.token("{\"nonce\":\"n-1\",\"iat\":\(WallClock.unixSeconds() - 30)}")
        for service in services { #expect(try service.verify(old).status == 200) }
        // If the store is not connected yet, Facebook sends the request again.
        #expect(
            try becomesTrue {
                let answer = try issuer.post("/users/\(Self.user)/deauthorize")
                return answer.status == 200 && answer.text == "{}"
            }
        )
        for service in services { #expect(try becomesTrue { try service.verify(old).code == "login_revoked" }) }
        #expect(backend.requests.allSatisfy { $0.value(of: "webhook-signature") != nil })
        let deletion = try issuer.post("/users/\(Self.user)/data-deletion")
        #expect(deletion.text.contains("https://app.example/deletion?code="), "\(deletion.text)")
        for service in services {
            service.stop()
            #expect(!service.process.errorText.contains(Self.user))
        }
    }

    @Test(
        "The other replicas learn of a login that Facebook may have ended, even if client and service stop early",
        .needsRedis
    )
    func revokedMeanwhile() throws {
        let redis = try RedisServer()
        let gate = DispatchSemaphore(value: 0)
        let graph = try ScriptedIssuer { _, _ in gate.wait() }
        defer {
            gate.signal()
            graph.stop()
        }
        let folder = try ShortFolder()
        let (key, clients) = try folder.clientKey()
        let service = try RunningService(
            IssuerProcess(),
            [
                "app_secrets_file": try folder.write("secrets", "\(RunningService.appID) \(Self.appSecret)\n"),
                "client_keys_file": clients, "graph_url": "http://127.0.0.1:\(graph.port)",
                "replay_store": "redis://127.0.0.1:\(redis.port)",
            ]
        )
        let client = try BlockingClient(service.address)
        client.send("DELETE /users/\(Self.user)/permissions HTTP/1.1\r\nHost: test\r\nX-Api-Key: \(key)\r\n\r\n")
        #expect(becomesTrue { graph.requestCount > 0 })
        client.reset()
        service.stop()
        #expect(try redis.send("ZCARD limited-login:revocations") == ":1\r\n")
    }

    @Test("The command line makes signed requests and judges them, with the documented exit codes")
    func commandLine() throws {
        let folder = try ShortFolder()
        let file = try folder.write("secrets", "42 \(Self.appSecret)\n43 another-\(Self.appSecret)\n")
        func run(_ words: String..., input: String = "", secrets: String? = file) throws -> FinishedRun {
            let environment = ["app_ids": "42,43", "app_secrets_file": secrets]
            let run = try FinishedRun(["signed-request"] + words, environment: environment, input: input)
            #expect(!(run.output + run.errors).contains(Self.appSecret))
            return run
        }
        let made = try run("make", "218471", "--app-id", "43")
        let judged = try run("judge", "-", input: made.output)
        #expect(judged.exitCode == 0 && judged.output.hasPrefix("app: 43\nuser: 218471\nissued: "), "\(judged.errors)")
        let dated = try run("make", "218471", "--app-id", "42", "--issued-at", "1700000000").output
        let json = try run("judge", "--json", "--at", "2023-11-14T22:13:30Z", "-", input: dated).output
        #expect(json == "{\"app_id\":\"42\",\"user_id\":\"218471\",\"issued_at\":1700000000}\n")
        let late = try run("judge", "-", input: dated)
        #expect(late.exitCode == 1 && late.output.hasPrefix("refused: invalid_signed_request: The member issued_at"))
        // A signed request begins with base64url and so may begin with a hyphen, like an option.
        let other = (made.output.hasPrefix("-") ? "x" : "-") + made.output.dropFirst().prefix { $0 != "\n" }
        let forged = try run("judge", "--json", "--", other)
        #expect(forged.exitCode == 1 && forged.output.hasPrefix("{\"code\":\"invalid_signed_request\",\"detail\":\""))
        #expect(try run("make", "1").errors.contains("name one with --app-id"))
        #expect(try run("judge", "a.b", secrets: nil).exitCode == 78)
    }
}
