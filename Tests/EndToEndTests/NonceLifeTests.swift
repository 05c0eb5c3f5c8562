import Foundation
import LLHTTP
import LLTestSupport
import Testing

/// The services of a test. They share a secret and, in some tests, a Redis server.
private struct Replicas {
    let issuer: IssuerProcess
    let services: [RunningService]
    let secretFile: String
    private let folder: ShortFolder

    init(_ count: Int, redis: RedisServer? = nil) throws {
        (issuer, folder) = (try IssuerProcess(), try ShortFolder())
        secretFile = try folder.nonceSecret()
        let store = redis.map { "redis://127.0.0.1:\($0.port)" }
        services = try (0..<count).map { [issuer, secretFile] _ in
            let settings = ["nonce_secret_file": secretFile, "gateway": "enabled", "replay_store": store]
            return try RunningService(issuer, settings)
        }
    }

    /// The text of a request that uses a new nonce of a replica, whose store may not be connected yet.
    func useNonce(_ index: Int) throws -> String {
        var nonce: String?
        try #require(
            try becomesTrue {
                let request = "POST /nonces HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"
                nonce = try services[index].exchange(request).member("nonce")
                return nonce != nil
            }
        )
        let token = try issuer.token("{\"nonce\":\"\(nonce ?? "")\"}")
        return RunningService.request("{\"id_token\":\"\(token)\",\"issued_nonce\":true}")
    }

    /// The text of a gateway's request that uses a new proof.
    func useProof() throws -> String {
        func proof(_ token: String) throws -> TestResponse {
            try issuer.post("/proofs", #"{"id_token":"\#(token)","method":"GET","url":"https://a.example/b"}"#)
        }
        let thumbprint = try #require(proof("").member("key_thumbprint"))
        let token = try issuer.token(#"{"cnf":{"jkt":"\#(thumbprint)"}}"#)
        let fields = [
            "Host: test", "Authorization: DPoP \(token)", "DPoP: \(try #require(proof(token).member("proof")))",
            "X-Forwarded-Method: GET", "X-Forwarded-Proto: https", "X-Forwarded-Host: a.example", "X-Forwarded-Uri: /b",
        ]
        return "GET /auth HTTP/1.1\r\n\(fields.joined(separator: "\r\n"))\r\n\r\n"
    }

    /// Sends a request two hundred times at once, to the replicas in turn; one is accepted, and the others get the code. A
    /// slow machine refuses some of the burst as overloaded; such a request was not accepted. If Redis answers a request
    /// too late, that may be the one to accept, so another request is made.
    func expectOneWinner(_ code: String, of request: () throws -> String) throws {
        var outcomes: [String: Int] = [:]
        _ = try becomesTrue {
            outcomes = try burst(request())
            #expect(outcomes["", default: 0] <= 1)
            return outcomes["replay_store_unavailable"] == nil
        }
        #expect(outcomes[""] == 1)
        #expect(outcomes[code, default: 0] + outcomes["overloaded", default: 0] == 199, "\(outcomes)")
    }

    /// The number of answers with each code; the code of an acceptance is empty.
    private func burst(_ request: String) throws -> [String: Int] {
        let clients = try (0..<200).map { try BlockingClient(services[$0 % services.count].address) }
        for client in clients { client.send(request) }
        var outcomes: [String: Int] = [:]
        for client in clients {
            let answer = try #require(client.readResponses(1).first)
            outcomes[answer.status == 200 ? "" : answer.code ?? "?", default: 0] += 1
        }
        return outcomes
    }
}

@Suite("Nonces from issue to use, in running services", .live, .serialized)
struct NonceLifeTests {
    @Test(
        "nonce new makes a nonce that the service accepts; verify accepts it with --nonce or --issued-nonce, even if used"
    )
    func commands() throws {
        let replicas = try Replicas(1)
        let options = ["--app-ids", RunningService.appID, "--nonce-secret-file", replicas.secretFile]
        let jwks = ["--jwks", replicas.issuer.jwksURL]
        var (nonce, token) = ("", "")
        // A service in memory mode accepts only nonces issued at least five seconds after its start.
        #expect(
            try becomesTrue {
                nonce = try FinishedRun(["nonce", "new"] + options).output.trimmingCharacters(in: .newlines)
                token = try replicas.issuer.token("{\"nonce\":\"\(nonce)\"}")
                let use = RunningService.request("{\"id_token\":\"\(token)\",\"issued_nonce\":true}")
                return try replicas.services[0].exchange(use).status == 200
            }
        )
        let foreign = try replicas.issuer.token()
        for (token, flags, code) in [
            (token, ["--issued-nonce"], nil), (token, ["--nonce", nonce], nil),
            (token, ["--nonce", nonce, "--issued-nonce"], nil), (foreign, ["--issued-nonce"], "nonce_not_issued"),
            (token, ["--nonce", String(nonce.dropLast()), "--issued-nonce"], "refused: "),
        ] as [(String, [String], String?)] {
            let judged = try FinishedRun(["verify", token] + jwks + flags + options)
            #expect(judged.exitCode == (code == nil ? 0 : 1) && judged.errors.isEmpty, "\(judged)")
            #expect(judged.output.contains(code ?? "accepted"), "\(judged)")
        }
        let json = try FinishedRun(["nonce", "new", "--json"] + options).output
        #expect(json.contains("\"app_id\":\"\(RunningService.appID)\""))
    }

    @Test(
        "Exactly one of two hundred requests with one nonce or one DPoP proof is accepted, on any of two replicas",
        .needsRedis
    )
    func twoReplicas() throws {
        let redis = try RedisServer()
        let replicas = try Replicas(2, redis: redis)
        for round in 0..<5 {
            try replicas.expectOneWinner("nonce_used") { try replicas.useNonce(round % 2) }
            try replicas.expectOneWinner("invalid_dpop_proof") { try replicas.useProof() }
        }
        let ready = try replicas.services[0].get("/readyz?verbose", admin: true).text
        #expect(ready.contains(#""replay_store":{"state":"up","kind":"redis"}"#))
        let metrics = try replicas.services[0].get("/metrics", admin: true).text
        #expect(metrics.contains("limited_login_replay_store_up 1\n"))
    }
}
