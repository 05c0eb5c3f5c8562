import Foundation
import LLHTTP
import LLTestSupport
import Testing

/// The services of a test. They share a secret and, in some tests, a Redis server.
///
/// Nothing changes after `init`, and every request has a connection of its own; hence `@unchecked Sendable`.
private final class Replicas: @unchecked Sendable {
    let issuer: IssuerProcess
    let services: [RunningService]
    let secretFile = FileManager.default.temporaryDirectory.appending(path: "secret-\(UUID().uuidString)").path

    init(_ count: Int, redis: RedisServer? = nil) throws {
        let issuer = try IssuerProcess()
        self.issuer = issuer
        try Self.writeSecrets([Self.secret()], to: secretFile)
        var environment = ["LIMITED_LOGIN_NONCE_SECRET_FILE": secretFile, "LIMITED_LOGIN_GATEWAY": "enabled"]
        environment["LIMITED_LOGIN_REPLAY_STORE"] = redis.map { "redis://127.0.0.1:\($0.port)" }
        services = try (0..<count).map { [environment] _ in
            try RunningService(jwksURL: issuer.jwksURL, environment: environment)
        }
        for service in services { #expect(try service.waitUntilReady()) }
    }

    deinit {
        for service in services { service.process.end() }
        try? FileManager.default.removeItem(atPath: secretFile)
    }

    static func secret() throws -> String {
        try FinishedRun(["nonce", "secret"]).output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    static func writeSecrets(_ secrets: [String], to path: String) throws {
        try Data((secrets.joined(separator: "\n") + "\n").utf8).write(to: URL(filePath: path), options: .atomic)
    }

    /// Requests a nonce from a replica until it issues one: its store may not be connected yet.
    func nonce(_ index: Int = 0) throws -> String {
        let request = "POST /nonces HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"
        let deadline = MonotonicClock.now() + patienceOfTests
        while MonotonicClock.now() < deadline {
            let answer = try services[index].exchange(request)
            if answer.status == 503 { continue }
            let start = try #require(answer.text.range(of: "\"nonce\":\"")).upperBound
            return String(answer.text[start...].prefix { $0 != "\"" })
        }
        throw TestSupportError("no nonce is issued")
    }

    /// The text of a gateway's request that uses a new proof.
    func useProof() throws -> String {
        func proof(_ token: String) throws -> [String: String] {
            let body = #"{"id_token":"\#(token)","method":"GET","url":"https://a.example/b"}"#
            return try JSONDecoder().decode([String: String].self, from: Data(issuer.post("/proofs", body).body))
        }
        let thumbprint = try #require(proof("")["key_thumbprint"])
        let token = try issuer.token(#"{"cnf":{"jkt":"\#(thumbprint)"}}"#)
        let fields = [
            "Host: test", "Authorization: DPoP \(token)", "DPoP: \(try #require(proof(token)["proof"]))",
            "X-Forwarded-Method: GET", "X-Forwarded-Proto: https", "X-Forwarded-Host: a.example", "X-Forwarded-Uri: /b",
        ]
        return "GET /auth HTTP/1.1\r\n\(fields.joined(separator: "\r\n"))\r\n\r\n"
    }

    /// The text of a request that uses a nonce.
    func use(_ nonce: String) throws -> String {
        let token = try issuer.token("{\"nonce\":\"\(nonce)\"}")
        return RunningService.request("{\"id_token\":\"\(token)\",\"issued_nonce\":true}")
    }

    /// Sends the same request many times at once, to the replicas in turn. Returns the number of answers by code; the
    /// code of 200 is "".
    private func race(_ request: String, count: Int = 200) throws -> [String: Int] {
        let clients = try (0..<count).map { index in
            try BlockingClient(services[index % services.count].address)
        }
        for client in clients { client.send(request) }
        var outcomes: [String: Int] = [:]
        for client in clients {
            let answer = try #require(client.readResponses(1).first)
            outcomes[answer.status == 200 ? "" : answer.code ?? "?", default: 0] += 1
        }
        return outcomes
    }

    /// A slow machine refuses some of the burst as overloaded; such a request was not accepted.
    func expectOneWinner(of request: String, _ code: String) throws {
        let outcomes = try race(request)
        #expect(outcomes[""] == 1)
        #expect(outcomes[code, default: 0] + outcomes["overloaded", default: 0] == 199, "\(outcomes)")
    }
}

@Suite("Nonces from issue to use, in running services", .live, .serialized)
struct NonceLifeTests {
    @Test(
        "nonce new makes a nonce that the service accepts; verify accepts it with --nonce or --issued-nonce, even if used"
    )
    func commands() throws {
        let replicas = try Replicas(1)
        let service = replicas.services[0]
        let options = ["--app-ids", RunningService.appID, "--nonce-secret-file", replicas.secretFile]
        let deadline = MonotonicClock.now() + patienceOfTests
        var answer: TestResponse?
        // A service in memory mode accepts only nonces issued at least five seconds after its start.
        while answer?.status != 200, MonotonicClock.now() < deadline {
            let made = try FinishedRun(["nonce", "new"] + options)
            #expect(made.exitCode == 0)
            let nonce = made.output.trimmingCharacters(in: .newlines)
            #expect(nonce.utf8.count == 90)
            let token = try replicas.issuer.token("{\"nonce\":\"\(nonce)\"}")
            answer = try service.exchange(RunningService.request("{\"id_token\":\"\(token)\",\"issued_nonce\":true}"))
            for (flags, code) in [
                (["--issued-nonce"], 0), (["--nonce", nonce], 0), (["--nonce", nonce, "--issued-nonce"], 0),
                (["--nonce", String(nonce.dropLast()), "--issued-nonce"], 1),
            ] {
                let judged = try FinishedRun(["verify", token, "--jwks", replicas.issuer.jwksURL] + flags + options)
                #expect(judged.exitCode == code && judged.errors.isEmpty, "\(judged.output)\(judged.errors)")
            }
        }
        #expect(answer?.status == 200)
        let foreign = try FinishedRun(
            ["verify", try replicas.issuer.token(), "--issued-nonce", "--jwks", replicas.issuer.jwksURL] + options
        )
        #expect(foreign.exitCode == 1)
        #expect(foreign.output.contains("nonce_not_issued"))
        let json = try FinishedRun(["nonce", "new", "--json"] + options).output
        #expect(json.contains("\"app_id\":\"\(RunningService.appID)\""))
        #expect(try FinishedRun(["nonce", "new", "--app-id", "43"] + options).exitCode != 0)
    }
}

@Suite("Two replicas with one Redis", .live, .serialized, .needsRedis)
struct ReplicaTests {
    private let redis: RedisServer
    private let replicas: Replicas

    init() throws {
        redis = try RedisServer()
        replicas = try Replicas(2, redis: redis)
    }

    @Test("Exactly one of two hundred requests with one nonce or one DPoP proof is accepted, on any of two replicas")
    func twoReplicas() throws {
        for round in 0..<5 {
            try replicas.expectOneWinner(of: replicas.use(replicas.nonce(round % 2)), "nonce_used")
            try replicas.expectOneWinner(of: replicas.useProof(), "invalid_dpop_proof")
        }
        #expect(
            try replicas.services[0].get("/readyz?verbose", admin: true).text.contains(
                #""replay_store":{"state":"up","kind":"redis"}"#
            )
        )
        #expect(
            try replicas.services[0].get("/metrics", admin: true).text.contains("limited_login_replay_store_up 1\n")
        )
        for service in replicas.services {
            service.process.terminate()
            #expect(service.process.waitForExit() == 0)
            #expect(service.process.errorText.contains("replay store up"))
        }
    }
}
