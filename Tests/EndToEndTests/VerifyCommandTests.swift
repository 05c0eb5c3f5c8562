import Foundation
import LLTestSupport
import Testing

@Suite("verify and keys on the command line", .live)
struct VerifyCommandTests {
    private static let app = ["app_ids": RunningService.appID]

    private static func run(_ arguments: [String], input: String = "") throws -> FinishedRun {
        try FinishedRun(arguments, environment: app, input: input)
    }

    @Test("A good token shows every check and the Profile, from an argument, a file or any standard input")
    func accepted() throws {
        let issuer = try IssuerProcess()
        let token = try issuer.token(#"{"nonce":"n-1","name":"Jane Doe","user_birthday":"01/02/1990"}"#)
        let login = ["--nonce", "n-1", "--jwks", issuer.jwksURL]
        let run = try Self.run(["verify", token] + login)
        #expect(run.exitCode == 0 && !run.output.contains("REFUSED"), "\(run)")
        for words in ["accepted", "name: Jane Doe", "birthday: 1990-01-02"] { #expect(run.output.contains(words)) }
        #expect(run.errors.contains("warning: a nonce of fewer than 16 characters"), "\(run.errors)")
        let folder = try ShortFolder()
        let file = try folder.write("token", "  \(token)\n")
        #expect(try Self.run(["verify", "--token-file", file] + login).exitCode == 0)
        #expect(try Self.outputForSlowInput(["verify", "-"] + login, token).contains("name: Jane Doe"))
        let object = try Self.run(["verify", "-", "--json"] + login, input: "\n \(token) \n").object
        #expect(object["accepted"] as? Bool == true && object["unverified_claims"] == nil)
        #expect((object["profile"] as? [String: Any])?["name"] as? String == "Jane Doe")
        let checks = try #require(object["checks"] as? [[String: String]])
        #expect(checks.filter { $0["outcome"] == "not_asked" }.map { $0["check"] } == ["device", "accessToken"])
        #expect(checks.allSatisfy { ["passed", "not_asked"].contains($0["outcome"]) })
    }

    /// The output of a run whose input comes in parts, through a pipe that another process has made non-blocking.
    private static func outputForSlowInput(_ arguments: [String], _ text: String) throws -> String {
        let (input, output, process) = (Pipe(), Pipe(), Process())
        process.executableURL = URL(filePath: ServiceProcess.executable)
        process.arguments = arguments
        process.environment = ["LIMITED_LOGIN_APP_IDS": RunningService.appID]
        (process.standardInput, process.standardOutput) = (input, output)
        // The test needs another descriptor of the reading end, since `run` closes the pipe's own.
        let reader = dup(input.fileHandleForReading.fileDescriptor)
        defer { close(reader) }
        #expect(fcntl(reader, F_SETFL, O_NONBLOCK) == 0)
        try process.run()
        for part in [text.prefix(1), text.dropFirst().prefix(300), text.dropFirst(301)] {
            input.fileHandleForWriting.write(Data(part.utf8))
            #expect(becomesTrue { !process.isRunning || isEmpty(reader) })
        }
        try input.fileHandleForWriting.close()
        process.waitUntilExit()
        return String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    }

    /// True if no byte waits in a pipe.
    private static func isEmpty(_ descriptor: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&entry, 1, 0) == 0
    }

    @Test("A refresh is judged by nonce and user, or the user alone, and also by device and access token")
    func refresh() throws {
        let issuer = try IssuerProcess()
        // Base64url may begin with a hyphen, as options do.
        let thumbprint = "-ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
        let folder = try ShortFolder()
        let file = try folder.write("access", "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y\n")
        let token = try issuer.token(
            #"{"nonce":"-n-1","sub":"7","at_hash":"77QmUPtjPfzWtF2AnpK9RQ","cnf":{"jkt":"\#(thumbprint)"}}"#
        )
        let nonce = ["--nonce", "-n-1"]
        let all = nonce + ["--subject", "7", "--key-thumbprint", thumbprint, "--access-token-file", file]
        for (flags, code, lines) in [
            (
                all, 0,
                [
                    "ok       The token is a refresh of this login and belongs to its person",
                    "ok       The token is bound to the key of the login's device",
                    "ok       The access token came together with the token", "key_thumbprint: \(thumbprint)",
                ]
            ), (all + ["--json"], 0, ["\"refresh\":true"]),
            (
                ["--subject", "7"], 0,
                [
                    "ok       The token belongs to the person of this session",
                    "-        not asked: The token is bound to the key of the login's device",
                ]
            ), (["--unbound"], 0, ["-        not asked: The token belongs to this login"]),
            (nonce + ["--issued-nonce"], 2, []),
        ] as [([String], Int32, [String])] {
            let run = try Self.run(["verify", token, "--jwks", issuer.jwksURL] + flags)
            #expect(run.exitCode == code, "\(run)")
            for line in lines { #expect(run.output.contains(line), "\(run.output)") }
        }
    }

    @Test("A refused token shows the failed check, the reason and its unverified claims; times are local and relative")
    func rejected() throws {
        let issuer = try IssuerProcess()
        let token = try issuer.token(#"{"nonce":"n-1","iat":1700000000,"name":"Jane \u001b[31mDoe"}"#)
        for (bad, heading) in [
            (token, "refused: expired (claim exp)"),
            (String(token.dropLast(8)) + "AAAAAAAA", "refused: invalid_signature"),
        ] {
            let arguments = ["verify", bad, "--unbound", "--jwks", issuer.jwksURL]
            let run = try Self.run(arguments)
            #expect(run.exitCode == 1 && run.output.contains(heading) && run.output.contains("REFUSED  "), "\(run)")
            let parts = run.output.components(separatedBy: "the token claims (NOT VERIFIED")
            #expect(parts.count == 2 && parts[1].contains("  aud: \(RunningService.appID)"), "\(run.output)")
            #expect(parts.last?.contains("  iat: 1700000000, ") == true && !run.output.contains("\u{1b}"))
            let object = try Self.run(arguments + ["--json"]).object
            #expect(object["accepted"] as? Bool == false && object["profile"] == nil && object["cure"] is String)
            #expect((object["unverified_claims"] as? [String: Any])?["nonce"] as? String == "n-1")
        }
        // The same token is good at its own time.
        for (moment, zone, times) in [
            ("2023-11-14T22:30:00Z", "UTC", []),
            (
                "1700000100", "UTC",
                [
                    "issued_at: 1700000000, 100 seconds ago (2023-11-14 22:13:20 +0000)",
                    "expires_at: 1700003600, in 58 minutes (2023-11-14 23:13:20 +0000)",
                ]
            ), ("1700000100", "XYZ-5:30", ["(2023-11-15 03:43:20 +0530)"]),
        ] {
            let then = try FinishedRun(
                ["verify", token, "--unbound", "--jwks", issuer.jwksURL, "--at", moment],
                environment: Self.app.merging(["TZ": zone]) { $1 }
            )
            #expect(then.exitCode == 0, "\(then)")
            for time in times { #expect(then.output.contains(time), "\(then.output)") }
        }
    }

    @Test("token judge shows each check of a token from POST /token, then its claims or the remedy; also as JSON")
    func ownToken() throws {
        let (folder, issuer) = (try ShortFolder(), try IssuerProcess())
        let (key, clients) = try folder.clientKey()
        let own = [
            "app_ids": RunningService.appID, "issuer": "https://login.example.com", "client_keys_file": clients,
            "signing_keys_file": try folder.write("key.pem", FinishedRun(["signing-key", "new"]).output),
        ]
        let service = try RunningService(issuer, own)
        let oauth = "urn:ietf:params:oauth"
        let form =
            "grant_type=\(oauth):grant-type:token-exchange&subject_token_type=\(oauth):token-type:id_token"
            + "&nonce=n-1&subject_token=\(try issuer.token())"
        let answer = try service.exchange(
            "POST /token HTTP/1.1\r\nHost: test\r\nX-Api-Key: \(key)\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(form.utf8.count)\r\n\r\n\(form)"
        )
        let token = try #require(answer.member("access_token"), "\(answer.text)")
        for (words, code, parts) in [
            ([token], 0, ["\naccepted\n", "  idp: facebook\n", "auth_time: "]),
            ([token, "--json"], 0, [#"{"accepted":true,"#, #""claims":{"iss""#]),
            (["hello"], 1, ["REFUSED  ", "this has 1."]),
            ([String(token.dropLast(4))], 1, ["REFUSED  ", "what to do: ", "NOT VERIFIED"]),
        ] as [([String], Int32, [String])] {
            let judged = try FinishedRun(["token", "judge"] + words, environment: own)
            #expect(judged.exitCode == code, "\(judged)")
            for part in parts { #expect(judged.output.contains(part), "\(judged)") }
        }
    }

    @Test("verify and keys take keys from a file or a URL, change no seed file, and exit with 3 without keys")
    func keySources() throws {
        let issuer = try IssuerProcess("--max-age", "600")
        let token = try issuer.token()
        let folder = try ShortFolder()
        let seed = try folder.write("seed.json", #"{"keys":[]}"#)
        let file = try folder.write("keys.json", issuer.get(IssuerProcess.keysPath).text)
        for (place, code, words) in [
            (file, 0, ""), (issuer.jwksURL, 0, ""), ("/nonexistent.json", 3, "/nonexistent.json"),
            ("http://127.0.0.1:1/", 3, "http://127.0.0.1:1/"), ("https://user:hunter2@example.com/", 78, "example.com"),
        ] as [(String, Int32, String)] {
            let environment = Self.app.merging(["jwks_file": seed]) { $1 }
            let arguments = ["verify", token, "--nonce", "n-1", "--jwks", place]
            let run = try FinishedRun(arguments, environment: environment)
            #expect(run.exitCode == code && (code == 0 || run.errors.contains(words)), "\(run)")
            // An error never quotes the user information of a URL.
            #expect(!(run.errors + run.output).contains("hunter2"))
        }
        #expect(try String(contentsOfFile: seed, encoding: .utf8) == #"{"keys":[]}"#)
        // A text that is no token is refused before any key is fetched.
        for (text, sentence) in [
            ("x", "malformed_token"), ("", "The token is empty."), ("Bearer eyJ.eyJ.x", "Take away the text before"),
        ] {
            let run = try Self.run(["verify", "-", "--unbound", "--jwks", "/nonexistent.json"], input: text)
            #expect(run.exitCode == 1 && run.errors.isEmpty && run.output.contains(sentence), "\(run)")
            #expect(!run.output.contains("NOT VERIFIED"))
        }
        let shown = try Self.run(["keys", "--jwks-urls", issuer.jwksURL])
        let key = "[0-9a-f]{40}  RSA 2048 bits  thumbprint [A-Za-z0-9_-]{43}"
        let line = "\(key)  age [0-9]{1,2} s  expires in (600|5[0-9]{2}) s\n"
        #expect(shown.output.wholeMatch(of: try Regex("source: .*\n\(line)\(line)")) != nil, "\(shown)")
        // The command needs no app id, and ignores mistakes in other settings.
        let json = try FinishedRun(["keys", "--json", "--jwks-urls", issuer.jwksURL], environment: ["workers": "none"])
        #expect(json.output.contains("\"state\":\"fresh\""))
        let none = try Self.run(["keys", "--jwks-urls", "http://127.0.0.1:1/"])
        #expect(none.exitCode == 3 && none.errors.contains("http://127.0.0.1:1/"))
    }
}
