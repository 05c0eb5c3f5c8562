import Foundation
import LLTestSupport
import Testing

@Suite("verify and keys on the command line", .live)
struct VerifyCommandTests {
    private static let app = ["LIMITED_LOGIN_APP_IDS": RunningService.appID]

    private static func run(_ arguments: [String], input: String? = nil) throws -> FinishedRun {
        try FinishedRun(arguments, environment: app, input: input)
    }

    @Test("A good token shows every check and the Profile, from an argument, a file or standard input")
    func accepted() throws {
        let issuer = try IssuerProcess()
        let token = try issuer.token(#"{"nonce":"n-1","name":"Jane Doe","user_birthday":"01/02/1990"}"#)
        let run = try Self.run(["verify", token, "--nonce", "n-1", "--jwks", issuer.jwksURL])
        #expect(run.exitCode == 0, "\(run.output)\(run.errors)")
        #expect(run.output.contains("accepted"))
        #expect(run.output.contains("name: Jane Doe"))
        #expect(run.output.contains("birthday: 1990-01-02"))
        #expect(!run.output.contains("REFUSED"))
        #expect(run.errors.contains("warning: a nonce of fewer than 16 characters"), "\(run.errors)")
        let folder = try ShortFolder()
        let file = try folder.write("token", "  \(token)\n")
        let read = try Self.run(["verify", "--token-file", file, "--nonce", "n-1", "--jwks", issuer.jwksURL])
        #expect(read.exitCode == 0, "\(read.output)\(read.errors)")
        let piped = try Self.run(
            ["verify", "-", "--nonce", "n-1", "--jwks", issuer.jwksURL, "--json"],
            input: "\n \(token) \n"
        )
        #expect(piped.exitCode == 0, "\(piped.output)\(piped.errors)")
        let object = try piped.object
        #expect(object["accepted"] as? Bool == true)
        #expect((object["profile"] as? [String: Any])?["name"] as? String == "Jane Doe")
        let checks = try #require(object["checks"] as? [[String: String]])
        #expect(checks.filter { $0["outcome"] != "passed" }.map { $0["check"] } == ["device", "accessToken"])
        #expect(checks.allSatisfy { ["passed", "not_asked"].contains($0["outcome"]) })
    }

    @Test("A standard input that another process has made non-blocking is read to its end")
    func nonBlockingInput() throws {
        let input = Pipe()
        let process = Process()
        process.executableURL = URL(filePath: ServiceProcess.executable)
        process.arguments = ["verify", "-", "--nonce", "n"]
        process.environment = Self.app
        process.standardInput = input
        process.standardOutput = Pipe()
        process.standardError = FileHandle.nullDevice
        // The test needs another descriptor of the reading end, since `run` closes the pipe's own.
        let reader = dup(input.fileHandleForReading.fileDescriptor)
        defer { close(reader) }
        #expect(fcntl(reader, F_SETFL, O_NONBLOCK) == 0)
        try process.run()
        for part in ["x", ".", "y", ".", "z"] {
            input.fileHandleForWriting.write(Data(part.utf8))
            #expect(becomesTrue { !process.isRunning || Self.isEmpty(reader) })
        }
        try input.fileHandleForWriting.close()
        process.waitUntilExit()
        let output = try #require(process.standardOutput as? Pipe).fileHandleForReading.readDataToEndOfFile()
        #expect(!String(decoding: output, as: UTF8.self).contains("The token is empty"))
        #expect(process.terminationStatus == 1)
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
        func verify(_ flags: [String]) throws -> FinishedRun {
            try Self.run(["verify", token, "--jwks", issuer.jwksURL] + flags)
        }
        let login = ["--nonce", "-n-1", "--subject", "7"]
        let all = login + ["--key-thumbprint", thumbprint, "--access-token-file", file]
        let run = try verify(all)
        #expect(run.exitCode == 0, "\(run.output)\(run.errors)")
        for line in [
            "ok       The token is a refresh of this login and belongs to its person",
            "ok       The token is bound to the key of the login's device",
            "ok       The access token came together with the token", "key_thumbprint: \(thumbprint)",
        ] { #expect(run.output.contains(line), "\(run.output)") }
        #expect(try verify(all + ["--json"]).output.contains("\"refresh\":true"))
        let person = try verify(["--subject", "7"]).output
        #expect(person.contains("ok       The token belongs to the person of this session"))
        #expect(person.contains("-        not asked: The token is bound to the key of the login's device"))
        #expect(try verify(["--unbound"]).output.contains("-        not asked: The token belongs to this login"))
        #expect(try verify(["--nonce", "-n-1", "--issued-nonce"]).exitCode == 2)
    }

    @Test("A refused token shows the failed check and the reason, with exit code 1")
    func rejected() throws {
        let issuer = try IssuerProcess()
        let token = try issuer.token(#"{"nonce":"n-1","iat":1700000000}"#)
        let arguments = ["verify", token, "--unbound", "--jwks", issuer.jwksURL]
        let run = try Self.run(arguments)
        #expect(run.exitCode == 1)
        #expect(run.output.contains("refused: expired (claim exp)"), "\(run.output)")
        #expect(run.output.contains("REFUSED  "))
        // The same token is good at its own time.
        let then = try Self.run(arguments + ["--at", "2023-11-14T22:30:00Z"])
        #expect(then.exitCode == 0, "\(then.output)")
        #expect(try Self.run(arguments + ["--at", "1700000100"]).exitCode == 0)
        let json = try Self.run(arguments + ["--json"])
        let object = try json.object
        #expect(object["accepted"] as? Bool == false)
        #expect(object["code"] as? String == "expired")
        #expect(json.exitCode == 1)
    }

    @Test("A text that is no token is refused before any key is fetched")
    func shapeFirst() throws {
        let arguments = ["--unbound", "--jwks", "/nonexistent"]
        for (token, sentence) in [
            ("x", "malformed_token"), ("", "The token is empty."), ("Bearer eyJ.eyJ.x", "Take away the text before"),
        ] {
            let run = try Self.run(["verify", "-"] + arguments, input: token)
            #expect(run.exitCode == 1 && run.errors.isEmpty, "\(run.errors)")
            #expect(run.output.contains(sentence), "\(run.output)")
        }
        // A well-formed token needs the keys.
        let issuer = try IssuerProcess()
        let whole = try Self.run(["verify", try issuer.token()] + arguments)
        #expect(whole.exitCode == 3 && whole.output.isEmpty, "\(whole.output)")
    }

    @Test("token judge shows each check of a token from POST /token, then its claims or the remedy; also as JSON")
    func ownToken() throws {
        let (folder, issuer) = (try ShortFolder(), try IssuerProcess())
        let (key, clients) = try folder.clientKey()
        let signing = try folder.write("key.pem", FinishedRun(["signing-key", "new"]).output)
        let own = Self.app.merging([
            "LIMITED_LOGIN_ISSUER": "https://login.example.com",
            "LIMITED_LOGIN_CLIENT_KEYS_FILE": clients,
            "LIMITED_LOGIN_SIGNING_KEYS_FILE": signing,
        ]) { $1 }
        let service = try RunningService(jwksURL: issuer.jwksURL, environment: own)
        try #require(try service.waitUntilReady())
        let oauth = "urn:ietf:params:oauth"
        let form =
            "grant_type=\(oauth):grant-type:token-exchange&subject_token_type=\(oauth):token-type:id_token"
            + "&nonce=n-1&subject_token=\(try issuer.token())"
        let answer = try service.exchange(
            "POST /token HTTP/1.1\r\nHost: test\r\nX-Api-Key: \(key)\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(form.utf8.count)\r\n\r\n\(form)"
        )
        let start = try #require(answer.text.range(of: "\"access_token\":\""), "\(answer.text)").upperBound
        let token = String(answer.text[start...].prefix { $0 != "\"" })
        func judged(_ arguments: String...) throws -> FinishedRun {
            try FinishedRun(["token", "judge"] + arguments, environment: own)
        }
        let good = try judged(token)
        #expect(good.exitCode == 0 && good.output.contains("\naccepted\n"), "\(good.output)\(good.errors)")
        #expect(good.output.contains("  idp: facebook\n") && good.output.contains("auth_time: "), "\(good.output)")
        let object = try judged(token, "--json")
        #expect(object.output.hasPrefix(#"{"accepted":true,"#) && object.output.contains(#""claims":{"iss""#))
        for (text, detail, shows) in [
            ("hello", "this has 1.", false), (String(token.dropLast(4)), "what to do: ", true),
        ] {
            let bad = try judged(text)
            #expect(
                bad.exitCode == 1 && bad.output.contains("REFUSED  ") && bad.output.contains(detail),
                "\(bad.output)"
            )
            #expect(bad.output.contains("NOT VERIFIED") == shows, "\(bad.output)")
        }
    }

    @Test("A refused token's claims are shown as not verified; an accepted token or other text has no such list")
    func unverifiedClaims() throws {
        let issuer = try IssuerProcess()
        let token = try issuer.token(#"{"nonce":"n-1","iat":1700000000,"name":"Jane \u001b[31mDoe"}"#)
        let forged = String(token.dropLast(8)) + "AAAAAAAA"
        for bad in [token, forged] {
            let arguments = ["verify", bad, "--nonce", "n-1", "--jwks", issuer.jwksURL]
            let run = try Self.run(arguments)
            #expect(run.exitCode == 1)
            let parts = run.output.components(separatedBy: "the token claims (NOT VERIFIED")
            #expect(parts.count == 2, "\(run.output)")
            #expect(parts.last?.contains("  aud: \(RunningService.appID)") == true, "\(run.output)")
            #expect(parts.last?.contains("  iat: 1700000000, ") == true, "\(run.output)")
            #expect(!run.output.contains("\u{1b}"))
            let json = try Self.run(arguments + ["--json"])
            let object = try json.object
            #expect(object["accepted"] as? Bool == false && object["profile"] == nil)
            let claims = try #require(object["unverified_claims"] as? [String: Any])
            #expect(claims["nonce"] as? String == "n-1")
        }
        let then = ["verify", token, "--nonce", "n-1", "--jwks", issuer.jwksURL, "--at", "1700000100", "--json"]
        let good = try Self.run(then)
        #expect(good.exitCode == 0 && !good.output.contains("unverified_claims"), "\(good.output)")
        let none = try Self.run(["verify", "x", "--unbound", "--json"])
        #expect(none.exitCode == 1 && !none.output.contains("unverified_claims"), "\(none.output)")
    }

    @Test("Keys come from a file or a URL and change no seed file; unavailable keys give exit code 3")
    func keySources() throws {
        let issuer = try IssuerProcess()
        let token = try issuer.token()
        let keys = try issuer.exchange("GET /.well-known/oauth/openid/jwks/ HTTP/1.1\r\nHost: i\r\n\r\n")
        let folder = try ShortFolder()
        let seed = try folder.write("seed.json", #"{"keys":[]}"#)
        let environment = Self.app.merging(["LIMITED_LOGIN_JWKS_FILE": seed]) { $1 }
        let file = try folder.write("keys.json", String(decoding: keys.body, as: UTF8.self))
        func verify(_ place: String) throws -> FinishedRun {
            try FinishedRun(["verify", token, "--nonce", "n-1", "--jwks", place], environment: environment)
        }
        for (place, code) in [(file, 0), (issuer.jwksURL, 0), ("/nonexistent.json", 3), ("http://127.0.0.1:1/", 3)] {
            let run = try verify(place)
            #expect(run.exitCode == code && (code == 0 || !run.errors.isEmpty), "\(run.output)\(run.errors)")
        }
        #expect(try String(contentsOfFile: seed, encoding: .utf8) == #"{"keys":[]}"#)
        // An error never quotes the user information of a URL.
        let quoted = try verify("https://user:hunter2@example.com/")
        #expect(quoted.exitCode == 78 && !(quoted.errors + quoted.output).contains("hunter2"), "\(quoted.errors)")
        #expect(quoted.errors.contains("example.com"), "\(quoted.errors)")
    }

    @Test("keys shows each key with id, bits, thumbprint, age and expiry; the exit code is 3 without keys")
    func keys() throws {
        let issuer = try IssuerProcess(arguments: ["--max-age", "600"])
        let run = try Self.run(["keys", "--jwks-urls", issuer.jwksURL])
        #expect(run.exitCode == 0, "\(run.errors)")
        let lines = run.output.split(separator: "\n").filter { $0.contains("RSA 2048 bits") }
        #expect(lines.count == 2)
        for line in lines {
            #expect(
                line.contains(
                    try Regex(
                        "^[0-9a-f]{40}  RSA 2048 bits  thumbprint [A-Za-z0-9_-]{43}  age 0 s  expires in (600|599) s$"
                    )
                )
            )
        }
        // The command needs no app id, and ignores mistakes in other settings.
        let others = ["LIMITED_LOGIN_WORKERS": "none"]
        let json = try FinishedRun(["keys", "--json", "--jwks-urls", issuer.jwksURL], environment: others)
        #expect(json.output.contains("\"state\":\"fresh\""))
        let none = try Self.run(["keys", "--jwks-urls", "http://127.0.0.1:1/"])
        #expect(none.exitCode == 3)
        #expect(none.errors.contains("http://127.0.0.1:1/"))
    }
}
