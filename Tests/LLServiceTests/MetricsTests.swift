import LLTestSupport
import Testing

@testable import LLService

@Suite("Metrics: the Prometheus text")
struct MetricsTests {
    @Test("Counters, gauges and durations are rendered in the format's grammar, grouped by family")
    func exposition() {
        let registry = PrometheusRegistry(help: ["a_total": "What a counts."])
        for result in ["x", "x", "y"] { registry.counter("a_total", [("result", result)]).increment() }
        registry.gauge("b").record(1.5)
        let timer = registry.timer("c_seconds", [("route", "/r")])
        timer.recordNanoseconds(60_000)
        timer.recordNanoseconds(20_000_000_000)
        let lines = registry.render().split(separator: "\n").map(String.init)
        #expect(
            lines.prefix(4) == [
                "# HELP a_total What a counts.", "# TYPE a_total counter", #"a_total{result="x"} 2"#,
                #"a_total{result="y"} 1"#,
            ]
        )
        for line in [
            "b 1.5", "# TYPE c_seconds histogram", #"c_seconds_bucket{route="/r",le="5e-05"} 0"#,
            #"c_seconds_bucket{route="/r",le="0.0001"} 1"#, #"c_seconds_bucket{route="/r",le="+Inf"} 2"#,
            #"c_seconds_count{route="/r"} 2"#,
        ] { #expect(lines.contains(line)) }
        #expect(lines.contains { $0.hasPrefix(#"c_seconds_sum{route="/r"} 20.00006"#) })
    }
}

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
        #expect(named.count > 5 && named.subtracting(ServiceMetrics.help.keys) == [])
    }

    @Test("The dashboard shows every metric")
    func complete() throws {
        let named = Self.metrics(in: try ProjectFiles.text("config/prometheus/dashboard.json"))
        #expect(Set(ServiceMetrics.help.keys).subtracting(named) == [])
    }
}
