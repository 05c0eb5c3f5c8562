import LLTestSupport
import Testing

@testable import LLService

@Suite("Dashboard and alerts name existing metrics")
struct ObservabilityFilesTests {
    /// The beginnings of our metrics' names. Other words of PromQL only look like a metric's name.
    private static let beginnings = ["limited_login_", "http_server_", "jwks_", "process_"]

    /// The metrics that an expression names; a histogram is named by its family.
    private static func metrics(in text: String) -> Set<String> {
        let words = text.split { !($0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_")) }.map(String.init)
        var names: Set<String> = []
        for word in words where beginnings.contains(where: { word.hasPrefix($0) }) {
            let suffix = ["_bucket", "_sum", "_count"].first { word.hasSuffix($0) } ?? ""
            names.insert(String(word.dropLast(suffix.count)))
        }
        return names
    }

    @Test("Each metric named in a file exists", arguments: ["dashboard.json", "rules.yaml", "rules_test.yaml"])
    func known(_ file: String) throws {
        let named = Self.metrics(in: try ProjectFiles.text("config/prometheus/\(file)"))
        #expect(named.count > 5)
        #expect(named.subtracting(ServiceMetrics.help.keys) == [])
    }

    @Test("The dashboard shows every metric")
    func complete() throws {
        let named = Self.metrics(in: try ProjectFiles.text("config/prometheus/dashboard.json"))
        #expect(Set(ServiceMetrics.help.keys).subtracting(named) == [])
    }
}
