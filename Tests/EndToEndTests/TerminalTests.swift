import Foundation
import LLHTTP
import LLStandIn
import LLTestSupport
import Testing

/// Text from outside cannot move the cursor, hide letters or begin a new line.
@Suite("The command line at a terminal", .live)
struct TerminalTests {
    private static let app = ["app_ids": RunningService.appID, "TERM": "xterm"]
    /// An escape sequence, a C1 sequence, a reversal of letters, a line separator and a line feed.
    private static let hostile = "k\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}gnp\u{2028}\nforged"

    /// True if a terminal would obey nothing in this output.
    private static func isSafe(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            switch scalar.value {
            case 0x0A: true
            case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: false
            default: true
            }
        } && !text.contains("\nforged")
    }

    /// An issuer with a hostile key id, and a key that is ignored.
    private static func hostileIssuer() throws -> ScriptedIssuer {
        let key = TokenMinter(key: StandInKeys.current.key, keyID: hostile).jsonWebKey
        let keys = "{\"keys\":[\(key),\(key.replacing("RS256", with: "RS\u{9b}2J\u{202e}"))]}"
        return try ScriptedIssuer { _, peer in try peer.answer(fields: ["Content-Type: application/json"], keys) }
    }

    @Test("No output, error or log line holds a control character, and JSON loses nothing")
    func controlCharacters() throws {
        let issuer = try Self.hostileIssuer()
        defer { issuer.stop() }
        let keys = ["keys", "--jwks-urls", issuer.url]
        for arguments in [keys, keys + ["--json"]] {
            let run = try FinishedRun(arguments, environment: Self.app)
            #expect(run.exitCode == 0 && run.output.contains("owned"), "\(run)")
            #expect(Self.isSafe(run.output) && Self.isSafe(run.errors), "\(run.output.debugDescription)")
            if arguments == keys { continue }
            let shown = (try run.object["keys"] as? [[String: Any]])?.first?["kid"] as? String
            #expect(shown == Self.hostile)
        }
        let token = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.e30.AAAA"
        for arguments in [
            ["brew\u{1b}[2J"], ["verify", token, "--unbound", "--jwks", "/no\u{1b}[2J\u{202e}"],
            ["check-config", "--config", "/no\u{1b}[2J\nforged"], ["permissions", "list", "\u{1b}[2J\u{202e}"],
        ] {
            let run = try FinishedRun(arguments, environment: Self.app)
            #expect(run.exitCode != 0)
            #expect(!run.errors.isEmpty && Self.isSafe(run.errors), "\(run.errors.debugDescription)")
        }
        for format in ["text", "json"] {
            let settings = ["jwks_urls": issuer.url, "log_format": format, "listen": "127.0.0.1:0"]
            let service = try ServiceProcess(
                ["serve", "--admin-listen", "127.0.0.1:0"],
                environment: Self.app.merging(settings) { $1 }
            )
            #expect(service.waitForError("key set changed"), "\(service.errorText)")
            #expect(service.waitForError("key ignored"), "\(service.errorText)")
            service.end()
            #expect(service.errorText.contains("owned"))
            #expect(Self.isSafe(service.errorText), "\(service.errorText.debugDescription)")
        }
    }

    @Test("Colours are used only on a terminal, and can be forbidden")
    func colours() throws {
        let judged = ["verify", "x", "--unbound"]
        #expect(try !FinishedRun(judged, environment: Self.app).output.contains("\u{1b}["))
        let tool = "/usr/bin/script"
        guard FileManager.default.isExecutableFile(atPath: tool) else { return }
        let line = ([ServiceProcess.executable] + judged).map { "'\($0)'" }.joined(separator: " ")
        for (name, value, isColoured) in [("NO_COLOR", "", true), ("NO_COLOR", "1", false), ("TERM", "dumb", false)] {
            let environment = Self.app.merging([name: value]) { $1 }
            let words = ["-qec", line, "/dev/null"]
            let run = try FinishedRun(words, environment: environment, program: tool, input: "\n")
            #expect(run.output.contains("\u{1b}[31mREFUSED\u{1b}[0m") == isColoured, "\(name): \(run.output)")
        }
    }
}
