import FoundationEssentials
import TestSupport
import Testing

@testable import VerificationService

@Suite("Configuration: the page, the example file and the code agree")
struct ConfigurationPageTests {
    @Test(
        "The page has one row for each key, with its names, default and meaning",
        arguments: ConfigurationKey.allCases
    )
    func row(key: ConfigurationKey) throws {
        let page = try ProjectFiles.text("config/README.md")
        let start = "| `\(key.rawValue)` | `\(key.environmentName)` | `--\(key.flagName)` |"
        let rows = page.split(separator: "\n").filter { $0.hasPrefix(start) }
        let row = try #require(rows.first)
        #expect(rows.count == 1)
        #expect(row.hasSuffix("| \(key.defaultText) | \(key.summary) |"))
        switch key.kind {
        case .integer(let range): #expect(row.contains("integer, \(range.lowerBound) to \(range.upperBound)"))
        case .duration(let range): #expect(row.contains("time, \(range.lowerBound) to \(range.upperBound) s"))
        case .choice(let words): #expect(row.contains(words.map { "`\($0)`" }.joined(separator: ", ")))
        case .list: #expect(row.contains("| list of strings |"))
        case .text: #expect(row.contains("| string |"))
        }
    }

    @Test("The page has no row that is no key's")
    func noOtherRows() throws {
        let rows = try ProjectFiles.text("config/README.md").split(separator: "\n").filter { $0.hasPrefix("| `") }
        #expect(rows.count == ConfigurationKey.allCases.count)
    }

    @Test("The example file shows every key in order, and means the defaults")
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
