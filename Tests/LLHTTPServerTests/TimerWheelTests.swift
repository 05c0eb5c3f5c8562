import LLHTTPServer
import LLSockets
import LLTestSupport
import Testing

@Suite("The timer wheel")
struct TimerWheelTests {
    /// A tick of the wheel, 2^25 ns; an entry comes up at most one tick late.
    static let tick: UInt64 = 1 << 25
    static let second: UInt64 = 1_000_000_000
    static let start: UInt64 = 1_000 * second

    /// Handles due entries as a worker does: an entry that comes up early is scheduled again.
    /// - Returns: The due entries in the order they came up; nil if the wheel brings up entries without end.
    private func handleDue(_ wheel: inout TimerWheel, _ deadlines: inout [Int: UInt64], now: UInt64) -> [Int]? {
        var due: [Int] = []
        var looks = 0
        while let entry = wheel.popDue(now: MonotonicInstant(nanoseconds: now)) {
            looks += 1
            if looks > 100_000 { return nil }
            guard let deadline = deadlines[entry] else { continue }
            if deadline <= now {
                due.append(entry)
                deadlines[entry] = nil
            } else {
                wheel.schedule(entry, at: MonotonicInstant(nanoseconds: deadline))
            }
        }
        return due
    }

    @Test(
        "After any time without entries, a new entry comes up once and at its time",
        arguments: [0, 1, 8, 9, 60, 68, 69, 70, 100, 1_000, 100_000, 100_000_000]
    )
    func longSilence(seconds: UInt64) throws {
        var wheel = TimerWheel(now: MonotonicInstant(nanoseconds: Self.start))
        let now = Self.start + seconds * Self.second
        for length in [1, 60, 68, 70, 3_600] as [UInt64] {
            var deadlines = [7: now + length * Self.second]
            wheel.schedule(7, at: MonotonicInstant(nanoseconds: now + length * Self.second))
            var due = handleDue(&wheel, &deadlines, now: now)
            #expect(due == [])
            var moment = now
            while let next = wheel.nextDeadline(), !deadlines.isEmpty {
                #expect(next.nanoseconds > moment)
                moment = max(next.nanoseconds, moment + 1)
                due = handleDue(&wheel, &deadlines, now: moment)
                #expect(try #require(due).count <= 1)
            }
            #expect(moment >= now + length * Self.second)
            #expect(moment <= now + length * Self.second + Self.tick)
            wheel = TimerWheel(now: MonotonicInstant(nanoseconds: Self.start))
        }
    }

    @Test("An entry that is set again with its past deadline comes up once for each look")
    func unmovedDeadline() {
        var wheel = TimerWheel(now: MonotonicInstant(nanoseconds: Self.start))
        let past = MonotonicInstant(nanoseconds: Self.start - Self.second)
        wheel.schedule(3, at: past)
        for look in 1...10 as ClosedRange<UInt64> {
            let now = MonotonicInstant(nanoseconds: Self.start + look * 2 * Self.tick)
            let first = wheel.popDue(now: now)
            wheel.schedule(3, at: past)
            let second = wheel.popDue(now: now)
            #expect(first == 3 && second == nil)
        }
    }

    @Test("Entries set, moved and removed at random come up in time", arguments: 1...20 as ClosedRange<UInt64>)
    func random(seed: UInt64) throws {
        var generator = RepeatableGenerator(seed: seed)
        var wheel = TimerWheel(now: MonotonicInstant(nanoseconds: Self.start))
        var deadlines: [Int: UInt64] = [:]
        var now = Self.start
        for _ in 0..<3_000 {
            let entry = Int.random(in: 0..<50, using: &generator)
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<6:
                let spans = [Self.tick, Self.second, 60 * Self.second, 300 * Self.second]
                let span = spans.randomElement(using: &generator) ?? 0
                let deadline = now + UInt64.random(in: 0...span, using: &generator)
                // An entry is one connection, as in a worker, and its latest deadline holds.
                deadlines[entry] = deadline
                wheel.schedule(entry, at: MonotonicInstant(nanoseconds: deadline))
            case 6:
                wheel.remove(entry)
                deadlines[entry] = nil
            default:
                // The clock moves by a sleep until the next deadline, a sleep cut short, or a standstill.
                let next = wheel.nextDeadline().map { max($0.nanoseconds, now) } ?? now + 200 * Self.second
                let pause = UInt64.random(in: 0...200 * Self.second, using: &generator)
                now = [next, (now + next) / 2, now + pause].randomElement(using: &generator) ?? next
                let due = handleDue(&wheel, &deadlines, now: now)
                _ = try #require(due)
                #expect(deadlines.values.allSatisfy { $0 + Self.tick >= now })
                let wake = wheel.nextDeadline()?.nanoseconds ?? .max
                if let earliest = deadlines.values.min() { #expect(wake <= earliest + Self.tick) }
            }
        }
    }
}
