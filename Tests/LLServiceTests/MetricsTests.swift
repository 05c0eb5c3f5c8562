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
        #expect(lines.contains("b 1.5"))
        #expect(lines.contains("# TYPE c_seconds histogram"))
        #expect(lines.contains(#"c_seconds_bucket{route="/r",le="5e-05"} 0"#))
        #expect(lines.contains(#"c_seconds_bucket{route="/r",le="0.0001"} 1"#))
        #expect(lines.contains(#"c_seconds_bucket{route="/r",le="+Inf"} 2"#))
        #expect(lines.contains(#"c_seconds_count{route="/r"} 2"#))
        #expect(lines.contains { $0.hasPrefix(#"c_seconds_sum{route="/r"} 20.00006"#) })
    }
}
