import FoundationEssentials
import LLTestSupport
import Testing

@Suite("The documented rules")
struct RulesTableTests {
    private static let root = ProjectFiles.root

    /// The rows of the table, each with its cells.
    private static func rows() throws -> [[Substring]] {
        let path = root + "/Sources/LimitedLogin/LimitedLogin.docc/Rules.md"
        let text = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
        let lines = text.split(separator: "\n").filter { $0.hasPrefix("| ") && $0.dropFirst(2).first?.isNumber == true }
        return lines.map { $0.split(separator: "|").map { $0.trimmed } }
    }

    /// The texts between backticks.
    private static func names(in cell: Substring) -> [Substring] {
        cell.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }.map(
            \.element
        )
    }

    @Test("There are 37 rules, and every file and test that one names exists")
    func rules() throws {
        let rows = try Self.rows()
        #expect(rows.map { $0.first.map(String.init) } == (1...37).map { String($0) })
        for row in rows {
            for name in Self.names(in: try #require(row.dropFirst(3).first)) {
                let path = "\(Self.root)/Sources/\(name.contains("/") ? "" : "LimitedLogin/")\(name).swift"
                #expect(FileManager.default.fileExists(atPath: path), "rule \(row[0]): \(name)")
            }
            var suite: Substring = ""
            for name in Self.names(in: try #require(row.dropFirst(4).first)) {
                let parts = name.split(separator: ".", omittingEmptySubsequences: false)
                if let first = parts.first, !first.isEmpty { suite = first }
                let source = try #require(Self.source(of: suite), "rule \(row[0]): \(suite)")
                if parts.count > 1 { #expect(source.contains("func \(parts[1])("), "rule \(row[0]): \(name)") }
            }
        }
    }

    private static func source(of suite: Substring) -> String? {
        ["ConformanceTests", "LimitedLoginTests", "LLJOSETests", "LLBytesTests"].lazy.compactMap { folder in
            try? Data(contentsOf: URL(filePath: "\(root)/Tests/\(folder)/\(suite).swift"))
        }.first.map { String(decoding: $0, as: UTF8.self) }
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var text = drop { $0 == " " }
        while text.last == " " { text.removeLast() }
        return text
    }
}
