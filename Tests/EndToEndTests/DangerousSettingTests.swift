import Foundation
import LLTestSupport
import Testing

/// A setting that admits strangers or exposes a secret is refused, or causes a warning.
@Suite("Dangerous settings are refused or cause a warning", .live)
struct DangerousSettingTests {
    private static let required = ["LIMITED_LOGIN_APP_IDS": RunningService.appID]

    /// An environment that sets one setting to a file, with the other settings that it needs.
    private static func environment(_ name: String, file: String) throws -> [String: String] {
        let certificates = try TestCertificates.shared.get()
        var environment = required
        if name.hasPrefix("tls") {
            environment["LIMITED_LOGIN_TLS_CERTIFICATE_FILE"] = certificates.good.certificateFile
            environment["LIMITED_LOGIN_TLS_KEY_FILE"] = certificates.good.keyFile
        }
        if name == "replay_store_password_file" { environment["LIMITED_LOGIN_REPLAY_STORE"] = "redis://127.0.0.1:1" }
        if name == "replay_store_sentinel_password_file" {
            environment["LIMITED_LOGIN_REPLAY_STORE"] = "redis+sentinel://127.0.0.1:1/main"
        }
        environment["LIMITED_LOGIN_\(name.uppercased())"] = file
        return environment
    }

    /// A folder with the files of a test; it is removed with this value.
    private final class Folder {
        let path = FileManager.default.temporaryDirectory.appending(path: "danger-\(UUID().uuidString)").path

