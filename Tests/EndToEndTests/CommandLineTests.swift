import Foundation
import LLTestSupport
import Testing

@Suite("The command line: exit codes and sentences", .live)
struct CommandLineTests {
    private static let required = ["app_ids": RunningService.appID]

    /// A command as the program describes it: its words, and the options that `--help` does not show.
    private typealias Described = (words: [String], hidden: [String])

    /// Every command of the program.
    private static func commands() throws -> [Described] {
        func described(_ command: [String: Any], _ above: [String]) -> [Described] {
            let hidden = (command["arguments"] as? [[String: Any]] ?? []).compactMap { argument in
                argument["shouldDisplay"] as? Bool == true
                    ? nil : (argument["preferredName"] as? [String: String])?["name"]
            }
            let below = (command["subcommands"] as? [[String: Any]] ?? []).flatMap { below -> [Described] in
                guard let name = below["commandName"] as? String, name != "help" else { return [] }
                return described(below, above + [name])
            }
            return [(above, hidden)] + below
        }
        let tool = try FinishedRun(["--experimental-dump-help"]).object
        return described(try #require(tool["command"] as? [String: Any]), [])
    }

    @Test("The help of each command is short and lists its exit codes; --help-all lists all settings")
    func help() throws {
        let commands = try Self.commands()
        #expect(commands.count > 20)
        for (words, hidden) in commands {
            let run = try FinishedRun(words + ["--help"])
            #expect(run.exitCode == 0 && run.output.contains("USAGE: limited-login"), "\(words)")
            let lines = run.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            #expect(lines.count <= 45, "\(words): \(lines.count) lines")
            // A command that only has subcommands has no exit codes of its own.
            let leads = run.output.contains("SUBCOMMANDS:") && !words.isEmpty
            #expect(leads || run.output.replacing("\n", with: " ").contains("Exit code"), "\(words)")
            let all = try FinishedRun(words + ["--help-all"])
            #expect(all.exitCode == 0)
            for name in hidden {
                #expect(!run.output.contains("  --\(name) "), "\(words) --\(name)")
                #expect(all.output.contains("  --\(name) "), "\(words) --\(name)")
            }
            let footer = "Every other setting: \((["limited-login"] + words).joined(separator: " ")) --help-all"
            #expect(run.output.contains(footer) == !hidden.isEmpty, "\(words)")
            #expect(!all.output.contains(footer))
        }
    }

    /// A command line, the contents of the files that settings name, the exit code, and words of what is told.
    private static let mistakes: [(command: String, files: [String: String], code: Int32, words: [String])] = [
        ("verfy t", [:], 64, ["did you mean 'verify'?", "Usage: limited-login <subcommand>"]),
        ("reload", [:], 64, ["reads changed files by itself", "systemctl reload", "kubectl rollout restart"]),
        ("help srve", [:], 64, ["did you mean 'serve'?", "Usage: limited-login <subcommand>"]),
        ("serve --app-id 1", [:], 64, ["Did you mean '--app-ids'?", "Usage: limited-login serve"]),
        ("client-key nwe a", [:], 64, ["did you mean 'new'?", "Usage: limited-login client-key <subcommand>"]),
        ("client-key new a,b", [:], 64, ["is no name", "Usage: limited-login client-key new"]),
        ("client-key new", [:], 64, ["Missing expected argument '<name>'", "The caller's name"]),
        ("client-key new a --append /tmp", [:], 78, ["/tmp", "not a regular file"]),
        ("nonce new", [:], 78, ["nonce_secret_file: no secret", "'limited-login nonce secret' makes one"]),
        ("nonce new --app-id 2", ["nonce_secret_file": secret], 64, ["--app-id '2'", "nonce new --help"]),
        ("verify t", [:], 2, ["--unbound", "Usage: limited-login verify"]),
        ("verify t --nonc n", [:], 2, ["--nonce", "Usage: limited-login verify"]),
        ("permissions list 5", [:], 78, ["set LIMITED_LOGIN_APP_SECRETS_FILE"]),
        ("token judge t", [:], 78, ["set issuer, signing_keys_file and client_keys_file"]),
        ("healthcheck --admin-listen 127.0.0.1:1", [:], 1, ["/livez does not answer", "Connection refused"]),
        ("healthcheck --admin-listen 127.0.0.1:0", [:], 78, ["admin_listen: "]),
        ("client-key new a --append /none/keys", [:], 78, ["/none/keys: it cannot be written: "]),
        ("inspect --listen 0.0.0.0:0", [:], 78, ["loopback"]), ("inspect --listen unix:/a", [:], 78, ["loopback"]),
        ("check-config --config /none", [:], 78, ["/none: the file cannot be read: No such file"]),
        ("check-config --config /tmp", [:], 78, ["/tmp: the file cannot be read: it is not a regular file"]),
    ]

    /// Wrong usage, and words of what is told.
    private static let misuses: [(command: String, words: String)] = [
        ("check", "did you mean 'check-config'?"), ("brew", "There is no command 'brew'."),
        ("verify", "Give the token as the argument"), ("verify t --token-file /none --unbound", "Give the token as"),
        ("verify --token-file /none --unbound", "/none cannot be read"), ("verify t --subject ", "--subject is empty"),
        ("verify t --nonce n --raw-nonce n", "Give only one of"), ("verify t --nonce n --unbound", "--unbound alone"),
        ("verify t --unbound --subject 7", "--unbound alone"), ("verify t --key-thumbprint ", "-thumbprint is empty"),
        ("verify t --nonce n --access-token-file /dev/null", "--access-token-file is empty"),
        ("verify t --nonce n --access-token-file /none", "/none cannot be read"),
        ("permissions revoke 5", "Give a permission, or --login"), ("permissions list me", "1 to 20 decimal digits"),
        ("permissions revoke 5 email --login", "Give a permission, or --login"), ("permissions list", "'<user-id>'"),
        ("permissions revoke 5 Email", "1 to 64 of [a-z_]"), ("permissions list 5 --need a,,b", "1 to 64 of [a-z_]"),
        ("permissions list 5 --app-id 2", "--app-id is not configured"), ("signed-request make 0", "no user id"),
        ("signed-request judge ", "The signed request is empty"), ("signed-request judge", "'<text>'"),
        ("signed-request judge a.b --at noon", "2024-01-31T12:00:00Z"), ("catalogue run", "Give --url or --exec."),
        ("catalogue run --url http://a.example --exec true", "Give --url or --exec."),
        ("catalogue run --url localhost", "no http or https URL"),
        ("catalogue run --exec a --begin http://a.example", "with --url"),
        ("catalogue run --exec a --refresh http://a.example", "with --url"),
        ("catalogue run --url http://a.example --begin x", "'--begin <url>'"),
        ("catalogue run --exec a --send {}", #"object with "{token}""#), ("catalogue run --exec a --expect x", "2xx"),
        ("catalogue run --exec a --header x", "'NAME: VALUE'"), ("explain graph-error {}", "error and its code"),
        ("issuer --listen 0.0.0.0:0", "must be a loopback address"), ("issuer --listen unix:/a", "'serve' alone"),
        ("demo --admin-listen 0.0.0.0:0", "a loopback address"), ("demo --container --listen 127.0.0.1:0", "leave out"),
    ]

    /// Files of settings, and words of what `check-config` tells.
    private static let badFiles: [(files: [String: String], words: String)] = [
        (["client_keys_file": "# app 0123\n"], "'limited-login client-key new NAME --append FILE' adds one"),
        (["client_keys_file": "\u{FEFF}app 0123\n"], "begins with a byte order mark (BOM)"),
        (["client_keys_file": "app llk_key\n"], "as 'limited-login client-key new NAME' prints it, not the key"),
        (["client_keys_file": "llk_key\n"], "is its name, of [A-Za-z0-9._-], and the SHA-256 of its key"),
        (["app_secrets_file": "1:0123456789abcdef\n"], "line 1: an app's line is its id, white space and its secret"),
        (["app_secrets_file": "2 \(secret)\n"], "the line names an app that app_ids does not"),
        (["nonce_secret_file": "short\n"], "fewer than 32 bytes; 'limited-login nonce secret' makes one"),
        (["nonce_secret_file": ""], "holds no secret; 'limited-login nonce secret' makes one"),
        (["ca_file": "-----BEGIN X-----\n"], "holds other PEM alone"),
        (
            ["ca_file": "\(pem("PRIVATE KEY"))\(pem("PUBLIC KEY"))"],
            "holds PRIVATE KEY, PUBLIC KEY alone; name a file with"
        ),
        (tls(certificate: "0\u{1}"), "tls_certificate_file is no PEM"),
        (tls(certificate: pem("CERTIFICATE REQUEST")), "alone; name a file with -----BEGIN CERTIFICATE-----"),
        (tls(key: pem("CERTIFICATE")), "holds CERTIFICATE alone; name a file with -----BEGIN PRIVATE KEY-----"),
        (tls(key: pem("ENCRYPTED PRIVATE KEY")), "tls_key_file has a passphrase"),
        (tls(key: "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"), "tls_key_file has a passphrase"),
    ]
    private static let times = [
        "noon", "2023-02-29T12:00:00Z", "2024-04-31T12:00:00+01:00", "2024-01-31T12:60:00Z", "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00+01:00",
    ]
    private static let secret = String(repeating: "0123456789abcdef", count: 4)
    private static let appSecret = "\(RunningService.appID) \(secret)\n"
    private static func pem(_ label: String) -> String { "-----BEGIN \(label)-----\nMII\n" }
    private static func tls(certificate: String? = nil, key: String? = nil) -> [String: String] {
        ["tls_certificate_file": certificate ?? pem("CERTIFICATE"), "tls_key_file": key ?? pem("PRIVATE KEY")]
    }

    private static var all: [(command: String, files: [String: String], code: Int32, words: [String])] {
        var rows = mistakes
        rows += badFiles.map { ("check-config", $0.files, 78, [$0.words]) }
        for (command, words) in misuses + times.map({ ("verify t --unbound --at \($0)", "--at") }) {
            rows.append((command, ["app_secrets_file": appSecret], command.hasPrefix("verify") ? 2 : 64, [words]))
        }
        return rows
    }

    @Test("A wrong command, option or file is told with its remedy", arguments: all)
    func told(command: String, files: [String: String], code: Int32, words: [String]) throws {
        let folder = try ShortFolder()
        var environment = Self.required
        for (setting, content) in files {
            environment[setting] = try folder.write(setting, content)
        }
        let arguments = command.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        let run = try FinishedRun(arguments, environment: environment)
        #expect(run.exitCode == code && run.output.isEmpty, "\(run.errors)")
        for word in words { #expect(run.errors.contains(word), "\(run.errors)") }
        #expect(code != 78 || run.errors.split(separator: "\n").count == 1, "\(run.errors)")
    }

    @Test("client-key new adds its line to a file of mode 0600, and refuses a name that exists")
    func clientKeys() throws {
        let folder = try ShortFolder()
        let file = "\(folder.path)/keys"
        let first = try FinishedRun(["client-key", "new", "app", "--append", file])
        #expect(first.exitCode == 0 && first.output.hasPrefix("key:  llk_"), "\(first.errors)")
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let again = try FinishedRun(["client-key", "new", "app", "--append", file])
        #expect(again.exitCode == 64 && again.errors.contains("has a key of 'app' already"), "\(again.errors)")
        #expect(!again.output.contains("llk_"), "a key that was not added is printed")
        // An editor may leave the last line without a line feed.
        let open = try String(contentsOfFile: file, encoding: .utf8).dropLast()
        try Data(open.utf8).write(to: URL(filePath: file))
        #expect(try FinishedRun(["client-key", "new", "other", "--append", file]).exitCode == 0)
        let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
        #expect(lines.map { $0.split(separator: " ").first } == ["app", "other"])
        let taken = Self.required.merging(["client_keys_file": file]) { $1 }
        #expect(try FinishedRun(["check-config"], environment: taken).exitCode == 0)
        // A file that the service could not read is left alone.
        try Data("app\n".utf8).write(to: URL(filePath: file))
        let bad = try FinishedRun(["client-key", "new", "third", "--append", file])
        #expect(bad.exitCode == 78 && bad.errors.contains("\(file): line 1"), "\(bad.errors)")
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "app\n")
        // A file with only comments has no clients yet.
        try Data("# callers\n\n".utf8).write(to: URL(filePath: file))
        #expect(try FinishedRun(["client-key", "new", "app", "--append", file]).exitCode == 0)
    }

    @Test(
        "A new secret goes into a new file that its owner alone can read",
        arguments: [
            (["nonce", "secret"], "nonce_secret_file"), (["signing-key", "new", "--ec"], "signing_keys_file"),
        ]
    )
    func secretFiles(command: [String], setting: String) throws {
        let folder = try ShortFolder()
        let file = "\(folder.path)/secret"
        let run = try FinishedRun(command + ["--out", file])
        #expect(run.exitCode == 0 && run.output.hasPrefix(file), "\(run.errors)")
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(!run.output.contains(text.prefix(20)))
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)
        let again = try FinishedRun(command + ["--out", file])
        #expect(again.exitCode == 64 && again.errors.contains("is left alone"), "\(again.errors)")
        #expect(try String(contentsOfFile: file, encoding: .utf8) == text)
        let nowhere = try FinishedRun(command + ["--out", "/nonexistent/secret"])
        #expect(nowhere.exitCode == 78 && nowhere.errors.contains("/nonexistent/secret"), "\(nowhere.errors)")
        let environment = Self.required.merging([setting: file]) { $1 }
        #expect(try FinishedRun(["check-config"], environment: environment).exitCode == 0)
        // The file's text in place of its name is never shown.
        let first = String(text.split(separator: "\n")[0])
        let pasted = Self.required.merging(["nonce_secret_file": first]) { $1 }
        let refused = try FinishedRun(["check-config"], environment: pasted)
        #expect(refused.exitCode == 78 && !refused.errors.contains(first.prefix(20)), "\(refused.errors)")
        #expect(refused.errors.contains("nonce_secret_file: the value: it names no file"), "\(refused.errors)")
    }

    @Test("healthcheck exits with 0 for a healthy service, with 1 for one that is not ready")
    func healthcheck() throws {
        let service = try RunningService()
        let bare = ["healthcheck", "--admin-listen", "\(service.adminAddress)"]
        // The command needs no app id, and ignores mistakes in other settings.
        let others = ["workers": "none", "listen": "\(service.adminAddress)"]
        for (command, environment, code, words) in [
            (["healthcheck"], ["admin_listen": "\(service.adminAddress)"], 0, "ok"), (bare, others, 0, "ok"),
            (bare + ["--ready"], [:], 1, "answers 503: No usable keys"),
            (bare, ["admin_listn": "127.0.0.1:1"], 78, "LIMITED_LOGIN_ADMIN_LISTEN"),
        ] as [([String], [String: String], Int32, String)] {
            let run = try FinishedRun(command, environment: environment)
            #expect(run.exitCode == code && (run.output + run.errors).contains(words), "\(run)")
        }
    }
}
