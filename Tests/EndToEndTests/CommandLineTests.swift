import Foundation
import LLHTTP
import LLTestSupport
import Testing

@Suite("The command line: exit codes and sentences", .live)
struct CommandLineTests {
    private static let required = ["LIMITED_LOGIN_APP_IDS": RunningService.appID]

    @Test("The error for an unavailable address names its flag, and the exit code marks it as temporary")
    func addressUnavailable() throws {
        let holder = try Socket.listener(on: .loopback(port: 0), backlog: 1, sharesPort: false)
        let taken = "\(try holder.localAddress())"
        for (flag, address) in [("--admin-listen", taken), ("--listen", "192.0.2.1:8080")] {
            let other = flag == "--listen" ? "--admin-listen" : "--listen"
            let run = try FinishedRun(["serve", flag, address, other, "127.0.0.1:0"], environment: Self.required)
            #expect(run.exitCode == 75)
            let told = try #require(run.errors.split(separator: "\n").last)
            #expect(
                told.contains("cannot bind to \(address)") || told.contains("cannot listen on \(address)"),
                "\(told)"
            )
            #expect(told.hasSuffix("choose another address with \(flag)"), "\(told)")
            #expect(run.errors.ranges(of: "trying on").count == 1)
        }
        let free = ["--listen", "--admin-listen"].flatMap { [$0, "127.0.0.1:0"] }
        let demo = try FinishedRun(["demo", "--issuer-listen", taken] + free)
        #expect(demo.exitCode == 75)
        #expect(demo.errors.contains("choose another address with --issuer-listen\n"), "\(demo.errors)")
    }

    @Test("A usage mistake exits with 64, and with 2 for verify")
    func usage() throws {
        let times = [
            "noon", "2023-02-29T12:00:00Z", "2024-04-31T12:00:00+01:00", "2024-01-31T12:60:00Z", "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
        ].map { ["verify", "t", "--unbound", "--at", $0] }
        let mistakes = [
            ["serve", "--unknown"], ["issuer", "--listen", "0.0.0.0:0"], ["issuer", "--listen", "unix:/tmp/a.sock"],
            ["demo", "--admin-listen", "0.0.0.0:0"], ["demo", "--container", "--listen", "127.0.0.1:0"], ["verify"],
            ["verify", "t", "--nonce", "n", "--unbound"], ["verify", "t", "--unknown"],
        ]
        for arguments in mistakes + times {
            let run = try FinishedRun(arguments, environment: Self.required)
            #expect(run.exitCode == (arguments[0] == "verify" ? 2 : 64), "\(arguments): \(run.errors)")
            #expect(!run.errors.isEmpty)
        }
    }

    /// A command as the program describes it: its words and its options; `--help` shows some of the options.
    private typealias Described = (words: [String], options: [(name: String, isShown: Bool)])

    /// Every command of the program.
    private static func commands() throws -> [Described] {
        let dump = try FinishedRun(["--experimental-dump-help"])
        let tool = try #require(try JSONSerialization.jsonObject(with: Data(dump.output.utf8)) as? [String: Any])
        func described(_ command: [String: Any], _ above: [String]) -> [Described] {
            let options = (command["arguments"] as? [[String: Any]] ?? []).compactMap { argument in
                (argument["preferredName"] as? [String: String])?["name"].map {
                    (name: $0, isShown: argument["shouldDisplay"] as? Bool ?? false)
                }
            }
            let below = (command["subcommands"] as? [[String: Any]] ?? []).flatMap { below -> [Described] in
                guard let name = below["commandName"] as? String, name != "help" else { return [] }
                return described(below, above + [name])
            }
            return [(above, options)] + below
        }
        return described(try #require(tool["command"] as? [String: Any]), [])
    }

    @Test("The help of each command is short and lists its exit codes; --help-all lists all settings")
    func help() throws {
        let commands = try Self.commands()
        #expect(commands.count > 20)
        for (words, options) in commands {
            let run = try FinishedRun(words + ["--help"])
            #expect(run.exitCode == 0 && run.output.contains("USAGE: limited-login"), "\(words)")
            let lines = run.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            #expect(lines.count <= 45, "\(words): \(lines.count) lines")
            // A command that only has subcommands has no exit codes of its own.
            let leads = run.output.contains("SUBCOMMANDS:") && !words.isEmpty
            #expect(leads || run.output.replacing("\n", with: " ").contains("Exit code"), "\(words)")
            let hidden = options.filter { !$0.isShown }.map(\.name)
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

    @Test(
        "The error for a misspelt command names the nearest one; a usage mistake shows its command's usage",
        arguments: [
            (["verfy", "t"], "did you mean 'verify'?", "Usage: limited-login <subcommand>"),
            (["check"], "did you mean 'check-config'?", "Usage: limited-login <subcommand>"),
            (["brew"], "There is no command 'brew'.", "Usage: limited-login <subcommand>"),
            (["help", "srve"], "did you mean 'serve'?", "Usage: limited-login <subcommand>"),
            (["client-key", "nwe", "a"], "did you mean 'new'?", "Usage: limited-login client-key <subcommand>"),
            (["client-key", "new", "a b"], "is no name", "Usage: limited-login client-key new"),
            (["nonce", "new", "--app-id", "2"], "--app-id '2'", "See 'limited-login nonce new --help'"),
            (["verify", "t"], "--unbound", "Usage: limited-login verify"),
            (["verify", "t", "--nonc", "n"], "--nonce", "Usage: limited-login verify"),
            (["permissions", "revoke", "5"], "--login", "Usage: limited-login permissions revoke"),
            (["signed-request", "judge", ""], "The signed request is empty", "limited-login signed-request judge"),
        ]
    )
    func mistakes(arguments: [String], sentence: String, usage: String) throws {
        let folder = try ShortFolder()
        let secret = String(repeating: "0123456789abcdef", count: 4)
        let files = [
            "LIMITED_LOGIN_NONCE_SECRET_FILE": try folder.write("nonce", secret),
            "LIMITED_LOGIN_APP_SECRETS_FILE": try folder.write("secrets", "\(RunningService.appID) \(secret)\n"),
        ]
        let run = try FinishedRun(arguments, environment: Self.required.merging(files) { $1 })
        #expect(run.exitCode == (arguments[0] == "verify" ? 2 : 64), "\(run.errors)")
        #expect(run.errors.contains(sentence), "\(run.errors)")
        #expect(run.errors.contains(usage), "\(run.errors)")
        #expect(run.output.isEmpty)
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
        let taken = Self.required.merging(["LIMITED_LOGIN_CLIENT_KEYS_FILE": file]) { $1 }
        #expect(try FinishedRun(["check-config"], environment: taken).exitCode == 0)
        // A file that the service could not read is left alone.
        try Data("app\n".utf8).write(to: URL(filePath: file))
        let bad = try FinishedRun(["client-key", "new", "third", "--append", file])
        #expect(bad.exitCode == 78 && bad.errors.contains("\(file): line 1"), "\(bad.errors)")
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "app\n")
        let nowhere = try FinishedRun(["client-key", "new", "app", "--append", "/nonexistent/keys"])
        #expect(nowhere.exitCode == 78 && nowhere.errors.contains("/nonexistent/keys"), "\(nowhere.errors)")
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
        let environment = Self.required.merging(["LIMITED_LOGIN_\(setting.uppercased())": file]) { $1 }
        #expect(try FinishedRun(["check-config"], environment: environment).exitCode == 0)
        // The file's text in place of its name is never shown.
        let first = String(text.split(separator: "\n")[0])
        let pasted = Self.required.merging(["LIMITED_LOGIN_NONCE_SECRET_FILE": first]) { $1 }
        let refused = try FinishedRun(["check-config"], environment: pasted)
        #expect(refused.exitCode == 78 && !refused.errors.contains(first.prefix(20)), "\(refused.errors)")
        #expect(refused.errors.contains("nonce_secret_file: the value: it names no file"), "\(refused.errors)")
    }

    @Test("explain graph-error tells the remedy of Graph's answer")
    func graphErrors() throws {
        let answer = #"{"error":{"message":"about Jane","type":"OAuthException","code":190,"error_subcode":463}}"#
        let run = try FinishedRun(["explain", "graph-error", "-"], input: answer)
        #expect(run.exitCode == 0 && run.output.hasPrefix("log in again: "), "\(run.errors)")
        #expect(run.output.contains("graph_session_expired") && !run.output.contains("Jane"))
        #expect(try FinishedRun(["explain", "graph-error", "-"], input: "{}").exitCode == 64)
    }

    @Test("healthcheck exits with 0 for a healthy service, with 1 for one that is absent or not ready")
    func healthcheck() throws {
        let service = try RunningService(jwksURL: "http://127.0.0.1:1/")
        let environment = Self.required.merging(
            ["LIMITED_LOGIN_ADMIN_LISTEN": "\(service.adminAddress)"]
        ) { $1 }
        #expect(try FinishedRun(["healthcheck"], environment: environment).exitCode == 0)
        let unready = try FinishedRun(["healthcheck", "--ready"], environment: environment)
        #expect(unready.exitCode == 1 && unready.errors.contains("answers 503: No usable keys"), "\(unready.errors)")
        // The command needs no app id, and ignores mistakes in other settings.
        let bare = ["healthcheck", "--admin-listen", "\(service.adminAddress)"]
        #expect(try FinishedRun(bare).exitCode == 0)
        let others = ["LIMITED_LOGIN_WORKERS": "none", "LIMITED_LOGIN_LISTEN": "\(service.adminAddress)"]
        #expect(try FinishedRun(bare, environment: others).exitCode == 0)
        let misspelt = try FinishedRun(bare, environment: ["LIMITED_LOGIN_ADMIN_LISTN": "127.0.0.1:1"])
        #expect(misspelt.exitCode == 78 && misspelt.errors.contains("LIMITED_LOGIN_ADMIN_LISTEN"))
        service.process.kill()
        let gone = try FinishedRun(["healthcheck"], environment: environment)
        #expect(gone.exitCode == 1)
        #expect(gone.errors.contains("/livez"))
        let anywhere = try FinishedRun(["healthcheck", "--admin-listen", "127.0.0.1:0"], environment: environment)
        #expect(anywhere.exitCode == 78 && anywhere.errors.contains("admin_listen: "), "\(anywhere.errors)")
    }
}
