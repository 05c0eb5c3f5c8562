internal import LLHTTP
internal import Synchronization

/// The metrics of the service. It keeps every series as long as the process, since the code bounds their label sets, and
/// renders them in the Prometheus text format, version 0.0.4.
///
/// Metric and label names come only from this project's code, so they need no escaping; label values are escaped.
package final class PrometheusRegistry: Sendable {
    struct Key: Hashable {
        let name: String
        let labels: String

        fileprivate var braces: String { labels.isEmpty ? "" : "{\(labels)}" }
    }

    private let all = Locked<[Key: any PrometheusSeries]>([:])
    private let help: [String: String]

    package init(help: [String: String]) { self.help = help }

    package func counter(_ name: String, _ labels: [(String, String)] = []) -> Counter {
        series(Counter.self, name, labels)
    }

    package func gauge(_ name: String, _ labels: [(String, String)] = []) -> Gauge { series(Gauge.self, name, labels) }

    package func timer(_ name: String, _ labels: [(String, String)] = []) -> Timer { series(Timer.self, name, labels) }

    private func series<Series: PrometheusSeries>(
        _ type: Series.Type,
        _ name: String,
        _ labels: [(String, String)]
    ) -> Series {
        let labels = labels.map { "\($0.0)=\"\(Self.escaped($0.1))\"" }.joined(separator: ",")
        let key = Key(name: name, labels: labels)
        return all.withLock { all in
            if let known = all[key] as? Series { return known }
            let made = Series()
            all[key] = made
            return made
        }
    }

    private static func escaped(_ value: String) -> String {
        var text = ""
        for character in value.unicodeScalars {
            switch character {
            case "\\": text += "\\\\"
            case "\"": text += "\\\""
            case "\n": text += "\\n"
            default: text.unicodeScalars.append(character)
            }
        }
        return text
    }

    package func render() -> String {
        let all = all.withLock { $0 }
        var text = ""
        var family = ""
        for (key, value) in all.sorted(by: { ($0.key.name, $0.key.labels) < ($1.key.name, $1.key.labels) }) {
            if key.name != family {
                family = key.name
                // A number that is counted elsewhere and only read here comes as a gauge; its name tells its type.
                let type = family.hasSuffix("_total") ? "counter" : type(of: value).type
                text += "# HELP \(family) \(help[family] ?? family)\n# TYPE \(family) \(type)\n"
            }
            text += value.lines(key)
        }
        return text
    }
}

private protocol PrometheusSeries: AnyObject, Sendable {
    static var type: String { get }
    init()
    func lines(_ key: PrometheusRegistry.Key) -> String
}

extension PrometheusSeries {
    fileprivate func seconds(_ nanoseconds: Int64) -> String { number(Double(nanoseconds) / 1e9) }

    fileprivate func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : "\(value)"
    }
}

package final class Counter: PrometheusSeries {
    fileprivate static let type = "counter"
    private let count = Atomic<Int64>(0)

    fileprivate init() {}

    fileprivate var value: Int64 { count.load(ordering: .relaxed) }

    package func increment() { count.wrappingAdd(1, ordering: .relaxed) }

    fileprivate func lines(_ key: PrometheusRegistry.Key) -> String { "\(key.name)\(key.braces) \(value)\n" }
}

package final class Gauge: PrometheusSeries {
    fileprivate static let type = "gauge"
    private let bits = Atomic<UInt64>(0)

    fileprivate init() {}

    package func record(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

    fileprivate func lines(_ key: PrometheusRegistry.Key) -> String {
        "\(key.name)\(key.braces) \(number(Double(bitPattern: bits.load(ordering: .relaxed))))\n"
    }
}

package final class Timer: PrometheusSeries {
    fileprivate static let type = "histogram"
    /// Upper bounds in nanoseconds: from 50 µs, because a verdict takes about that, to 10 s.
    private static let boundsNanoseconds: [Int64] = [
        50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
        100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000,
    ]

    private let buckets: [Counter]
    private let sum = Atomic<Int64>(0)

    fileprivate init() { buckets = (0...Self.boundsNanoseconds.count).map { _ in Counter() } }

    package func recordNanoseconds(_ duration: Int64) {
        let nanoseconds = max(0, duration)
        var index = 0
        while index < Self.boundsNanoseconds.count, nanoseconds > Self.boundsNanoseconds[index] { index += 1 }
        buckets[index].increment()
        sum.wrappingAdd(nanoseconds, ordering: .relaxed)
    }

    /// The buckets are cumulative; the last one counts everything.
    fileprivate func lines(_ key: PrometheusRegistry.Key) -> String {
        let prefix = key.labels.isEmpty ? "" : key.labels + ","
        let bounds = Self.boundsNanoseconds.map { seconds($0) } + ["+Inf"]
        var text = ""
        var total: Int64 = 0
        for (bucket, bound) in zip(buckets, bounds) {
            total += bucket.value
            text += "\(key.name)_bucket{\(prefix)le=\"\(bound)\"} \(total)\n"
        }
        let sum = seconds(sum.load(ordering: .relaxed))
        return text + "\(key.name)_sum\(key.braces) \(sum)\n\(key.name)_count\(key.braces) \(total)\n"
    }
}
