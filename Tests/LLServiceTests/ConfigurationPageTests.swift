import FoundationEssentials
import LLTestSupport
import Testing

@testable import LLService

@Suite("Configuration: the page, the example file and the code agree")
struct ConfigurationPageTests {
    @Test("The page has a row for each key", arguments: ConfigurationKey.allCases)
    func row(key: ConfigurationKey) throws {
        let page = try ProjectFiles.text("config/README.md").split(separator: "\n")
        let definition = key.definition
        let kind =
            switch definition.kind {
            case .list: "list of strings"
            case .text: "string"
            case .file, .secretFile: "path of a file"
            case .integer(let range): "integer, \(range.lowerBound) to \(range.upperBound)"
            case .duration(let range): "time, \(range.lowerBound) to \(range.upperBound) s"
            case .size(let range):
                "size, "
                    + [range.lowerBound, range.upperBound].map(definition.kind.withUnit).joined(separator: " to ")
            case .choice(let words): "one of " + words.map { "`\($0)`" }.joined(separator: ", ")
            }
        let row =
            "| `\(key.rawValue)` | `\(key.environmentName)` | `--\(key.flagName)` | \(kind) | \(key.defaultText) "
            + "| \(definition.reload.rawValue) | \(key.summary) |"
        #expect(page.contains(row[...]), "\(row)")
    }

    @Test("The page has no other row")
    func noOtherRows() throws {
        let rows = try ProjectFiles.text("config/README.md").split(separator: "\n").filter { $0.hasPrefix("| `") }
        #expect(rows.count == ConfigurationKey.allCases.count)
    }

    @Test("The example file shows every key in order, with the default values")
    func exampleFile() throws {
        let text = try ProjectFiles.text("config/limited-login.json")
        var position = text.startIndex
        for key in ConfigurationKey.allCases {
            let member = try #require(text[position...].firstRange(of: "\"\(key.rawValue)\": "))
            position = member.upperBound
        }
        let loaded = try ConfigurationLoader.load(
            flags: [:],
            environment: ["LIMITED_LOGIN_APP_IDS": "123"],
            file: ProjectFiles.path("config/limited-login.json")
        )
        let plain = try ConfigurationLoader.load(
            flags: [:],
            environment: ["LIMITED_LOGIN_APP_IDS": "123"],
            file: nil,
            readsDefaultFile: false
        )
        #expect(loaded.configuration == plain.configuration)
    }
}
