import Foundation
import LLHTTP
import LLStandIn
import LLTestSupport
import Testing

@Suite("The command line at a terminal", .live)
struct TerminalTests {
    private static let app = ["LIMITED_LOGIN_APP_IDS": RunningService.appID, "TERM": "xterm", "TZ": "UTC"]

    @Test("Times are shown in local and relative form")
    func times() throws {
        let issuer = try IssuerProcess()
        let token = try issuer.token(#"{"nonce":"n-1","iat":1700000000}"#)
        let flags = ["verify", token, "--unbound", "--jwks", issuer.jwksURL]
        let run = try FinishedRun(flags + ["--at", "1700000100"], environment: Self.app)
        #expect(run.output.contains("issued_at: 1700000000, 100 seconds ago (2023-11-14 22:13:20 +0000)"))
        #expect(run.output.contains("expires_at: 1700003600, in 58 minutes (2023-11-14 23:13:20 +0000)"))
        let abroad = try FinishedRun(
            flags + ["--at", "1700000100"],
            environment: Self.app.merging(["TZ": "XYZ-5:30"]) { _, new in new }
        )
        #expect(abroad.output.contains("(2023-11-15 03:43:20 +0530)"), "\(abroad.output)")
    }

    @Test("Colours are used only on a terminal, and can be forbidden")
    func colours() throws {
        let judged = ["verify", "x", "--unbound"]
        let piped = try FinishedRun(judged, environment: Self.app)
        #expect(!piped.output.contains("\u{1b}["))
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/script") else { return }
        let line = ([ServiceProcess.executable] + judged).map { "'\($0)'" }.joined(separator: " ")
        for (variables, isColoured) in [
            (["NO_COLOR": ""], true), (["NO_COLOR": "1"], false), (["TERM": "dumb"], false),
        ] {
            let run = try FinishedRun(
                ["-qec", line, "/dev/null"],
                environment: Self.app.merging(variables) { _, new in new },
                program: "/usr/bin/script",
                input: "\n"
            )
            #expect(run.output.contains("\u{1b}[31mREFUSED\u{1b}[0m") == isColoured, "\(variables): \(run.output)")
        }
    }

    @Test("A fetch that takes longer than a moment names its URL")
    func progress() throws {
        // The system completes the connection, and no program ever answers on it.
        let listener = try Socket.listener(on: .loopback(port: 0), backlog: 8, sharesPort: false)
        let url = "http://\(try listener.localAddress())/keys"
        // The token is well formed, so its key is fetched.
        let token = try StandInKeys.current.mint(header: StandInKeys.current.header, payload: Array("{}".utf8))
        for command in [["verify", token, "--unbound"], ["keys"]] {
            let process = try ServiceProcess(command + ["--jwks-urls", url], environment: Self.app)
            defer { process.kill() }
            #expect(process.waitForError("fetching the issuer's keys from \(url)"))
        }
    }
}
