import Foundation
import LLTestSupport
import Testing

/// A setting that admits strangers or exposes a secret is refused, or causes a warning.
@Suite("Dangerous settings are refused or cause a warning", .live)
struct DangerousSettingTests {
    private static let required = ["LIMITED_LOGIN_APP_IDS": RunningService.appID]

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

    @Test("A reload that removes a protection of the service is refused, even one that came with an earlier reload")
    func droppedGuard() throws {
        let folder = try Folder()
        let own = "\"app_ids\": [\"\(RunningService.appID)\"]"
        let file = try folder.write("limited-login.json", "{\(own)}")
        let service = try RunningService(
            jwksURL: "http://127.0.0.1:1/",
            environment: ["LIMITED_LOGIN_CONFIG": file],
            withAppID: false
        )
        _ = try folder.write("limited-login.json", "{\(own), \"client_keys_file\": \"\(try folder.clientKeys())\"}")
        service.process.signal(SIGHUP)
        #expect(service.process.waitForError("\"configuration reloaded\""), "\(service.process.errorText)")
        _ = try folder.write("limited-login.json", "{\(own)}")
        service.process.signal(SIGHUP)
        #expect(service.process.waitForError("would take away client_keys_file"), "\(service.process.errorText)")
        #expect(try service.verify("x").code == "unauthorized_client")
    }

    @Test("The error for a bad URL on the command line never quotes its user information")
    func quotedUserInformation() throws {
        let token = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.e30.AAAA"
        let arguments = ["verify", token, "--unbound", "--jwks", "https://user:hunter2@example.com/"]
        let run = try FinishedRun(arguments, environment: Self.required)
        #expect(run.exitCode == 78)
        #expect(!(run.errors + run.output).contains("hunter2"), "\(run.errors)")
        #expect(run.errors.contains("example.com"), "\(run.errors)")
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

    /// The settings whose files are read, in groups that one run can tell of.
    private static let files = [
        ["ca_file", "client_keys_file", "nonce_secret_file", "app_secrets_file", "tls_certificate_file"],
        ["replay_store_password_file", "tls_key_file"], ["replay_store_sentinel_password_file", "tls_client_ca_file"],
    ]

    @Test("A missing file or a named pipe in place of a file is refused at once, and the error names its setting")
    func unusableFile() throws {
        let folder = try Folder()
        let pipe = try folder.pipe()
        let certificates = try TestCertificates.shared.get()
        for names in Self.files {
            for (file, reason) in [(pipe, "not a regular file"), ("/nonexistent/file", "No such file or directory")] {
                var environment = Self.required.merging([
                    "LIMITED_LOGIN_TLS_CERTIFICATE_FILE": certificates.good.certificateFile,
                    "LIMITED_LOGIN_TLS_KEY_FILE": certificates.good.keyFile,
                    "LIMITED_LOGIN_REPLAY_STORE": "redis+sentinel://127.0.0.1:1/main",
                ]) { $1 }
                for name in names { environment["LIMITED_LOGIN_\(name.uppercased())"] = file }
                let run = try FinishedRun(["check-config"], environment: environment)
                #expect(run.exitCode == 78)
                let told = run.errors.split(separator: "\n").filter { $0.contains(reason) }
                #expect(told.count == names.count, "\(run.errors)")
                for name in names { #expect(told.contains { $0.contains("\(name): \(file): ") }, "\(run.errors)") }
            }
        }
        let config = try FinishedRun(["check-config"], environment: ["LIMITED_LOGIN_CONFIG": pipe])
        #expect(config.exitCode == 78 && config.errors.contains("\(pipe): "), "\(config.errors)")
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
}
