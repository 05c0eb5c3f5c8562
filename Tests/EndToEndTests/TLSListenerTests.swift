import Foundation
import LLHTTP
import LLJOSE
import LLTestSupport
import Testing

@Suite("serve over TLS, with curl and openssl", .live)
struct TLSListenerTests {
    let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    func service(clientAuthority: Bool = false, _ identity: TestCertificates.Identity? = nil) throws -> RunningService {
        let identity = identity ?? certificates.good
        return try RunningService(
            nil,
            [
                "tls_certificate_file": identity.certificateFile, "tls_key_file": identity.keyFile,
                "tls_client_ca_file": clientAuthority ? certificates.authorityFile : nil,
            ]
        )
    }

    func curl(_ service: RunningService, _ arguments: [String] = []) throws -> FinishedRun {
        let own = ["-sS", "--max-time", "20", "--cacert", certificates.authorityFile]
        let url = "https://localhost:\(service.address.port)/livez"
        return try FinishedRun(own + arguments + [url], program: "/usr/bin/curl")
    }

    func openssl(_ service: RunningService, _ arguments: [String], input: String = "") throws -> FinishedRun {
        let own = ["s_client", "-connect", "127.0.0.1:\(service.address.port)", "-CAfile", certificates.authorityFile]
        return try FinishedRun(own + arguments, program: "/usr/bin/openssl", input: input)
    }

