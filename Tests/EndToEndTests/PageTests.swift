import Foundation
import LLTestSupport
import Testing

@Suite("The page of demo and inspect", .live)
struct PageTests {
    /// A program that serves the page until this value ends, and the page's address.
    private final class Page {
        let process: ServiceProcess
        let base: String

        init(_ arguments: [String], _ environment: [String: String] = [:]) throws {
            process = try ServiceProcess(arguments, environment: environment)
            try #require(process.waitForOutput("Control-C stops it."), "\(process.errorText)")
            let words = process.outputText.split(whereSeparator: \.isWhitespace)
            base = String(try #require(words.first { $0.hasPrefix("http://") && $0.hasSuffix("/") }).dropLast())
        }

        deinit { process.end() }

        static func demo() throws -> Page {
            try Page(["demo"] + ["--listen", "--admin-listen", "--issuer-listen"].flatMap { [$0, "127.0.0.1:0"] })
        }

        static func inspect(_ environment: [String: String] = [:]) throws -> Page {
            let own = ["app_ids": RunningService.appID, "jwks_urls": "http://127.0.0.1:1/"]
            return try Page(["inspect"], own.merging(environment) { $1 })
        }

        var port: String { base.components(separatedBy: ":").last ?? "" }

        /// The status, then the answer with its fields.
        func curl(
            _ fields: [String] = [],
            _ words: [String] = [],
            path: String = "/"
        ) throws -> (status: String, text: String) {
            let own = ["-sS", "-i", "--path-as-is", "-w", "\n%{http_code}"] + fields.flatMap { ["-H", $0] }
            let run = try FinishedRun(own + words + [base + path], program: "/usr/bin/curl")
            return (String(run.output.split(separator: "\n").last ?? ""), run.output + run.errors)
        }

        func run(_ body: String) throws -> [String: Any] {
            let answer = try FinishedRun(["-sS", "--json", body, base + "/run"], program: "/usr/bin/curl")
            return try answer.object
        }
    }

