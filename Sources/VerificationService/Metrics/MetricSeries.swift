internal import CoreMetrics
internal import Synchronization

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
