import Foundation
import LLTestSupport
import Testing

@Suite("The page of demo and inspect", .live)
struct PageTests {
    private static let stop = "Control-C stops it."

    /// A program that serves the page until this value ends, and the page's address.
    private final class Page {
        let process: ServiceProcess
        let base: String

        init(_ arguments: [String], environment: [String: String] = [:]) throws {
            process = try ServiceProcess(arguments, environment: environment)
            try #require(process.waitForOutput(PageTests.stop), "\(process.errorText)")
            let words = process.outputText.split(whereSeparator: \.isWhitespace)
            base = String(try #require(words.first { $0.hasPrefix("http://") && $0.hasSuffix("/") }).dropLast())
        }

        deinit { process.end() }

        static func demo() throws -> Page {
            try Page(
                ["demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--issuer-listen", "127.0.0.1:0"]
            )
        }

        static func inspect(_ environment: [String: String] = [:]) throws -> Page {
            let own = ["LIMITED_LOGIN_APP_IDS": "123456789012345", "LIMITED_LOGIN_JWKS_URLS": "http://127.0.0.1:1/"]
            return try Page(["inspect"], environment: own.merging(environment) { _, new in new })
        }

        var port: String { base.components(separatedBy: ":").last ?? "" }

        /// The status, then the answer with its fields.
        func curl(_ arguments: [String], path: String = "/") throws -> (status: String, text: String) {
            let run = try FinishedRun(
                ["-sS", "-i", "--path-as-is", "-w", "\n%{http_code}"] + arguments + [base + path],
                program: "/usr/bin/curl"
            )
            let lines = run.output.split(separator: "\n", omittingEmptySubsequences: false)
            return (String(lines.last ?? ""), run.output + run.errors)
        }

        func run(_ body: String) throws -> [String: Any] {
            let answer = try curl(["--json", body], path: "/run").text
            let start = try #require(answer.range(of: "\r\n\r\n")).upperBound
            let end = try #require(answer.lastIndex(of: "}"))
            return try #require(
                try JSONSerialization.jsonObject(with: Data(answer[start...end].utf8)) as? [String: Any],
                "\(answer)"
            )
        }
    }

