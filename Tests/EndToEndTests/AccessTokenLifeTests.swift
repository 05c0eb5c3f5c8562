import Foundation
import LLTestSupport
import Testing

@Suite("Access tokens, from the service and from the command line", .live)
struct AccessTokenLifeTests {
    private static let secret = "0123456789abcdef0123456789abcdef"
    private static let person =
        #"{"user":"77","scopes":["public_profile","email"],"name":"Zoe Quartz","email":"zoe.quartz@example.com"}"#

    private static func file(_ text: String) throws -> String {
        let path = FileManager.default.temporaryDirectory.appending(path: "access-\(UUID().uuidString)").path
        try Data(text.utf8).write(to: URL(filePath: path))
        return path
    }

    private static func environment(_ issuer: IssuerProcess, accepting: Bool = true) throws -> [String: String] {
        [
            "LIMITED_LOGIN_APP_IDS": RunningService.appID,
            "LIMITED_LOGIN_ACCESS_TOKENS": accepting ? "accept" : "refuse",
            "LIMITED_LOGIN_APP_SECRETS_FILE": try file("\(RunningService.appID) \(secret)\n"),
            "LIMITED_LOGIN_GRAPH_URL": "http://\(issuer.address)",
        ]
    }

    private static func mint(_ issuer: IssuerProcess, _ body: String = person, _ query: String = "") throws -> String {
        let text = try issuer.post("/access-tokens\(query)", body).text
        return String(try #require(text.split(separator: "\"").dropFirst(3).first, "\(text)"))
    }

    private static func body(_ token: String) -> String { #"{"access_token":"\#(token)"}"# }

    @Test("Android logins are judged, and the log, the metrics and the process list hold nothing of them")
    func service() throws {
        let issuer = try IssuerProcess(arguments: ["--app-secret", Self.secret])
        var environment = try Self.environment(issuer)
        environment["LIMITED_LOGIN_LOG_LEVEL"] = "trace"
        let service = try RunningService(jwksURL: issuer.jwksURL, environment: environment)
        func judge(_ token: String) throws -> TestResponse {
            try service.exchange(RunningService.request(Self.body(token)))
        }
        let good = try Self.mint(issuer)
        let accepted = try judge(good)
        #expect(
            accepted.status == 200 && accepted.text.contains(#""name":"Zoe Quartz","email":"zoe.quartz@example.com""#)
        )
        var refused: [(String, String)] = [
            (try Self.mint(issuer, Self.person, "?revoked"), "access_token_revoked"),
            (try Self.mint(issuer, Self.person, "?dead"), "access_token_invalid"),
        ]
        for (token, code) in refused {
            let response = try judge(token)
            #expect(response.status == 401 && response.code == code, "\(response.text)")
        }
        #expect(try judge(try Self.mint(issuer, #"{"expiry":0}"#)).status == 200)
        refused.append((good, ""))
        let metrics = try service.get("/metrics", admin: true).text
        #expect(metrics.contains(#"verifications_total{credential="access_token",result="accepted"} 2"#))
        // Kernel threads have no program and an empty command line. Foundation leaks memory if it reads an empty file.
        let commands = try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { entry -> String? in
            let folder = "/proc/\(entry)"
            let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/exe")
            guard Int(entry) != nil, program != nil else { return nil }
            return try? String(contentsOfFile: "\(folder)/cmdline", encoding: .utf8)
        }
        service.process.terminate()
        #expect(service.process.waitForExit() == 0)
        let log = service.process.errorText + service.process.outputText
        #expect(log.contains("verification accepted"))
        // The stand-in gets its secret as an argument; the service does not.
        for secret in refused.map(\.0) + ["Zoe", "Quartz", "zoe.quartz@example.com"] {
            for place in [log, metrics] + commands { #expect(!place.contains(secret)) }
        }
        for place in [log, metrics] + commands.filter({ $0.contains("serve") }) {
            #expect(!place.contains(Self.secret))
        }
    }

    @Test("verify shows each check of an access token, which it recognises by its shape or by an option")
    func commandLine() throws {
        let issuer = try IssuerProcess(arguments: ["--app-secret", Self.secret])
        let environment = try Self.environment(issuer)
        let good = try Self.mint(issuer)
        func verify(
            _ token: String,
            _ more: [String] = [],
            in environment: [String: String] = environment
        ) throws -> FinishedRun {
            try FinishedRun(["verify", "--access-token-file", try Self.file(token)] + more, environment: environment)
        }
        let fromFile = try verify(good)
        #expect(fromFile.exitCode == 0, "\(fromFile.output)\(fromFile.errors)")
        #expect(
            fromFile.output.contains("ok       Graph reads the token") && fromFile.output.contains("name: Zoe Quartz")
        )
        let json = try FinishedRun(
            ["verify", "-", "--subject", "77", "--json"],
            environment: environment,
            input: good + "\n"
        )
        let object = try json.object
        #expect(
            object["accepted"] as? Bool == true
                && (object["access_token"] as? [String: Any])?["user_id"] as? String == "77"
        )
        #expect((object["checks"] as? [[String: String]])?.allSatisfy { $0["outcome"] == "passed" } == true)
        let remedies: [(String, [String], String, String)] = [
            (try Self.mint(issuer, Self.person, "?revoked"), [], "access_token_revoked", "log in again"),
            (try Self.mint(issuer, #"{"app":"42"}"#), [], "invalid_audience", "LIMITED_LOGIN_APP_IDS"),
            (good, ["--subject", "78"], "subject_mismatch", "that subject"),
        ]
        for (token, arguments, code, remedy) in remedies {
            let run = try verify(token, arguments)
            #expect(
                run.exitCode == 1 && run.output.contains("refused: \(code)") && run.output.contains(remedy),
                "\(run.output)"
            )
        }
        let off = try verify(good, in: Self.environment(issuer, accepting: false))
        #expect(off.exitCode == 1 && off.output.contains("access_token_not_allowed"), "\(off.output)\(off.errors)")
        let nonce = try FinishedRun(["verify", good, "--nonce", "n"], environment: environment)
        #expect(nonce.exitCode == 2, "\(nonce.output)\(nonce.errors)")
        var away = environment
        away["LIMITED_LOGIN_GRAPH_URL"] = "http://127.0.0.1:1"
        let unreachable = try verify(good, in: away)
        #expect(unreachable.exitCode == 3 && unreachable.errors.contains("graph_unreachable"))
    }

    @Test("The stand-in forgets tokens revoked at Graph, and accepts only the app's proof")
    func standIn() throws {
        let issuer = try IssuerProcess(arguments: ["--app-secret", Self.secret])
        for (body, query) in [("[]", ""), (#"{"nam":"x"}"#, ""), (#"{"scopes":5}"#, ""), ("{}", "?gone")] {
            #expect(try issuer.post("/access-tokens\(query)", body).status == 400)
        }
        let token = try Self.mint(issuer)
        func me(_ proof: String) throws -> String {
            try issuer.exchange(
                "GET /v26.0/me?fields=id,email&appsecret_proof=\(proof) HTTP/1.1\r\nHost: i\r\nAuthorization: Bearer \(token)\r\n\r\n"
            ).text
        }
        #expect(try me("00").contains("appsecret_proof"))
        let environment = try Self.environment(issuer)
        func verify() throws -> FinishedRun {
            try FinishedRun(["verify", "--access-token-file", try Self.file(token)], environment: environment)
        }
        #expect(try verify().output.contains("email: zoe.quartz@example.com"))
        #expect(try FinishedRun(["permissions", "revoke", "77", "email"], environment: environment).exitCode == 0)
        #expect(try !verify().output.contains("email: zoe"))
        #expect(try FinishedRun(["permissions", "revoke", "77", "--login"], environment: environment).exitCode == 0)
        #expect(try verify().output.contains("access_token_revoked"))
    }
}
