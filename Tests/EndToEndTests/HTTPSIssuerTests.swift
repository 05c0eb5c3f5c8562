import LLSockets
import LLStandIn
import LLTestSupport
import Testing

@Suite("serve against an HTTPS issuer with a private authority", .live)
struct HTTPSIssuerTests {
    private static func issuer(_ identity: TestCertificates.Identity) throws -> ScriptedIssuer {
        let set = TokenMinter.jsonWebKeySet([StandInKeys.current, StandInKeys.previous])
        return try ScriptedIssuer(.tls(identity)) { _, peer in
            try peer.answer(fields: ["Content-Type: application/json", "Cache-Control: max-age=600"], set)
        }
    }

    private static func token() throws -> String {
        try StandInKeys.current.mint(
            MintedClaims(
                audience: RunningService.appID,
                subject: "1",
                nonce: "n-1",
                issuedAt: WallClock.unixSeconds()
            )
        )
    }

    @Test("Keys are fetched over verified TLS, and tokens are accepted")
    func verified() throws {
        let certificates = try TestCertificates.shared.get()
        let issuer = try Self.issuer(certificates.good)
        defer { issuer.stop() }
        let service = try RunningService(
            jwksURL: issuer.url,
            environment: ["LIMITED_LOGIN_CA_FILE": certificates.authorityFile]
        )
        #expect(try service.waitUntilReady())
        let answer = try service.verify(try Self.token())
        #expect(answer.status == 200)
        #expect(answer.text.contains("\"user_id\":\"1\""))
        #expect(issuer.requestCount == 1)
    }

    @Test(
        "No keys are read from an untrusted peer: 503, not ready, and the log has the reason",
        arguments: [
            ("no authority given", "certificate"), ("wrong name", "name"), ("expired", "expired"),
            ("self-signed", "certificate"),
        ]
    )
    func refused(fault: String, reason: String) throws {
        let certificates = try TestCertificates.shared.get()
        let identity =
            switch fault {
            case "wrong name": certificates.wrongName
            case "expired": certificates.expired
            case "self-signed": certificates.selfSigned
            default: certificates.good
            }
        let issuer = try Self.issuer(identity)
        defer { issuer.stop() }
        let trust = fault == "no authority given" ? [:] : ["LIMITED_LOGIN_CA_FILE": certificates.authorityFile]
        let service = try RunningService(jwksURL: issuer.url, environment: trust)
        #expect(service.process.waitForError("keys could not be fetched"))
        #expect(service.process.errorText.lowercased().contains(reason), "\(service.process.errorText)")
        let answer = try service.verify(try Self.token())
        #expect(answer.status == 503)
        #expect(answer.code == "keys_unavailable")
        #expect(answer["retry-after"] != nil)
        let ready = try service.get("/readyz")
        #expect(ready.status == 503)
        #expect(try service.get("/livez").status == 200)
        #expect(issuer.requestCount == 0)
    }

    @Test("A missing file of authorities stops the start")
    func missingAuthorities() throws {
        let run = try FinishedRun(
            ["serve"],
            environment: [
                "LIMITED_LOGIN_APP_IDS": "1", "LIMITED_LOGIN_CA_FILE": "/nonexistent/ca.pem",
                "LIMITED_LOGIN_LISTEN": "127.0.0.1:0", "LIMITED_LOGIN_ADMIN_LISTEN": "127.0.0.1:0",
            ]
        )
        #expect(run.exitCode == 78)
        #expect(run.errors.contains("/nonexistent/ca.pem"))
        #expect(run.errors.split(separator: "\n").count == 1)
    }
}