    @Test(
        "This machine's own names are served, another host or origin on no path, and nothing comes from elsewhere",
        arguments: ["demo", "inspect"]
    )
    func origins(program: String) throws {
        let page = program == "demo" ? try Page.demo() : try Page.inspect()
        for name in ["127.0.0.1:\(page.port)", "localhost:\(page.port)", "[::1]:\(page.port)", "127.0.0.1"] {
            let answer = try page.curl(["Host: \(name)", "Origin: http://\(name)"])
            #expect(answer.status == "200", "\(name): \(answer.text)")
        }
        try expectForeignRefused(page)
        #expect(try page.curl([], ["-X", "POST"]).status == "405")
        #expect(try page.curl(path: "/run").status == "405")
        for path in ["/", "/page.css", "/page.js", "/icon.svg", "/API.md", "/llms.txt", "/state"] {
            let answer = try page.curl(path: path).text
            for field in [
                "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                    + "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
                    + "require-trusted-types-for 'script'",
                "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer", "Cache-Control: no-store",
                "Cross-Origin-Resource-Policy: same-origin", "Cross-Origin-Opener-Policy: same-origin",
            ] { #expect(answer.contains(field), "\(path): \(field)") }
        }
        for file in ["page.html", "page.css", "page.js", "icon.svg"] {
            let text = try ProjectFiles.text("Sources/CLLDocuments/\(file)")
            #expect(!text.replacing("http://www.w3.org/2000/svg", with: "").contains("://"), "\(file) names a place")
        }
    }

    private func expectForeignRefused(_ page: Page) throws {
        let play = ["--json", #"{"scenario":"good"}"#]
        // DNS rebinding: a foreign page's name resolves to this machine, so its requests have the same origin.
        for name in [
            "evil.example:\(page.port)", "127.0.0.1.evil.example:\(page.port)", "localhost.evil.example", "",
            "192.0.2.7:\(page.port)", "[2001:db8::1]:\(page.port)", "0.0.0.0:\(page.port)", "evil.localhost",
            "127.0.0.1:\(page.port):80", "localhost:x",
        ] {
            let fields = [name.isEmpty ? "Host;" : "Host: \(name)", "Origin: http://\(name)"]
            let posted = try page.curl(fields, play, path: "/run")
            #expect(["421", "400"].contains(posted.status), "\(name): \(posted.text)")
        }
        for path in ["/", "/page.js", "/state", "/tokens", "/rotate", "/login", "/nothing"] {
            #expect(try page.curl(["Host: evil.example"], path: path).status == "421", "\(path)")
            #expect(try page.curl(["Origin: http://evil.example"], path: path).status == "403", "\(path)")
        }
        for origin in [
            "http://evil.example", "null", "https://127.0.0.1:\(page.port)", "http://127.0.0.1", "http://127.0.0.1:1",
            "http://localhost:\(page.port)", "http://127.0.0.1:\(page.port).evil.example", "", "file://",
        ] {
            let answer = try page.curl([origin.isEmpty ? "Origin;" : "Origin: \(origin)"], play, path: "/run")
            #expect(answer.status == "403" && !answer.text.lowercased().contains("access-control-allow"), "\(origin)")
        }
        let twice = ["Origin: http://127.0.0.1:\(page.port)", "Origin: http://evil.example"]
        #expect(try page.curl(twice).status == "403")
        // Content types that a form or a script may send without a preflight request are refused for every sender.
        for type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
            let answer = try page.curl(["Content-Type: \(type)"], ["-d", #"{"scenario":"rotate"}"#], path: "/run")
            #expect(answer.status == "415")
        }
    }

    @Test("Every scenario ends as its button says, and so does the command that is shown")
    func scenarios() throws {
        let page = try Page.demo()
        let state = try FinishedRun(["-sS", page.base + "/state"], program: "/usr/bin/curl").object
        let scenarios = try #require(state["scenarios"] as? [[String: String]])
        #expect(scenarios.count >= 14)
        for scenario in scenarios {
            let name = try #require(scenario["name"])
            let outcome = try page.run("{\"scenario\":\"\(name)\",\"permissions\":[\"email\"]}")
            let code = try jsonObject(outcome["answer"] as? String ?? "{}")["code"] as? String
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
            let pasted = try FinishedRun(["-c", try #require(outcome["command"] as? String)], program: "/bin/sh")
            let said = try jsonObject(String(pasted.output.split(whereSeparator: \.isNewline).last ?? ""))
            #expect(said["code"] as? String == code && (said["profile"] != nil) == (code == nil), "\(name): \(pasted)")
        }
        let stolen = try #require(try page.run(#"{"scenario":"stolen"}"#)["steps"] as? [[String: String]])
        #expect(stolen.filter { $0["what"] == "POST /verify" }.map { $0["result"] } == ["401", "200"])
        for (body, status) in [
            ("[]", "400"), ("{", "400"), ("{}", "400"), (#"{"scenario":"nothing"}"#, "400"),
            (#"{"scenario":7}"#, "400"), (String(repeating: "x", count: 60_000), "413"),
        ] { #expect(try page.curl([], ["--json", body], path: "/run").status == status, "\(body.prefix(30))") }
    }

    @Test("inspect judges a pasted token, stores and prints nothing, and shows the command with the same verdict")
    func inspect() throws {
        let issuer = try IssuerProcess("--app-secret", "s3cr3t-of-the-app")
        let folder = try ShortFolder()
        let nonces = ["nonce_secret_file": try folder.nonceSecret()]
        let page = try Page.inspect(
            nonces.merging([
                "jwks_urls": issuer.jwksURL, "access_tokens": "accept", "graph_url": "http://\(issuer.address)",
                "app_secrets_file": try folder.write("secrets", "\(RunningService.appID) s3cr3t-of-the-app\n"),
            ]) { $1 }
        )
        let made = try FinishedRun(["nonce", "new", "--app-ids", RunningService.appID], environment: nonces).output
        let issued = try issuer.token("{\"nonce\":\"\(made.prefix { !$0.isNewline })\"}")
        let token = try issuer.token(#"{"nonce":"it's","email":"jane@example.com"}"#)
        let old = try issuer.token(#"{"nonce":"it's","iat":1700000000}"#)
        let access = try issuer.accessToken(#"{"user":"77"}"#)
        // A token with a compared nonce belongs to the login, so the page needs no note.
        for (token, binding, value, at, code, note) in [
            (token, "nonce", "it's", "", nil, ""), ("  \(token)\\n", "nonce", "it's", "", nil, ""),
            (token, "nonce", "n-2", "", "nonce_mismatch", ""), (token, "unbound", "", "", nil, "tied to no login"),
            (token, "subject", "2954873201847263", "", nil, "no login may begin with it"),
            (token, "subject", "1", "", "subject_mismatch", ""), ("x", "unbound", "", "", "malformed_token", ""),
            (issued, "issued_nonce", "", "", nil, "one of your nonces, of any login"),
            (old, "nonce", "it's", "", "expired", ""), (old, "nonce", "it's", "2023-11-14T22:30:00Z", nil, ""),
            (old, "unbound", "", "1700000100", nil, "tied to no login"), (access, "unbound", "", "", nil, ""),
            (access, "subject", "78", "", "subject_mismatch", ""),
        ] as [(String, String, String, String, String?, String)] {
            let body = #"{"id_token":"\#(token)","binding":"\#(binding)","value":"\#(value)","at":"\#(at)"}"#
            let outcome = try page.run(body)
            let report = try #require(outcome["report"] as? [String: Any])
            #expect(report["accepted"] as? Bool == (code == nil) && report["code"] as? String == code, "\(report)")
            let told = outcome["note"] as? String ?? ""
            #expect(note.isEmpty ? binding != "nonce" || told.isEmpty : told.contains(note), "\(binding): \(told)")
            let shown = try #require(outcome["command"] as? String)
            // The token comes on standard input, since other users can see a program's arguments.
            #expect(shown.hasPrefix("printf %s '") && shown.contains("| limited-login verify - "), "\(shown)")
            let command = shown.replacing("limited-login verify", with: "\(ServiceProcess.executable) verify")
            let run = try FinishedRun(["-c", "\(command) --json"], program: "/bin/sh")
            #expect(run.exitCode == (code == nil ? 0 : 1), "\(shown): \(run)")
            #expect(run.output.contains(code.map { "\"code\":\"\($0)\"" } ?? "\"accepted\":true"), "\(run.output)")
        }
        #expect(!page.process.outputText.contains(token) && !page.process.errorText.contains("it's"))
        #expect(try page.curl(path: "/tokens").status == "404")
        let noon = #"{"id_token":"x","binding":"unbound","value":"","at":"noon"}"#
        #expect(try page.curl([], ["--json", noon], path: "/run").status == "400")
    }
}
