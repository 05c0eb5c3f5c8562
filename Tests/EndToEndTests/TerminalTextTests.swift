import Foundation
import LLStandIn
import LLTestSupport
import Testing

/// Text from outside cannot move the cursor, hide letters or begin a new line.
@Suite("Text from outside at a terminal", .live)
struct TerminalTextTests {
    private static let environment = ["LIMITED_LOGIN_APP_IDS": RunningService.appID]

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
        }
    }

    /// A key set with a hostile key id, and a key that is ignored.
    private static func keySet() -> String {
        let minter = TokenMinter(key: StandInKeys.current.key, keyID: hostile)
        let ignored = minter.jsonWebKey.replacing("RS256", with: "RS\u{9b}2J\u{202e}")
        return "{\"keys\":[\(minter.jsonWebKey),\(ignored)]}"
    }

    private static func issuer() throws -> ScriptedIssuer {
        let body = keySet()
        return try ScriptedIssuer { _, peer in
            try peer.send(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
                    + "Connection: close\r\n\r\n\(body)"
            )
        }
    }

    @Test("keys shows a hostile key id without control characters, as text and as JSON", arguments: [[], ["--json"]])
    func keys(flags: [String]) throws {
        let issuer = try Self.issuer()
        defer { issuer.stop() }
        let run = try FinishedRun(["keys", "--jwks-urls", issuer.url] + flags, environment: Self.environment)
        #expect(run.exitCode == 0, "\(run.errors)")
        #expect(run.output.contains("owned"), "\(run.output)")
        #expect(Self.isSafe(run.output), "\(run.output.debugDescription)")
        #expect(!run.output.contains("\nforged"))
        #expect(Self.isSafe(run.errors), "\(run.errors.debugDescription)")
        guard !flags.isEmpty else { return }
        let object = try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any]
        let shown = (object?["keys"] as? [[String: Any]])?.first?["kid"] as? String
        #expect(shown == Self.hostile, "JSON loses nothing")
    }

    @Test(
        "An error quotes arguments and settings without control characters",
        arguments: [
            ["brew\u{1b}[2J"],
            ["verify", "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.e30.AAAA", "--unbound", "--jwks", "/no\u{1b}[2J\u{202e}"],
            ["check-config", "--config", "/no\u{1b}[2J\nforged"], ["permissions", "list", "\u{1b}[2J\u{202e}"],
        ]
    )
    func errors(arguments: [String]) throws {
        let run = try FinishedRun(arguments, environment: Self.environment)
        #expect(run.exitCode != 0)
        #expect(!run.errors.isEmpty && Self.isSafe(run.errors), "\(run.errors.debugDescription)")
        #expect(!run.errors.contains("\nforged"))
    }

    @Test("A log line holds no control characters, in either format", arguments: ["text", "json"])
    func log(format: String) throws {
        let issuer = try Self.issuer()
        defer { issuer.stop() }
        let service = try ServiceProcess(
            [
                "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--jwks-urls", issuer.url,
                "--log-format", format,
            ],
            environment: Self.environment
        )
        #expect(service.waitForError("key set changed"), "\(service.errorText)")
        #expect(service.waitForError("key ignored"), "\(service.errorText)")
        service.terminate()
        #expect(service.waitForExit() == 0)
        #expect(service.errorText.contains("owned"))
        #expect(Self.isSafe(service.errorText), "\(service.errorText.debugDescription)")
    }
}