    /// The arguments of `openssl s_client`, and true if the handshake succeeds.
    private static let handshakes: [(arguments: [String], succeeds: Bool)] = [
        (["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], false), (["-tls1", "-cipher", "ALL:@SECLEVEL=0"], false),
        (["-tls1_2", "-cipher", "AES128-GCM-SHA256"], false), (["-tls1_2", "-cipher", "aNULL:@SECLEVEL=0"], false),
        (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"], false), (["-alpn", "http/1.0,h2c"], false),
        (["-tls1_3", "-groups", "X25519"], true), (["-tls1_3", "-groups", "P-256"], true),
        (["-tls1_3", "-groups", "P-384"], true), (["-tls1_3", "-groups", "X448"], false),
        (["-tls1_3", "-groups", "P-521"], false), (["-alpn", "h2"], false),
        // The server does not support the first group, so the client sends two hellos.
        (["-tls1_3", "-groups", "X448:P-384"], true),
    ]

    @Test("curl and openssl are served over TLS 1.3 and 1.2; old versions, weak ciphers and other groups are refused")
    func handshakes() throws {
        let service = try service()
        let write = ["-w", "%{http_version} %{num_connects} "]
        let two = try curl(service, write + ["https://localhost:\(service.address.port)/livez"])
        #expect(two.output.contains("1.1 1 ") && two.output.contains("1.1 0 "), "\(two.output)\(two.errors)")
        for option in [["--tls-max", "1.2"], ["--tlsv1.3"], ["--no-alpn"]] {
            #expect(try curl(service, option).exitCode == 0)
        }
        for (arguments, succeeds) in Self.handshakes {
            let run = try openssl(service, arguments)
            #expect((run.exitCode == 0) == succeeds, "\(arguments): \(run.errors)")
            #expect(succeeds || run.output.contains("Cipher is (NONE)") || run.output.isEmpty, "\(run.output)")
            if arguments.first == "-alpn" { #expect(run.errors.contains("no application protocol")) }
        }
        let again = try openssl(service, ["-tls1_2"], input: "R\n")
        #expect(again.errors.contains("no renegotiation") || again.output.contains("no renegotiation"))
        let early = try openssl(service, ["-tls1_3"], input: "Q\n")
        #expect(early.output.contains("Early data was not sent") && early.output.contains("Verify return code: 0 (ok)"))
        for line in ["GET /livez HTTP/1.1", "DELETE / HTTP/1.1", "PROXY TCP4 10.0.0.1 10.0.0.2 4000 8080"] {
            let answer = try BlockingClient(service.address).exchange("\(line)\r\nHost: a\r\n\r\n")
            #expect(answer?.status == 400 && answer?.text.contains("use https") == true, "\(line)")
        }
        #expect(service.process.waitForErrors(3, of: "the bytes are no TLS"), "\(service.process.errorText)")
        #expect(try curl(service).exitCode == 0)
        // The administrative listener stays plain.
        let metrics = try service.get("/metrics", admin: true).text
        #expect(metrics.contains("\nlimited_login_tls_certificate_expiry_timestamp_seconds "))
    }

    @Test(
        "Sessions resume, but never with a client's certificate, which each handshake checks",
        arguments: ["-tls1_2", "-tls1_3"]
    )
    func resumption(_ version: String) throws {
        let folder = try ShortFolder()
        let request = "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        for clientAuthority in [false, true] {
            let service = try service(clientAuthority: clientAuthority)
            let file = "\(folder.path)/\(clientAuthority)"
            let good = ["-cert", certificates.good.certificateFile, "-key", certificates.good.keyFile]
            // The tickets of TLS 1.3 come with the first data, so the connection is read to its end.
            let arguments = [version, "-ign_eof"] + (clientAuthority ? good : [])
            let first = try openssl(service, arguments + ["-sess_out", file], input: request)
            #expect(first.output.contains("New, TLSv1") && first.output.contains("HTTP/1.1 200 OK"), "\(first.output)")
            #expect(!clientAuthority || !first.output.contains("session ticket:"))
            // With TLS 1.3 and a certificate there is no session to keep; with TLS 1.2 there is one without an id.
            guard !clientAuthority || FileManager.default.fileExists(atPath: file) else { continue }
            let second = try openssl(service, arguments + ["-sess_in", file], input: request)
            #expect(second.output.contains(clientAuthority ? "New, TLSv1" : "Reused, TLSv1"), "\(second.output)")
            #expect(second.output.contains("HTTP/1.1 200 OK"))
        }
    }

    @Test("With client authorities a caller needs a certificate from one of them, in a chain of at most 16 KiB")
    func mutual() throws {
        let (service, folder) = (try service(clientAuthority: true), try ShortFolder())
        let authority = try String(contentsOfFile: certificates.authorityFile, encoding: .utf8)
        let own = try String(contentsOfFile: certificates.good.certificateFile, encoding: .utf8)
        func chain(of others: Int) throws -> [String] {
            let file = try folder.write("chain-\(others)", own + String(repeating: authority, count: others))
            return ["--cert", file, "--key", certificates.good.keyFile]
        }
        func client(_ identity: TestCertificates.Identity) -> [String] {
            ["--cert", identity.certificateFile, "--key", identity.keyFile]
        }
        // The alerts of TLS 1.3 name the reason.
        let refused: [(client: [String], reason: String)] = [
            ([], "certificate required"), (client(certificates.expired), "certificate expired"),
            (client(certificates.untrusted), "unknown ca"), (client(certificates.notYetValid), ""),
            (client(certificates.selfSigned), ""), (try chain(of: 60), ""),
        ]
        for version in ["1.2", "1.3"] {
            for (client, reason) in refused {
                let run = try curl(service, client + ["--tls-max", version])
                #expect(run.exitCode != 0 && run.output.isEmpty, "\(client)")
                #expect(version == "1.2" || reason.isEmpty || run.errors.contains(reason), "\(run.errors)")
            }
            for others in [0, 9] {
                #expect(try curl(service, chain(of: others) + ["--tls-max", version]).exitCode == 0)
            }
        }
        // A failure counts once the server has seen the client's end.
        let line = "http_server_connections_closed_total{cause=\"tls_handshake\"} 12\n"
        #expect(try becomesTrue { try service.get("/metrics", admin: true).text.contains(line) })
        // The administrative listener asks for no certificate.
        #expect(try FinishedRun(["healthcheck", "--admin-listen", "\(service.adminAddress)"]).exitCode == 0)
    }

    @Test("SIGHUP replaces the certificate; a pair that does not match or a missing file leaves the old one")
    func reload() throws {
        let files = try ShortFolder()
        let own = TestCertificates.Identity(
            certificateFile: files.path + "/certificate.pem",
            keyFile: files.path + "/key.pem"
        )
        func install(_ certificate: TestCertificates.Identity, key: TestCertificates.Identity) throws {
            for (source, name) in [(certificate.certificateFile, "certificate.pem"), (key.keyFile, "key.pem")] {
                try files.write(name, String(contentsOfFile: source, encoding: .utf8))
            }
        }
        let (good, other) = (certificates.good, certificates.untrusted)
        try install(good, key: good)
        let service = try service(own)
        #expect(try curl(service).exitCode == 0)
        let client = try TLSClient(service.listenAddress, authorityFile: certificates.authorityFile)

        try install(other, key: good)
        service.process.signal(SIGHUP)
        #expect(service.process.waitForErrors(1, of: "configuration not reloaded"))
        #expect(service.process.errorText.contains(own.keyFile))
        try FileManager.default.removeItem(atPath: own.keyFile)
        service.process.signal(SIGHUP)
        #expect(service.process.waitForErrors(2, of: "configuration not reloaded"))
        #expect(try curl(service).exitCode == 0)

        try install(other, key: other)
        service.process.signal(SIGHUP)
        #expect(service.process.waitForError("configuration reloaded"))
        #expect(try curl(service).exitCode != 0)
        #expect(try curl(service, ["--cacert", certificates.otherAuthorityFile]).exitCode == 0)
        // Certificates whose time is wrong are served, with a warning.
        for (identity, words) in [
            (certificates.expired, "the TLS certificate has expired"),
            (certificates.notYetValid, "the TLS certificate is not valid yet"),
        ] {
            try install(identity, key: identity)
            service.process.signal(SIGHUP)
            #expect(service.process.waitForError(words))
        }
        // The earlier connection goes on.
        #expect(client.exchange("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")?.status == 200)
    }
}
