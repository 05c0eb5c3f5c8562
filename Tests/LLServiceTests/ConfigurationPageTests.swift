import FoundationEssentials
import LLTestSupport
import Testing

@testable import LLService

@Suite("Configuration: the page, the example file and the code agree")
struct ConfigurationPageTests {
    /// The page `config/settings.md`; `LIMITED_LOGIN_WRITE_SETTINGS=1` writes it.
    private static let page: String = {
        let rows = Settings.rows.map { row in
            let kind =
                switch row.kind {
                case .list: "list"
                case .text: "text"
                case .file, .secretFile: "file"
                case .integer(let range): "\(range.lowerBound) to \(range.upperBound)"
                case .duration(let range): "\(range.lowerBound) to \(range.upperBound) s"
                case .size(let range):
                    "\(row.kind.withUnit(range.lowerBound)) to \(row.kind.withUnit(range.upperBound))"
                case .choice(let words): words.map { "`\($0)`" }.joined(separator: ", ")
                }
            let standard = row.defaultText == "none" ? "" : row.defaultText
            return "| `\(row.name)` | \(kind) | \(standard) | \(row.reload.rawValue) | \(row.summary) |\n"
        }
        return """
            # Every setting
            The flag of `app_ids` is `--app-ids`, its variable `LIMITED_LOGIN_APP_IDS`, and so for all. A list is a JSON array
            in the file, and has commas elsewhere. A time is a number of seconds, or has a unit: `90s`, `5m`, `1h`, `2d`; a size
            likewise: `512KiB`, `64MiB`, `1GiB`. [Tasks](README.md) tell how to use them.

            After a [reload](README.md#reload) with `yes` the new value is in force, with `content` the new value or file, which
            is neither added nor taken away, or with `added` may be added. All else takes a restart.

            | name | value | default | reload | meaning |
            |---|---|---|---|---|

            """ + rows.joined()
    }()

    @Test("The page has a row for each setting, and no other")
    func rows() throws {
        if ProcessInfo.processInfo.environment["LIMITED_LOGIN_WRITE_SETTINGS"] != nil {
            try Data(Self.page.utf8).write(to: URL(filePath: ProjectFiles.path("config/settings.md")))
        }
        #expect(try ProjectFiles.text("config/settings.md") == Self.page)
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
        let loaded = try ConfigurationLoader.load(flags: [:], environment: environment, file: file)
        for row in Settings.rows.dropFirst() { #expect(loaded.value(row) == row.standard, "\(row.name)") }
    }
}
