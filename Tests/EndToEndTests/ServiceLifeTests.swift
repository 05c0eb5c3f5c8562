import Foundation
import LLHTTP
import LLStandIn
import LLTestSupport
import Testing

@Suite("serve: a real process with a real issuer", .live)
struct ServiceLifeTests {
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

    @Test(
        "The beginning of another protocol is named in the answer and in the log",
        arguments: [
            ("PROXY TCP4 10.0.0.1 10.0.0.2 4000 8080\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "PROXY protocol"),
            ("\r\n\r\n\0\r\nQUIT\n\u{21}\u{11}\0\u{0c}aaaabbbbcccc", "PROXY protocol"),
            ("\u{16}\u{03}\u{01}\u{02}\0\u{01}\0\u{01}\u{7c}\u{03}\u{03}\r\n", "TLS handshake"),
        ]
    )
    func foreignProtocols(bytes: String, name: String) throws {
        let service = try RunningService(jwksURL: "http://127.0.0.1:1/")
        let answer = try service.exchange(bytes)
        #expect(answer.status == 400 && answer.text.contains(name), "\(answer.text)")
        #expect(service.process.waitForError(name), "\(service.process.errorText)")
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

    @Test("Keys that have become too old are no keys in the metrics, and one error line says it")
    func outdatedKeys() throws {
        var environment = ["LIMITED_LOGIN_JWKS_MAX_STALE_SECONDS": "0"]
        for name in ["TTL", "MINIMUM_TTL", "MAXIMUM_TTL"] { environment["LIMITED_LOGIN_JWKS_\(name)_SECONDS"] = "1" }
        let (issuer, service) = try RunningService.withIssuer(environment)
        issuer.process.end()
        #expect(service.process.waitForError("\"message\":\"the keys are too old\""))
        #expect(try service.get("/metrics", admin: true).text.contains("jwks_keys 0\n"))
        #expect(service.process.errorText.ranges(of: "the keys are too old").count == 1)
    }

    @Test("A seed file lets it serve at once while the issuer cannot be reached")
    func seedFile() throws {
        let issuer = try IssuerProcess()
        let folder = try ShortFolder()
        let file = "\(folder.path)/seed.json"
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

    @Test(
        "Keys are fetched over TLS from a trusted peer alone: without them 503, not ready, and the log has the reason"
    )
    func privateAuthority() throws {
        let certificates = try TestCertificates.shared.get()
        let set = TokenMinter.jwkSet([StandInKeys.current, StandInKeys.previous])
        let token = try StandInKeys.current.mint(
            MintedClaims(audience: RunningService.appID, subject: "1", nonce: "n-1", issuedAt: WallClock.unixSeconds())
        )
        for (identity, isTrusted) in [
            (certificates.good, true), (certificates.good, false), (certificates.expired, true),
        ] {
            let issuer = try ScriptedIssuer(.tls(identity)) { _, peer in
                try peer.answer(fields: ["Content-Type: application/json", "Cache-Control: max-age=600"], set)
            }
            defer { issuer.stop() }
            let trust = isTrusted ? ["LIMITED_LOGIN_CA_FILE": certificates.authorityFile] : [:]
            let service = try RunningService(jwksURL: issuer.url, environment: trust)
            if isTrusted, identity.certificateFile == certificates.good.certificateFile {
                #expect(try service.waitUntilReady())
                #expect(try service.verify(token).text.contains("\"user_id\":\"1\""))
                continue
            }
            #expect(service.process.waitForError("keys could not be fetched"))
            #expect(service.process.errorText.contains(isTrusted ? "expired" : "certificate"))
            let answer = try service.verify(token)
            #expect(answer.status == 503 && answer.code == "keys_unavailable" && answer["retry-after"] != nil)
            #expect(try service.get("/readyz").status == 503 && service.get("/livez").status == 200)
            #expect(issuer.requestCount == 0)
        }
    }
}