        init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false) }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        /// Writes a file and returns its path.
        func write(_ name: String, _ text: String, mode: Int = 0o600) throws -> String {
            let file = "\(path)/\(name)"
            try Data(text.utf8).write(to: URL(filePath: file), options: .atomic)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
            return file
        }

        func clientKeys(mode: Int = 0o600) throws -> String {
            try write("clients", "backend \(String(repeating: "a1", count: 32))\n", mode: mode)
        }

        func nonceSecret(mode: Int = 0o600) throws -> String {
            try write("nonces", UUID().uuidString, mode: mode)
        }

        func pipe(_ name: String = "pipe") throws -> String {
            let file = "\(path)/\(name)"
            let made = unsafe mkfifo(file, 0o600)
            try #require(made == 0)
            return file
        }
    }

    private static func tlsSettings(withClients: Bool) throws -> String {
        let certificates = try TestCertificates.shared.get()
        let files = """
            "tls_certificate_file": "\(certificates.good.certificateFile)", "tls_key_file": "\(certificates.good.keyFile)"
            """
        return withClients ? "\(files), \"tls_client_ca_file\": \"\(certificates.authorityFile)\"" : files
    }

    @Test(
        "A reload that removes a protection of the service is refused, even one that came with an earlier reload",
        arguments: ["client_keys_file", "nonce_secret_file", "tls_client_ca_file"],
        [true, false]
    )
    func droppedGuard(name: String, isThereAtTheStart: Bool) throws {
        let folder = try Folder()
        let isTLS = name == "tls_client_ca_file"
        var own = "\"app_ids\": [\"\(RunningService.appID)\"]"
        if isTLS { own += ", \(try Self.tlsSettings(withClients: false))" }
        let guarded =
            switch name {
            case "client_keys_file": "\(own), \"\(name)\": \"\(try folder.clientKeys())\""
            case "nonce_secret_file": "\(own), \"\(name)\": \"\(try folder.nonceSecret())\""
            default: "\(own), \"\(name)\": \"\(try TestCertificates.shared.get().authorityFile)\""
            }
        let file = try folder.write("limited-login.json", "{\(isThereAtTheStart ? guarded : own)}")
        let service = try RunningService(
            jwksURL: "http://127.0.0.1:1/",
            environment: ["LIMITED_LOGIN_CONFIG": file],
            withAppID: false
        )
        if !isThereAtTheStart {
            _ = try folder.write("limited-login.json", "{\(guarded)}")
            service.process.signal(SIGHUP)
            #expect(service.process.waitForError("\"configuration reloaded\""), "\(service.process.errorText)")
        }
        _ = try folder.write("limited-login.json", "{\(own)}")
        service.process.signal(SIGHUP)
        #expect(
            service.process.waitForError("would take away \(name)"),
            "\(service.process.errorText)"
        )
        if name == "client_keys_file" {
            #expect(try service.verify("x").code == "unauthorized_client")
        }
    }

    @Test("check-config and the log warn of a listener that others can reach without a key or certificate")
    func openListener() throws {
        let open = "open to anybody who can reach it"
        let folder = try Folder()
        let everywhere = ["--listen", "0.0.0.0:0", "--admin-listen", "127.0.0.1:0"]
        let checked = try FinishedRun(["check-config"] + everywhere, environment: Self.required)
        #expect(checked.exitCode == 0)
        #expect(checked.errors.contains(open), "\(checked.errors)")
        let service = try RunningService(
            jwksURL: "http://127.0.0.1:1/",
            environment: ["LIMITED_LOGIN_LISTEN": "[::]:0"]
        )
        #expect(service.process.waitForError(open), "\(service.process.errorText)")
        for flags in [
            ["--listen", "127.0.0.1:8080"], ["--listen", "[::1]:8080"], ["--listen", "unix:/tmp/http.sock"],
            everywhere + ["--client-keys-file", try folder.clientKeys()],
        ] {
            let run = try FinishedRun(["check-config"] + flags, environment: Self.required)
            #expect(run.exitCode == 0, "\(run.errors)")
            #expect(!run.errors.contains(open), "\(flags): \(run.errors)")
        }
    }

    @Test("tracking: limited together with access tokens causes a warning: it does not apply to them")
    func limitedTrackingWithAccessTokens() throws {
        let folder = try Folder()
        let secrets = try folder.write(
            "apps",
            "\(RunningService.appID) \(String(repeating: "5", count: 32))",
            mode: 0o600
        )
        for (tracking, accessTokens, isTold) in [
            ("limited", "accept", true), ("any", "accept", false), ("limited", "refuse", false),
        ] {
            let environment = Self.required.merging([
                "LIMITED_LOGIN_TRACKING": tracking, "LIMITED_LOGIN_ACCESS_TOKENS": accessTokens,
                "LIMITED_LOGIN_APP_SECRETS_FILE": secrets,
            ]) { $1 }
            let run = try FinishedRun(["check-config"], environment: environment)
            #expect(run.exitCode == 0 && run.errors.contains("tracking: limited is about id tokens") == isTold)
        }
    }

    @Test("A password is refused in a flag, and accepted in the environment and in the file")
    func passwordInFlag() throws {
        let url = "redis://user:hunter2@127.0.0.1:6379"
        let flag = try FinishedRun(["check-config", "--replay-store", url], environment: Self.required)
        #expect(flag.exitCode == 78)
        #expect(flag.errors.contains("--replay-store: a password in a flag"), "\(flag.errors)")
        #expect(!(flag.errors + flag.output).contains("hunter2"))
        let variable = try FinishedRun(
            ["check-config"],
            environment: Self.required.merging(["LIMITED_LOGIN_REPLAY_STORE": url]) { $1 }
        )
        #expect(variable.exitCode == 0, "\(variable.errors)")
        #expect(variable.output.contains("with a password"))
        let folder = try Folder()
        for (mode, url, isTold) in [(0o644, url, true), (0o600, url, false), (0o644, "redis://127.0.0.1:1", false)] {
            let file = try folder.write("limited-login.json", "{\"replay_store\": \"\(url)\"}", mode: mode)
            let run = try FinishedRun(["check-config", "--config", file], environment: Self.required)
            #expect(run.exitCode == 0, "\(run.errors)")
            #expect(!(run.errors + run.output).contains("hunter2"))
            #expect(run.errors.contains("can read the password in replay_store: \(file) (mode 0644)") == isTold)
        }
    }

    @Test(
        "The error for a bad URL never quotes its user information",
        arguments: [
            ["check-config", "--jwks-urls", "https://user:hunter2@example.com/"],
            ["check-config", "--jwks-urls", "ftp://user:hunter2@example.com/"],
            ["check-config", "--jwks-urls", "https://user:hunter2/3@example.com/"],
            ["check-config", "--jwks-urls", "https://hunter2@example.com/,https://hunter2@example.com/"],
            ["check-config", "--graph-url", "https://user:hunter2@example.com/"],
            ["check-config", "--uninstall-url", "http://user:hunter2@example.com/"],
            [
                "verify", "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.e30.AAAA", "--unbound", "--jwks",
                "https://user:hunter2@example.com/",
            ],
            ["check-config", "--listen", "http://user:hunter2@example.com/"],
        ]
    )
    func quotedUserInformation(arguments: [String]) throws {
        let run = try FinishedRun(arguments, environment: Self.required)
        #expect(run.exitCode == 78)
        #expect(!(run.errors + run.output).contains("hunter2"), "\(run.errors)")
        #expect(run.errors.contains("example.com"), "\(run.errors)")
    }

    @Test(
        "A secret file that its group or others can read or write causes a warning",
        arguments: [0o640, 0o604, 0o660, 0o602]
    )
    func looseSecretFile(mode: Int) throws {
        let folder = try Folder()
        let password = try folder.write("password", "hunter2\n", mode: mode)
        let keys = try folder.clientKeys(mode: mode)
        let nonces = try folder.nonceSecret(mode: mode)
        let apps = try folder.write("apps", "\(RunningService.appID) \(String(repeating: "s", count: 32))", mode: mode)
        let certificates = try TestCertificates.shared.get()
        let tlsKey = try folder.write(
            "key.pem",
            String(decoding: Data(contentsOf: URL(filePath: certificates.good.keyFile)), as: UTF8.self),
            mode: mode
        )
        let environment = Self.required.merging([
            "LIMITED_LOGIN_CLIENT_KEYS_FILE": keys, "LIMITED_LOGIN_NONCE_SECRET_FILE": nonces,
            "LIMITED_LOGIN_APP_SECRETS_FILE": apps, "LIMITED_LOGIN_TLS_KEY_FILE": tlsKey,
            "LIMITED_LOGIN_TLS_CERTIFICATE_FILE": certificates.good.certificateFile,
            "LIMITED_LOGIN_REPLAY_STORE": "redis://127.0.0.1:1", "LIMITED_LOGIN_REPLAY_STORE_PASSWORD_FILE": password,
        ]) { $1 }
        let run = try FinishedRun(["check-config"], environment: environment)
        #expect(run.exitCode == 0, "\(run.errors)")
        for path in [keys, nonces, apps, tlsKey, password] {
            #expect(run.errors.contains("\(path) (mode 0\(String(mode, radix: 8)))"), "\(run.errors)")
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        }
        #expect(try !FinishedRun(["check-config"], environment: environment).errors.contains("warning"))
    }

    @Test("The log warns of a secret file that others can read, at the start and at a reload")
    func looseSecretFileInLog() throws {
        let folder = try Folder()
        let keys = try folder.clientKeys(mode: 0o644)
        let service = try RunningService(
            jwksURL: "http://127.0.0.1:1/",
            environment: ["LIMITED_LOGIN_CLIENT_KEYS_FILE": keys]
        )
        #expect(service.process.waitForError("(mode 0644)"), "\(service.process.errorText)")
        service.process.signal(SIGHUP)
        #expect(service.process.waitForErrors(2, of: "(mode 0644)"))
    }

    @Test(
        "A named pipe in place of a file is refused at once, and the error names its setting",
        arguments: [
            "ca_file", "client_keys_file", "nonce_secret_file", "app_secrets_file", "replay_store_password_file",
            "replay_store_sentinel_password_file",
            "tls_certificate_file", "tls_key_file", "tls_client_ca_file", "config",
        ]
    )
    func pipe(name: String) throws {
        let folder = try Folder()
        let pipe = try folder.pipe()
        let process = try ServiceProcess(["check-config"], environment: Self.environment(name, file: pipe))
        #expect(process.waitForError("\(pipe): "), "\(process.errorText)")
        #expect(process.errorText.contains("not a regular file"), "\(process.errorText)")
        #expect(name == "config" || process.errorText.contains("\(name): "), "\(process.errorText)")
        process.kill()
    }

    @Test("A named pipe in place of a key file is refused at a reload, and SIGTERM still stops the service")
    func pipeAtReload() throws {
        let folder = try Folder()
        let keys = try folder.clientKeys()
        let service = try RunningService(
            jwksURL: "http://127.0.0.1:1/",
            environment: ["LIMITED_LOGIN_CLIENT_KEYS_FILE": keys]
        )
        try FileManager.default.removeItem(atPath: keys)
        #expect(try folder.pipe("clients") == keys)
        service.process.signal(SIGHUP)
        #expect(service.process.waitForError("not a regular file"), "\(service.process.errorText)")
        service.process.terminate()
        #expect(service.process.waitForError("\"stopped\""), "\(service.process.errorText)")
    }

    @Test(
        "The error for a missing file names its setting",
        arguments: [
            "ca_file", "client_keys_file", "nonce_secret_file", "app_secrets_file", "replay_store_password_file",
            "replay_store_sentinel_password_file",
            "tls_certificate_file", "tls_key_file", "tls_client_ca_file",
        ]
    )
    func missingFile(name: String) throws {
        let run = try FinishedRun(["check-config"], environment: Self.environment(name, file: "/nonexistent/file"))
        #expect(run.exitCode == 78)
        #expect(run.errors.contains("\(name): /nonexistent/file: "), "\(run.errors)")
        #expect(run.errors.contains("No such file or directory"), "\(run.errors)")
    }

    @Test("A password that would cross the network unencrypted causes a warning")
    func clearPassword() throws {
        func warns(_ url: String, _ extra: [String: String] = [:]) throws -> Bool {
            let environment = Self.required.merging(["LIMITED_LOGIN_REPLAY_STORE": url]) { $1 }
                .merging(extra) { $1 }
            let run = try FinishedRun(["check-config"], environment: environment)
            #expect(run.exitCode == 0, "\(run.errors)")
            #expect(!run.errors.contains("hunter2"))
            return run.errors.contains("rediss://")
        }
        #expect(try warns("redis://:hunter2@cache.example:6379"))
        #expect(try warns("redis://:hunter2@192.0.2.1:6379"))
        #expect(try !warns("rediss://:hunter2@cache.example:6379"))
        #expect(try !warns("redis://:hunter2@127.0.0.1:6379"))
        #expect(try !warns("redis://:hunter2@[::1]:6379"))
        #expect(try !warns("redis://:hunter2@localhost"))
        #expect(try !warns("redis://cache.example:6379"))
        let folder = try Folder()
        let password = ["LIMITED_LOGIN_REPLAY_STORE_PASSWORD_FILE": try folder.write("password", "hunter2")]
        #expect(try warns("redis://cache.example:6379", password))
        #expect(try !warns("rediss://cache.example:6379", password))
    }
}
