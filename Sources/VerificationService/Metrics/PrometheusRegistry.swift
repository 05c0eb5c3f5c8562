package import CoreMetrics
internal import Sockets
internal import Synchronization

/// The backend of swift-metrics in this service: it keeps every series and renders them in the Prometheus text
/// format, version 0.0.4 (no exporter package is among the dependencies).
///
/// Metric and label names come from this project's code alone, so they need no escaping; label values are escaped.
package final class PrometheusRegistry: MetricsFactory, Sendable {
    enum Series {
        case counter(CounterSeries)
        case gauge(GaugeSeries)
        case duration(DurationSeries)
    }

    struct Key: Hashable {
        let name: String
        let labels: String
    }

    private let series = Locked<[Key: Series]>([:])
    private let help: [String: String]

    /// - Parameter help: the sentence of each metric's `# HELP` line, by name.
    package init(help: [String: String]) { self.help = help }

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        let key = Self.key(label, dimensions)
        return series.withLock { all in
            if case .counter(let known)? = all[key] { return known }
            let made = CounterSeries()
            all[key] = .counter(made)
            return made
        }
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        gauge(Self.key(label, dimensions))
    }

    package func makeRecorder(
        label: String,
        dimensions: [(String, String)],
        aggregate: Bool
    ) -> any RecorderHandler { gauge(Self.key(label, dimensions)) }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        let key = Self.key(label, dimensions)
        return series.withLock { all in
            if case .duration(let known)? = all[key] { return known }
            let made = DurationSeries()
            all[key] = .duration(made)
            return made
        }
    }

    // Series live as long as the process: their label sets are bounded by the code.
    package func destroyCounter(_ handler: any CounterHandler) {}
    package func destroyMeter(_ handler: any MeterHandler) {}
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    package func destroyTimer(_ handler: any TimerHandler) {}

    private func gauge(_ key: Key) -> GaugeSeries {
        series.withLock { all in
            if case .gauge(let known)? = all[key] { return known }
            let made = GaugeSeries()
            all[key] = .gauge(made)
            return made
        }
    }

    private static func key(_ name: String, _ dimensions: [(String, String)]) -> Key {
        Key(name: name, labels: dimensions.map { "\($0.0)=\"\(escaped($0.1))\"" }.joined(separator: ","))
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

    /// The whole exposition, families in the order of their names.
    package func render() -> String {
        let all = series.withLock { $0 }
        var text = ""
        var family = ""
        for (key, value) in all.sorted(by: { ($0.key.name, $0.key.labels) < ($1.key.name, $1.key.labels) }) {
            if key.name != family {
                family = key.name
                // What is counted elsewhere and only read here comes as a gauge; its name says what it is.
                let type = family.hasSuffix("_total") ? "counter" : Self.type(of: value)
                text += "# HELP \(family) \(help[family] ?? family)\n# TYPE \(family) \(type)\n"
            }
            text += Self.lines(key, value)
        }
        return text
    }

    private static func type(of series: Series) -> String {
        switch series {
        case .counter: "counter"
        case .gauge: "gauge"
        case .duration: "histogram"
        }
    }

    private static func lines(_ key: Key, _ series: Series) -> String {
        let braces = key.labels.isEmpty ? "" : "{\(key.labels)}"
        switch series {
        case .counter(let counter): return "\(key.name)\(braces) \(counter.value)\n"
        case .gauge(let gauge): return "\(key.name)\(braces) \(number(gauge.value))\n"
        case .duration(let duration):
            let (counts, sum) = duration.read()
            let prefix = key.labels.isEmpty ? "" : key.labels + ","
            var text = ""
            var total: Int64 = 0
            for (index, count) in counts.enumerated() {
                total += count
                let isLast = index == DurationSeries.boundsNanoseconds.count
                let bound = isLast ? "+Inf" : seconds(DurationSeries.boundsNanoseconds[index])
                text += "\(key.name)_bucket{\(prefix)le=\"\(bound)\"} \(total)\n"
            }
            return text + "\(key.name)_sum\(braces) \(seconds(sum))\n\(key.name)_count\(braces) \(total)\n"
        }
    }

    private static func seconds(_ nanoseconds: Int64) -> String { number(Double(nanoseconds) / 1e9) }

    private static func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : "\(value)"
    }
}

/// A monotonic count.
final class CounterSeries: CounterHandler, Sendable {
    private let count = Atomic<Int64>(0)

    var value: Int64 { count.load(ordering: .relaxed) }

    func increment(by amount: Int64) {
        guard amount > 0 else { return }
        count.wrappingAdd(amount, ordering: .relaxed)
    }

    func reset() { count.store(0, ordering: .relaxed) }
}

/// A value that goes up and down.
final class GaugeSeries: MeterHandler, RecorderHandler, Sendable {
    private let bits = Atomic<UInt64>(0)

    var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }
    func record(_ value: Int64) { set(Double(value)) }
    func record(_ value: Double) { set(value) }
    func increment(by amount: Double) { adjust(amount) }
    func decrement(by amount: Double) { adjust(-amount) }

    private func adjust(_ amount: Double) {
        var expected = bits.load(ordering: .relaxed)
        while true {
            let desired = (Double(bitPattern: expected) + amount).bitPattern
            let outcome = bits.compareExchange(expected: expected, desired: desired, ordering: .relaxed)
            guard !outcome.exchanged else { return }
            expected = outcome.original
        }
    }
}

/// A distribution of durations over fixed buckets.
final class DurationSeries: TimerHandler, Sendable {
    /// Upper bounds in nanoseconds: from 50 µs, because a verdict takes about that, to 10 s.
    static let boundsNanoseconds: [Int64] = [
        50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
        100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000,
    ]

    private let buckets: [CounterSeries]
    private let sum = Atomic<Int64>(0)

    init() { buckets = (0...Self.boundsNanoseconds.count).map { _ in CounterSeries() } }

    func recordNanoseconds(_ duration: Int64) {
        let nanoseconds = max(0, duration)
        var index = 0
        while index < Self.boundsNanoseconds.count, nanoseconds > Self.boundsNanoseconds[index] { index += 1 }
        buckets[index].increment(by: 1)
        sum.wrappingAdd(nanoseconds, ordering: .relaxed)
    }

    /// The counts of the buckets, not cumulated, the last one for everything above the greatest bound; and the sum.
    func read() -> (counts: [Int64], sumNanoseconds: Int64) {
        (buckets.map(\.value), sum.load(ordering: .relaxed))
    }
}
