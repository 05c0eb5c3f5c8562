import Foundation
import LLTestSupport
import Testing

@Suite("serve: a real process with a real issuer", .live)
struct ServiceLifeTests {
    @Test("The first token of a new key makes the service fetch it; keys that left the set verify nothing")
    func rotation() throws {
        let (issuer, service) = try RunningService.withIssuer()
        let first = try issuer.token()
        #expect(try service.verify(first).status == 200)
        _ = try issuer.post("/rotate")
        #expect(try service.verify(try issuer.token()).status == 200)
        #expect(try service.verify(first).status == 200)
        _ = try issuer.post("/rotate")
        #expect(try service.verify(try issuer.token()).status == 200)
        let gone = try service.verify(first)
        #expect(gone.status == 401)
        #expect(gone.code == "unknown_key")
        #expect(service.process.errorText.contains("key set changed"))
        #expect(!service.process.errorText.contains(#"[\""#), "key IDs stand in the log as they are")
    }

    @Test("A connection stays usable after each refusal for which HTTP allows it")
    func connectionStaysUsable() throws {
        let (issuer, service) = try RunningService.withIssuer()
        let client = try BlockingClient(service.address)
        let good = RunningService.request("{\"id_token\":\"\(try issuer.token())\",\"nonce\":\"n-1\"}")
        let refusals: [(String, Int)] = [
            (RunningService.request("{"), 400), (RunningService.request("{\"id_token\":\"x\",\"nonce\":\"n\"}"), 401),
            ("GET /nothing HTTP/1.1\r\nHost: t\r\n\r\n", 404), ("PUT /verify HTTP/1.1\r\nHost: t\r\n\r\n", 405),
            ("POST /verify HTTP/1.1\r\nHost: t\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi", 415),
        ]
        for (request, status) in refusals {
            #expect(client.exchange(request)?.status == status)
            #expect(client.exchange(good)?.status == 200, "after \(status)")
        }
    }

    @Test("Probes are answered even if clients open more connections than there are descriptors")
    func descriptors() throws {
        let service = try RunningService(jwksURL: "http://127.0.0.1:1/", shell: "ulimit -n 200")
        var clients: [BlockingClient] = []
        for _ in 0..<250 { clients.append(try BlockingClient(service.address)) }
        for _ in 0..<20 { #expect(try service.get("/livez", admin: true).status == 200) }
        #expect(try service.get("/livez").status == 200)
        withExtendedLifetime(clients) {}
    }

    @Test("An idle connection ends after idle_timeout_seconds, on both listeners")
    func idleTimeout() throws {
        let service = try RunningService(
            jwksURL: "http://127.0.0.1:1/",
            environment: ["LIMITED_LOGIN_IDLE_TIMEOUT_SECONDS": "1"]
        )
        for address in [service.address, service.adminAddress] {
            #expect(try BlockingClient(address).read().end == .endOfStream)
        }
    }

    @Test("The limit of descriptors is raised to the hard limit")
    func raisedDescriptors() throws {
        let service = try RunningService(jwksURL: "http://127.0.0.1:1/", shell: "ulimit -Sn 200")
        let limits = try String(contentsOfFile: "/proc/\(service.process.identifier)/limits", encoding: .utf8)
        let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max open files") })
        let numbers = line.split(separator: " ").compactMap { Int($0) }
        #expect(numbers.count == 2 && numbers[0] == numbers[1])
    }

    @Test(
        "A request that HTTP forbids gets a problem document and a close",
        arguments: [
            ("GET / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/2.0\r\nHost: t\r\n\r\n", 505),
            ("POST /verify HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            (
                "POST /verify HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n",
                413
            ),
            ("GET /\(String(repeating: "a", count: 9000)) HTTP/1.1\r\nHost: t\r\n\r\n", 414),
            ("GET / HTTP/1.1\r\nHost: t\r\nX: \(String(repeating: "a", count: 40_000))\r\n\r\n", 431),
        ]
    )
    func forbidden(request: String, status: Int) throws {
        let service = try RunningService(jwksURL: "http://127.0.0.1:1/")
        let client = try BlockingClient(service.address)
        client.send(request)
        let answer = try #require(client.readResponses(1).first)
        #expect(answer.status == status)
        #expect(answer["content-type"] == "application/problem+json")
        #expect(answer["x-request-id"] != nil)
        #expect(answer["connection"] == "close")
    }

    @Test("SIGTERM stops it with exit code 0; readiness fails during the drain delay")
    func stopping() throws {
        let (issuer, service) = try RunningService.withIssuer(["LIMITED_LOGIN_DRAIN_DELAY_SECONDS": "10"])
        let token = try issuer.token()
        service.process.terminate()
        #expect(service.process.waitForError("\"message\":\"stopping\""))
        let unready = try service.get("/readyz")
        #expect(unready.status == 503)
        #expect(unready.code == "draining")
        #expect(try service.verify(token).status == 200)
        #expect(service.process.waitForExit() == 0)
        #expect(service.process.errorText.contains("\"requests_cut_off\":\"0\""))
    }

    @Test("A second SIGTERM ends it at once")
    func secondSignal() throws {
        let service = try RunningService(
            jwksURL: "http://127.0.0.1:1/",
            environment: ["LIMITED_LOGIN_DRAIN_DELAY_SECONDS": "300"]
        )
        service.process.terminate()
        #expect(service.process.waitForError("\"message\":\"stopping\""))
        let began = Date()
        service.process.terminate()
        #expect(service.process.waitForExit() == 143)
        #expect(Date().timeIntervalSince(began) < 30)
    }

    @Test("Metrics are served on the administrative listener and count requests and fetches")
    func metrics() throws {
        let (issuer, service) = try RunningService.withIssuer()
        #expect(try service.verify(try issuer.token()).status == 200)
        #expect(try service.verify("x").status == 401)
        let text = try service.get("/metrics", admin: true).text
        #expect(text.contains("limited_login_verifications_total{credential=\"id_token\",result=\"accepted\"} 1\n"))
        #expect(
            text.contains("limited_login_verifications_total{credential=\"id_token\",result=\"malformed_token\"} 1\n")
        )
        #expect(text.contains("jwks_keys 2\n"))
        #expect(text.contains("jwks_fetches_total{result=\"replaced\"} 1\n"))
        #expect(text.contains(try Regex("process_resident_memory_bytes [1-9]")))
        #expect(try service.get("/metrics").status == 404)
    }

    @Test("A seed file lets it serve at once while the issuer cannot be reached")
    func seedFile() throws {
        let issuer = try IssuerProcess()
        defer { issuer.process.end() }
        let file = FileManager.default.temporaryDirectory.appending(path: "seed-\(UUID().uuidString).json").path
        defer { try? FileManager.default.removeItem(atPath: file) }
        let first = try RunningService(jwksURL: issuer.jwksURL, environment: ["LIMITED_LOGIN_JWKS_FILE": file])
        #expect(try first.waitUntilReady())
        first.process.terminate()
        #expect(first.process.waitForExit() == 0)
        #expect(FileManager.default.fileExists(atPath: file))
        let second = try RunningService(
            jwksURL: "http://127.0.0.1:1/",
            environment: ["LIMITED_LOGIN_JWKS_FILE": file]
        )
        #expect(try second.get("/readyz").status == 200)
        #expect(try second.verify(try issuer.token()).status == 200)
    }
}
