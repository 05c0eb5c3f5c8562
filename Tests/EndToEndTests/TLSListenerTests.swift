import Foundation
import LLCrypto
import LLHTTPServer
import LLSockets
import LLTestSupport
import Testing

@Suite("serve over TLS, with curl and openssl", .live)
struct TLSListenerTests {
    let certificates: TestCertificates

    init() throws {
        certificates = try TestCertificates.shared.get()
    }

    func service(clientAuthority: Bool = false, _ identity: TestCertificates.Identity? = nil) throws -> RunningService {
        let identity = identity ?? certificates.good
        var environment = [
            "LIMITED_LOGIN_TLS_CERTIFICATE_FILE": identity.certificateFile,
            "LIMITED_LOGIN_TLS_KEY_FILE": identity.keyFile,
        ]
        if clientAuthority { environment["LIMITED_LOGIN_TLS_CLIENT_CA_FILE"] = certificates.authorityFile }
        // The key source is down: the requests of this test need no keys.
        return try RunningService(jwksURL: "http://127.0.0.1:1/", environment: environment)
    }

    func curl(_ service: RunningService, _ arguments: [String] = [], path: String = "/livez") throws -> FinishedRun {
        try FinishedRun(
            ["-sS", "--max-time", "20", "--cacert", certificates.authorityFile] + arguments
                + ["https://localhost:\(service.address.port)\(path)"],
            program: "/usr/bin/curl"
        )
    }

    func openssl(_ service: RunningService, _ arguments: [String], input: String = "") throws -> FinishedRun {
        try FinishedRun(
            ["s_client", "-connect", "127.0.0.1:\(service.address.port)", "-CAfile", certificates.authorityFile]
                + arguments,
            program: "/usr/bin/openssl",
            input: input
        )
    }

    func asClient(_ identity: TestCertificates.Identity) -> [String] {
        ["--cert", identity.certificateFile, "--key", identity.keyFile]
    }

    @Test("curl is served over TLS 1.3 and 1.2, chooses http/1.1, and keeps its connection")
    func curl() throws {
        let service = try service()
        let write = ["-w", "%{http_version} %{num_connects} "]
        let two = try curl(service, write + ["https://localhost:\(service.address.port)/livez"])
        #expect(two.exitCode == 0, "\(two.errors)")
        #expect(two.output.contains("1.1 1 ") && two.output.contains("1.1 0 "), "\(two.output)")
        #expect(try curl(service, ["--tls-max", "1.2"]).exitCode == 0)
        #expect(try curl(service, ["--tlsv1.3"]).exitCode == 0)
        #expect(try curl(service, ["--no-alpn"]).exitCode == 0)
        let verify = try curl(
            service,
            [
                "-H", "Content-Type: application/json", "-d", #"{"id_token":"a.b.c","nonce":"n"}"#, "-w",
                " %{http_code}",
            ],
            path: "/verify"
        )
        #expect(verify.output.hasSuffix(" 503") || verify.output.hasSuffix(" 401"), "\(verify.output)")
        // The administrative listener stays plain.
        #expect(try service.get("/livez", admin: true).status == 200)
        let metrics = try service.get("/metrics", admin: true).text
        #expect(metrics.contains("\nlimited_login_tls_certificate_expiry_timestamp_seconds "))
    }

    @Test("The health check works while the service's listener demands certificates")
    func healthCheck() throws {
        let service = try service(clientAuthority: true)
        let check = try FinishedRun(
            ["healthcheck", "--app-ids", "1", "--admin-listen", "\(service.adminAddress)"]
        )
        #expect(check.exitCode == 0, "\(check.errors)")
    }

