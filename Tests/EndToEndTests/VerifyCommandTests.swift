import Foundation
import TestSupport
import Testing

@Suite("verify and keys on the command line")
struct VerifyCommandTests {
    private static let app = ["LIMITED_LOGIN_APP_IDS": RunningService.appID]

    @Test("A good token shows every check and the Profile, from an argument or standard input")
    func accepted() throws {
        let issuer = try IssuerProcess()
        defer { issuer.process.kill() }
        let token = try issuer.token(#"{"nonce":"n-1","name":"Jane Doe","user_birthday":"01/02/1990"}"#)
        let run = try FinishedRun(
            ["verify", token, "--nonce", "n-1", "--jwks", issuer.jwksURL],
            environment: Self.app
        )
        #expect(run.exitCode == 0, "\(run.output)\(run.errors)")
        #expect(run.output.contains("accepted"))
        #expect(run.output.contains("name: Jane Doe"))
        #expect(run.output.contains("birthday: 1990-01-02"))
        #expect(!run.output.contains("REFUSED"))
        let piped = try FinishedRun(
            ["verify", "-", "--nonce", "n-1", "--jwks", issuer.jwksURL, "--json"],
            environment: Self.app,
            input: "\n \(token) \n"
        )
        #expect(piped.exitCode == 0, "\(piped.output)\(piped.errors)")
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(piped.output.utf8)) as? [String: Any]
        )
        #expect(object["accepted"] as? Bool == true)
        #expect((object["profile"] as? [String: Any])?["name"] as? String == "Jane Doe")
        #expect((object["checks"] as? [[String: String]])?.allSatisfy { $0["outcome"] == "passed" } == true)
    }

    @Test("A refused token says at which check and why, with exit code 1")
    func rejected() throws {
        let issuer = try IssuerProcess()
        defer { issuer.process.kill() }
        let token = try issuer.token(#"{"nonce":"n-1","iat":1700000000}"#)
        let arguments = ["verify", token, "--unbound", "--jwks", issuer.jwksURL]
        let run = try FinishedRun(arguments, environment: Self.app)
        #expect(run.exitCode == 1)
        #expect(run.output.contains("refused: expired (claim exp)"), "\(run.output)")
        #expect(run.output.contains("REFUSED  "))
        // As of its own time the same token is good.
        let then = try FinishedRun(arguments + ["--at", "2023-11-14T22:30:00Z"], environment: Self.app)
        #expect(then.exitCode == 0, "\(then.output)")
        #expect(try FinishedRun(arguments + ["--at", "1700000100"], environment: Self.app).exitCode == 0)
        let json = try FinishedRun(arguments + ["--json"], environment: Self.app)
        let object = try #require(try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
        #expect(object["accepted"] as? Bool == false)
        #expect(object["code"] as? String == "expired")
        #expect(json.exitCode == 1)
    }

    @Test("Keys from a file, keys that are not to be had")
    func keySources() throws {
        let issuer = try IssuerProcess()
        defer { issuer.process.kill() }
        let token = try issuer.token()
        let keys = try issuer.exchange("GET /.well-known/oauth/openid/jwks/ HTTP/1.1\r\nHost: i\r\n\r\n")
        let file = FileManager.default.temporaryDirectory.appending(path: "keys-\(UUID().uuidString).json")
        try Data(keys.body).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let good = try FinishedRun(["verify", token, "--nonce", "n-1", "--jwks", file.path], environment: Self.app)
        #expect(good.exitCode == 0, "\(good.output)\(good.errors)")
        for place in ["/nonexistent.json", "http://127.0.0.1:1/"] {
            let run = try FinishedRun(["verify", token, "--unbound", "--jwks", place], environment: Self.app)
            #expect(run.exitCode == 3)
            #expect(!run.errors.isEmpty)
        }
    }

    @Test("keys shows each key with id, bits, thumbprint, age and expiry; 3 where there are none")
    func keys() throws {
        let issuer = try IssuerProcess(arguments: ["--max-age", "600"])
        defer { issuer.process.kill() }
        let run = try FinishedRun(["keys", "--jwks-urls", issuer.jwksURL], environment: Self.app)
        #expect(run.exitCode == 0, "\(run.errors)")
        let lines = run.output.split(separator: "\n").filter { $0.contains("RSA 2048 bits") }
        #expect(lines.count == 2)
        for line in lines {
            #expect(
                line.contains(
                    try Regex(
                        "^[0-9a-f]{40}  RSA 2048 bits  thumbprint [A-Za-z0-9_-]{43}  age 0 s  expires in (600|599) s$"
                    )
                ),
                "\(line)"
            )
        }
        let json = try FinishedRun(["keys", "--json", "--jwks-urls", issuer.jwksURL], environment: Self.app)
        #expect(json.output.contains("\"state\":\"fresh\""))
        let none = try FinishedRun(["keys", "--jwks-urls", "http://127.0.0.1:1/"], environment: Self.app)
        #expect(none.exitCode == 3)
        #expect(none.errors.contains("http://127.0.0.1:1/"))
    }
}
