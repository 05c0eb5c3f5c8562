import FoundationEssentials
import LLTestSupport
import Testing

@testable import LLService

@Suite("Configuration: the page, the example file and the code agree")
struct ConfigurationPageTests {
    @Test("The page has a row for each setting, and no other")
    func rows() throws {
        let rows = Settings.rows.map { row in
            let kind =
                switch row.kind {
                case .list: "list of strings"
                case .text: "string"
                case .file, .secretFile: "path of a file"
                case .integer(let range): "integer, \(range.lowerBound) to \(range.upperBound)"
                case .duration(let range): "time, \(range.lowerBound) to \(range.upperBound) s"
                case .size(let range):
                    "size, \(row.kind.withUnit(range.lowerBound)) to \(row.kind.withUnit(range.upperBound))"
                case .choice(let words): "one of " + words.map { "`\($0)`" }.joined(separator: ", ")
                }
            return "| `\(row.name)` | `\(row.environmentName)` | `--\(row.flagName)` | \(kind) | \(row.defaultText) "
                + "| \(row.reload.rawValue) | \(row.summary) |"
        }
        let page = try ProjectFiles.text("config/README.md").split(separator: "\n").filter { $0.hasPrefix("| `") }
        #expect(page.map(String.init) == rows)
    }

    @Test("The example file shows every key in order, with the default values")
    func exampleFile() throws {
        let text = try ProjectFiles.text("config/limited-login.json")
        var position = text.startIndex
        for row in Settings.rows {
            let member = try #require(text[position...].firstRange(of: "\"\(row.name)\": "))
            position = member.upperBound
        }
        let environment = ["LIMITED_LOGIN_APP_IDS": "123"]
        let file = ProjectFiles.path("config/limited-login.json")
        let loaded = try ConfigurationLoader.load(flags: [:], environment: environment, file: file).configuration
        for row in Settings.rows.dropFirst() { #expect(loaded.value(row) == row.standard, "\(row.name)") }
    }
}
