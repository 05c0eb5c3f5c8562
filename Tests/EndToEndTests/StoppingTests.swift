import Dispatch
import Foundation
import LLHTTP
import LLTestSupport
import Testing

@Suite("serve: SIGTERM while requests are under way", .live)
struct StoppingTests {
    @Test(
        "The other replicas learn of a login that Facebook may have ended, even if client and service stop early",
        .needsRedis
    )
    func revokedMeanwhile() throws {
        let redis = try RedisServer()
        let gate = DispatchSemaphore(value: 0)
        let graph = try ScriptedIssuer { _, _ in gate.wait() }
        let issuer = try IssuerProcess()
        defer {
            gate.signal()
            graph.stop()
            issuer.process.end()
        }
        let folder = try ShortFolder()
        let (key, clients) = try folder.clientKey()
        let secrets = try folder.write("secrets", "\(RunningService.appID) 0123456789abcdef0123456789abcdef\n")
        let service = try RunningService(
            jwksURL: issuer.jwksURL,
            environment: [
                "LIMITED_LOGIN_APP_SECRETS_FILE": secrets, "LIMITED_LOGIN_CLIENT_KEYS_FILE": clients,
                "LIMITED_LOGIN_GRAPH_URL": "http://127.0.0.1:\(graph.port)",
                "LIMITED_LOGIN_REPLAY_STORE": "redis://127.0.0.1:\(redis.port)",
            ]
        )
        #expect(try service.waitUntilReady())
        let client = try BlockingClient(service.address)
        client.send("DELETE /users/2954873201847263/permissions HTTP/1.1\r\nHost: test\r\nX-Api-Key: \(key)\r\n\r\n")
        #expect(becomesTrue { graph.requestCount > 0 })
        client.reset()
        service.process.terminate()
        #expect(service.process.waitForExit() == 0)
        #expect(try redis.send("ZCARD limited-login:revocations") == ":1\r\n")
    }
}