    @Test(
        "Old protocol versions and weak ciphers get no handshake",
        arguments: [
            ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], ["-tls1", "-cipher", "ALL:@SECLEVEL=0"],
            ["-tls1_2", "-cipher", "AES128-GCM-SHA256"], ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"],
            ["-tls1_2", "-cipher", "aNULL:@SECLEVEL=0"], ["-alpn", "h2"], ["-alpn", "http/1.0,h2c"],
        ]
    )
    func refused(_ arguments: [String]) throws {
        let service = try service()
        let run = try openssl(service, arguments)
        #expect(run.exitCode != 0)
        #expect(run.output.contains("Cipher is (NONE)") || run.output.isEmpty, "\(run.output)")
        if arguments.first == "-alpn" { #expect(run.errors.contains("no application protocol")) }
        if arguments.first == "-alpn" { #expect(try Self.waits(service, forFailedHandshakes: 1)) }
        #expect(try curl(service).exitCode == 0)
    }

    /// Waits until the metrics show failed handshakes; one counts once the server has seen the client's end.
    private static func waits(_ service: RunningService, forFailedHandshakes count: Int) throws -> Bool {
        let line = "http_server_connections_closed_total{cause=\"tls_handshake\"} \(count)\n"
        return try becomesTrue { try service.get("/metrics", admin: true).text.contains(line) }
    }

    @Test("Renegotiation is refused and early data not offered")
    func renegotiation() throws {
        let service = try service()
        let run = try openssl(service, ["-tls1_2"], input: "R\n")
        #expect(run.errors.contains("no renegotiation") || run.output.contains("no renegotiation"), "\(run.errors)")
        let early = try openssl(service, ["-tls1_3"], input: "Q\n")
        #expect(early.output.contains("Early data was not sent"))
        #expect(early.output.contains("Verify return code: 0 (ok)"))
    }

    @Test("Sessions resume", arguments: ["-tls1_2", "-tls1_3"])
    func resumption(_ version: String) throws {
        let service = try service()
        let file = FileManager.default.temporaryDirectory.appending(path: "session-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: file) }
        let request = "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        // The tickets of TLS 1.3 come with the first data, so the connection is read to its end.
        let first = try openssl(service, [version, "-sess_out", file, "-ign_eof"], input: request)
        #expect(first.output.contains("New, TLSv1"), "\(first.output)")
        let second = try openssl(service, [version, "-sess_in", file, "-ign_eof"], input: request)
        #expect(second.output.contains("Reused, TLSv1"), "\(second.output)")
        #expect(second.output.contains("HTTP/1.1 200 OK"))
    }

    @Test("No client with a certificate resumes: each handshake checks it", arguments: ["-tls1_2", "-tls1_3"])
    func noResumptionWithCertificates(_ version: String) throws {
        let service = try service(clientAuthority: true)
        let file = FileManager.default.temporaryDirectory.appending(path: "session-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: file) }
        let request = "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        let identity = ["-cert", certificates.good.certificateFile, "-key", certificates.good.keyFile, version]
        let first = try openssl(service, identity + ["-sess_out", file, "-ign_eof"], input: request)
        #expect(first.output.contains("HTTP/1.1 200 OK"), "\(first.output)")
        #expect(!first.output.contains("session ticket:"))
        // With TLS 1.3 there is no session to keep; with TLS 1.2 there is one without an id.
        guard FileManager.default.fileExists(atPath: file) else { return }
        let second = try openssl(service, identity + ["-sess_in", file, "-ign_eof"], input: request)
        #expect(second.output.contains("New, TLSv1"), "\(second.output)")
    }

    @Test(
        "A connection with a client certificate ends at its maximum age, 5 min by default; others go on",
        arguments: [(true, Duration.zero, 1), (true, nil, 2), (false, .zero, 2)]
    )
    func ageOfVerifiedConnections(_ clientsAreVerified: Bool, _ age: Duration?, _ answers: Int) async throws {
        var limits = HTTPServerLimits()
        #expect(limits.verifiedConnectionAge == .seconds(300))
        if let age { limits.verifiedConnectionAge = age }
        let context = try certificates.good.serverContext(
            clientAuthoritiesFile: clientsAreVerified ? certificates.authorityFile : nil
        )
        let server = try TestServer(limits: limits, tls: Published(context))
        let address = "\(server.address)"
        let identity = ["-cert", certificates.good.certificateFile, "-key", certificates.good.keyFile]
        let get = "GET / HTTP/1.1\r\nHost: a\r\n"
        let run = try FinishedRun(
            ["s_client", "-connect", address, "-CAfile", certificates.authorityFile, "-ign_eof"] + identity,
            program: "/usr/bin/openssl",
            input: "\(get)\r\n\(get)Connection: close\r\n\r\n"
        )
        #expect(run.output.ranges(of: "HTTP/1.1 200").count == answers, "\(run.output)")
        await server.stop()
    }

    @Test(
        "Keys are exchanged only by X25519, P-256 and P-384",
        arguments: [
            ("X25519", true), ("P-256", true), ("P-384", true), ("X448", false), ("P-521", false),
            // The server does not support the first group, so the client sends two hellos.
            ("X448:P-384", true),
        ]
    )
    func groups(_ name: String, _ isTaken: Bool) throws {
        let service = try service()
        let run = try openssl(service, ["-tls1_3", "-groups", name])
        #expect((run.exitCode == 0) == isTaken, "\(run.errors)")
    }

    @Test("With client authorities set, a caller needs a certificate from one of them on every path")
    func mutual() throws {
        let service = try service(clientAuthority: true)
        #expect(try curl(service, asClient(certificates.good)).exitCode == 0)
        #expect(try curl(service, asClient(certificates.good) + ["--tls-max", "1.2"]).exitCode == 0)
        for version in ["1.2", "1.3"] {
            for identity in [
                nil, certificates.expired, certificates.notYetValid, certificates.untrusted, certificates.selfSigned,
            ] {
                let run = try curl(service, (identity.map(asClient) ?? []) + ["--tls-max", version])
                #expect(run.exitCode != 0)
                #expect(run.output.isEmpty)
            }
        }
        // The alerts name the reason.
        #expect(try curl(service).errors.contains("certificate required"))
        #expect(try curl(service, asClient(certificates.expired)).errors.contains("certificate expired"))
        #expect(try curl(service, asClient(certificates.untrusted)).errors.contains("unknown ca"))
        #expect(try Self.waits(service, forFailedHandshakes: 13))
    }

    @Test("A client may show a chain of at most 16 KiB", arguments: [(0, true), (9, true), (60, false)])
    func clientChain(_ others: Int, _ isTaken: Bool) throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "chain-\(UUID().uuidString).pem").path
        defer { try? FileManager.default.removeItem(atPath: file) }
        let parts = [certificates.good.certificateFile] + Array(repeating: certificates.authorityFile, count: others)
        try parts.map { try String(contentsOfFile: $0, encoding: .utf8) }.joined()
            .write(toFile: file, atomically: true, encoding: .utf8)
        let service = try service(clientAuthority: true)
        for version in ["1.2", "1.3"] {
            let identity = ["--cert", file, "--key", certificates.good.keyFile, "--tls-max", version]
            let run = try curl(service, identity)
            #expect((run.exitCode == 0) == isTaken, "\(run.errors)")
        }
    }

    @Test("Plain HTTP sent to the TLS port gets no HTTP answer")
    func plain() throws {
        let service = try service()
        let run = try FinishedRun(
            ["-sS", "--max-time", "20", "http://127.0.0.1:\(service.address.port)/livez"],
            program: "/usr/bin/curl"
        )
        #expect(run.exitCode != 0)
    }

    @Test("A certificate that has expired or is not valid yet is reported at the start and at a reload")
    func unfitCertificates() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "unfit-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (certificate, key) = (folder.appending(path: "c.pem"), folder.appending(path: "k.pem"))
        func install(_ identity: TestCertificates.Identity) throws {
            try Data(contentsOf: URL(filePath: identity.certificateFile)).write(to: certificate)
            try Data(contentsOf: URL(filePath: identity.keyFile)).write(to: key)
        }
        try install(certificates.expired)
        let service = try RunningService(
            jwksURL: "http://127.0.0.1:1/",
            environment: [
                "LIMITED_LOGIN_TLS_CERTIFICATE_FILE": certificate.path, "LIMITED_LOGIN_TLS_KEY_FILE": key.path,
            ]
        )
        #expect(service.process.waitForErrors(1, of: "the TLS certificate has expired"))
        try install(certificates.notYetValid)
        service.process.signal(SIGHUP)
        #expect(service.process.waitForErrors(1, of: "the TLS certificate is not valid yet"))
        try install(certificates.expired)
        service.process.signal(SIGHUP)
        #expect(service.process.waitForErrors(2, of: "the TLS certificate has expired"))
    }

    @Test("SIGHUP replaces the certificate; a pair that does not match or a missing file leaves the old one")
    func reload() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "tls-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let own = TestCertificates.Identity(certificateFile: folder + "/certificate.pem", keyFile: folder + "/key.pem")
        func install(certificate: String, key: String) throws {
            for (source, target) in [(certificate, own.certificateFile), (key, own.keyFile)] {
                try Data(contentsOf: URL(filePath: source)).write(to: URL(filePath: target), options: .atomic)
            }
        }
        let (good, other) = (certificates.good, certificates.untrusted)
        try install(certificate: good.certificateFile, key: good.keyFile)
        let service = try service(own)
        #expect(try curl(service).exitCode == 0)
        let client = try TLSClient(service.listenAddress, authorityFile: certificates.authorityFile)

        try install(certificate: other.certificateFile, key: good.keyFile)
        service.process.signal(SIGHUP)
        #expect(service.process.waitForErrors(1, of: "configuration not reloaded"))
        #expect(service.process.errorText.contains(own.keyFile))
        #expect(try curl(service).exitCode == 0)
        try FileManager.default.removeItem(atPath: own.keyFile)
        service.process.signal(SIGHUP)
        #expect(service.process.waitForErrors(2, of: "configuration not reloaded"))
        #expect(try curl(service).exitCode == 0)

        try install(certificate: other.certificateFile, key: other.keyFile)
        service.process.signal(SIGHUP)
        #expect(service.process.waitForErrors(1, of: "configuration reloaded"))
        #expect(try curl(service).exitCode != 0)
        #expect(try curl(service, ["--cacert", certificates.otherAuthorityFile]).exitCode == 0)
        // The earlier connection goes on.
        #expect(try client.exchange("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")?.status == 200)
        service.process.terminate()
        #expect(service.process.waitForExit() == 0)
    }

    @Test(
        "Files that cannot be used stop the start with exit code 78, and the error names them",
        arguments: ["/nonexistent.pem", "/dev/null", "/etc/passwd"]
    )
    func unusable(_ file: String) throws {
        let good = certificates.good
        for files in [
            [file, good.keyFile, certificates.authorityFile], [good.certificateFile, file, certificates.authorityFile],
            [good.certificateFile, good.keyFile, file],
        ] {
            for command in ["serve", "check-config"] {
                let run = try FinishedRun([
                    command, "--app-ids", "1", "--jwks-urls", "http://127.0.0.1:1/",
                    "--tls-certificate-file", files[0], "--tls-key-file", files[1], "--tls-client-ca-file", files[2],
                ])
                #expect(run.exitCode == 78)
                #expect(run.errors.contains(file), "\(run.errors)")
            }
        }
    }
}