    private static let play = ["--json", #"{"scenario":"good"}"#]

    @Test(
        "A request with another host name or from another origin is refused on every path",
        arguments: ["demo", "inspect"]
    )
    func foreign(program: String) throws {
        let page = program == "demo" ? try Page.demo() : try Page.inspect()
        // DNS rebinding: a foreign page's name resolves to this machine, so its requests have the same origin.
        let names = [
            "evil.example:\(page.port)", "127.0.0.1.evil.example:\(page.port)", "localhost.evil.example", "",
            "192.0.2.7:\(page.port)", "[2001:db8::1]:\(page.port)", "0.0.0.0:\(page.port)", "evil.localhost",
            "127.0.0.1:\(page.port):80", "localhost:x",
        ]
        for name in names {
            let own = name.isEmpty ? "Host;" : "Host: \(name)"
            let posted = try page.curl(["-H", own, "-H", "Origin: http://\(name)"] + Self.play, path: "/run")
            #expect(["421", "400"].contains(posted.status), "\(name): \(posted.text)")
        }
        for path in ["/", "/page.js", "/state", "/tokens", "/rotate", "/login", "/nothing"] {
            #expect(try page.curl(["-H", "Host: evil.example"], path: path).status == "421", "\(path)")
            #expect(try page.curl(["-H", "Origin: http://evil.example"], path: path).status == "403", "\(path)")
        }
        let origins = [
            "http://evil.example", "null", "https://127.0.0.1:\(page.port)", "http://127.0.0.1", "http://127.0.0.1:1",
            "http://localhost:\(page.port)", "http://127.0.0.1:\(page.port).evil.example", "", "file://",
        ]
        for origin in origins {
            let field = origin.isEmpty ? "Origin;" : "Origin: \(origin)"
            let answer = try page.curl(["-H", field] + Self.play, path: "/run")
            #expect(answer.status == "403", "\(origin): \(answer.status)")
            #expect(!answer.text.lowercased().contains("access-control-allow"))
        }
        let twice = ["-H", "Origin: http://127.0.0.1:\(page.port)", "-H", "Origin: http://evil.example"]
        #expect(try page.curl(twice).status == "403")
        // Content types that a form or a script may send without a preflight request are refused for every sender.
        for type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
            let answer = try page.curl(["-H", "Content-Type: \(type)", "-d", #"{"scenario":"rotate"}"#], path: "/run")
            #expect(answer.status == "415")
        }
    }

    @Test("This machine's own names are served, and the page allows no content from elsewhere")
    func own() throws {
        let page = try Page.demo()
        for name in ["127.0.0.1:\(page.port)", "localhost:\(page.port)", "[::1]:\(page.port)", "127.0.0.1"] {
            let answer = try page.curl(["-H", "Host: \(name)", "-H", "Origin: http://\(name)"])
            #expect(answer.status == "200", "\(name): \(answer.text)")
        }
        for path in ["/", "/page.css", "/page.js", "/icon.svg", "/API.md", "/llms.txt", "/state"] {
            let answer = try page.curl([], path: path).text
            for field in [
                "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                    + "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
                    + "require-trusted-types-for 'script'",
                "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer", "Cache-Control: no-store",
                "Cross-Origin-Resource-Policy: same-origin", "Cross-Origin-Opener-Policy: same-origin",
            ] {
                #expect(answer.contains(field), "\(path): \(field)")
            }
        }
        #expect(try page.curl(["-X", "POST"]).status == "405")
        #expect(try page.curl([], path: "/run").status == "405")
        for file in ["page.html", "page.css", "page.js", "icon.svg"] {
            let text = try ProjectFiles.text("Sources/CLLDocuments/\(file)").replacing(
                "http://www.w3.org/2000/svg",
                with: ""
            )
            #expect(!text.contains("://"), "\(file) names another place")
        }
    }

    @Test("Every scenario ends as its button says, and the checks are those of verify --json")
    func scenarios() throws {
        let page = try Page.demo()
        let text = try FinishedRun(["-sS", page.base + "/state"], program: "/usr/bin/curl").output
        let state = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        let scenarios = try #require(state["scenarios"] as? [[String: String]])
        #expect(scenarios.count >= 14)
        for scenario in scenarios {
            let name = try #require(scenario["name"])
            let outcome = try page.run("{\"scenario\":\"\(name)\",\"permissions\":[\"email\"]}")
            let answer = try JSONSerialization.jsonObject(with: Data((outcome["answer"] as? String ?? "{}").utf8))
            let code = (answer as? [String: Any])?["code"] as? String
            let status = outcome["status"] as? String ?? ""
            let wanted = scenario["expects"]?.components(separatedBy: "then ").last
            #expect(wanted == (code.map { "\(status) \($0)" } ?? status), "\(name)")
            let report = try #require(outcome["report"] as? [String: Any])
            let checks = try #require(report["checks"] as? [[String: String]])
            let titles = try #require(outcome["checks"] as? [[String: String]])
            #expect(checks.count >= (["android": 10, "own-token": 14][name] ?? 17))
            #expect(checks.map { $0["check"] } == titles.map { $0["check"] }, "\(name)")
            // Only the service knows used nonces and revoked logins; all other codes must agree.
            if code != "nonce_used", code != "login_revoked" { #expect(report["code"] as? String == code, "\(name)") }
            // If a nonce or a token is good only once, the shown command logs in again, so the answer is the same.
            let shown = try #require(outcome["command"] as? String)
            let pasted = try FinishedRun(["-c", shown], program: "/bin/sh")
            let last = try #require(pasted.output.split(whereSeparator: \.isNewline).last, "\(shown): \(pasted.errors)")
            let said = try JSONSerialization.jsonObject(with: Data(last.utf8)) as? [String: Any]
            #expect(
                said?["code"] as? String == code && (said?["profile"] != nil) == (code == nil),
                "\(name): \(pasted.output)"
            )
        }
        let stolen = try #require(try page.run(#"{"scenario":"stolen"}"#)["steps"] as? [[String: String]])
        #expect(stolen.filter { $0["what"] == "POST /verify" }.map { $0["result"] } == ["401", "200"])
        for bad in ["[]", "{", "{}", #"{"scenario":"nothing"}"#, #"{"scenario":7}"#] {
            #expect(try page.curl(["--json", bad], path: "/run").status == "400", "\(bad)")
        }
        let long = String(repeating: "x", count: 60_000)
        #expect(try page.curl(["--json", long], path: "/run").status == "413")
    }

    @Test("inspect judges a pasted token with the configured keys, and neither stores nor prints it")
    func inspect() throws {
        let issuer = try IssuerProcess()
        let folder = try ShortFolder()
        let secret = ["LIMITED_LOGIN_NONCE_SECRET_FILE": "\(folder.path)/secret"]
        try Data(try FinishedRun(["nonce", "secret"]).output.utf8).write(to: URL(filePath: "\(folder.path)/secret"))
        let page = try Page.inspect(secret.merging(["LIMITED_LOGIN_JWKS_URLS": issuer.jwksURL]) { $1 })
        let made = try FinishedRun(["nonce", "new", "--app-ids", "123456789012345"], environment: secret).output
        let issued = try issuer.token("{\"nonce\":\"\(made.prefix { !$0.isNewline })\"}")
        let token = try issuer.token(#"{"nonce":"n-1","email":"jane@example.com"}"#)
        func outcome(_ token: String, _ binding: String, _ value: String) throws -> [String: Any] {
            try page.run("{\"id_token\":\"\(token)\",\"binding\":\"\(binding)\",\"value\":\"\(value)\"}")
        }
        func judge(_ token: String, _ binding: String, _ value: String) throws -> [String: Any] {
            try #require(try outcome(token, binding, value)["report"] as? [String: Any])
        }
        #expect(try judge(token, "nonce", "n-1")["accepted"] as? Bool == true)
        #expect(try judge("  \(token)\\n", "nonce", "n-1")["accepted"] as? Bool == true)
        #expect(try judge(token, "unbound", "")["accepted"] as? Bool == true)
        #expect(try judge(token, "nonce", "n-2")["code"] as? String == "nonce_mismatch")
        #expect(try judge(token, "subject", "1")["code"] as? String == "subject_mismatch")
        #expect(try judge("nothing", "unbound", "")["code"] as? String == "malformed_token")
        // A token with a compared nonce belongs to the login, so the page needs no note.
        for (token, binding, value, meaning) in [
            (token, "nonce", "n-1", ""), (token, "unbound", "", "tied to no login"),
            (token, "subject", "2954873201847263", "no login may begin with it"),
            (issued, "issued_nonce", "", "one of your nonces, of any login"),
        ] {
            let outcome = try outcome(token, binding, value)
            #expect((outcome["report"] as? [String: Any])?["accepted"] as? Bool == true, "\(binding)")
            let note = try #require(outcome["note"] as? String)
            #expect(meaning.isEmpty ? note.isEmpty : note.contains(meaning), "\(binding): \(note)")
        }
        #expect(!page.process.outputText.contains(token) && !page.process.errorText.contains("n-1"))
        #expect(try page.curl([], path: "/tokens").status == "404")
    }

    @Test("The command that inspect shows gives the same verdict in a shell without any setting")
    func commandToPaste() throws {
        let issuer = try IssuerProcess(arguments: ["--app-secret", "s3cr3t-of-the-app"])
        let folder = try ShortFolder()
        let app = "123456789012345"
        try Data("\(app) s3cr3t-of-the-app\n".utf8).write(to: URL(filePath: "\(folder.path)/secrets"))
        let page = try Page.inspect([
            "LIMITED_LOGIN_JWKS_URLS": issuer.jwksURL, "LIMITED_LOGIN_ACCESS_TOKENS": "accept",
            "LIMITED_LOGIN_APP_SECRETS_FILE": "\(folder.path)/secrets",
            "LIMITED_LOGIN_GRAPH_URL": "http://\(issuer.address)",
        ])
        let nonce = "it's"
        let token = try issuer.token("{\"nonce\":\"\(nonce)\",\"iat\":1700000000}")
        let access = try #require(
            try issuer.post("/access-tokens", #"{"user":"77"}"#).text.split(separator: "\"").dropFirst(3).first
        )
        for (token, binding, value, at, code) in [
            (token, "nonce", nonce, "", "expired"), (token, "nonce", nonce, "2023-11-14T22:30:00Z", nil),
            (token, "unbound", "", "1700000100", nil), ("x", "unbound", "", "", "malformed_token"),
            (String(access), "unbound", "", "", nil), (String(access), "subject", "78", "", "subject_mismatch"),
        ] as [(String, String, String, String, String?)] {
            let body = #"{"id_token":"\#(token)","binding":"\#(binding)","value":"\#(value)","at":"\#(at)"}"#
            let outcome = try page.run(body)
            let report = try #require(outcome["report"] as? [String: Any])
            #expect(report["accepted"] as? Bool == (code == nil) && report["code"] as? String == code, "\(report)")
            let shown = try #require(outcome["command"] as? String)
            // The token comes on standard input, since other users can see a program's arguments.
            #expect(shown.hasPrefix("printf %s '") && shown.contains("| limited-login verify - "), "\(shown)")
            let command = shown.replacing("limited-login verify", with: "\(ServiceProcess.executable) verify")
            let run = try FinishedRun(["-c", "\(command) --json"], program: "/bin/sh")
            #expect(run.exitCode == (code == nil ? 0 : 1), "\(shown): \(run.output)\(run.errors)")
            if let code { #expect(run.output.contains("\"code\":\"\(code)\""), "\(run.output)") }
        }
        let noon = #"{"id_token":"x","binding":"unbound","value":"","at":"noon"}"#
        #expect(try page.curl(["--json", noon], path: "/run").status == "400")
    }

    @Test("inspect listens only on this machine", arguments: ["0.0.0.0:0", "unix:/tmp/page"])
    func loopbackAlone(address: String) throws {
        let run = try FinishedRun(["inspect", "--listen", address], environment: ["LIMITED_LOGIN_APP_IDS": "1"])
        #expect(run.exitCode == 78)
        #expect(run.errors.contains("loopback"), "\(run.errors)")
    }
}
