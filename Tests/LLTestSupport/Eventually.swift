internal import FoundationEssentials
internal import Glibc
internal import LLHTTP
package import Testing

/// How long ``eventually(_:at:_:)`` waits. Ten minutes are enough for a slow machine, and a run that hangs still ends.
package let patienceOfTests = Duration.seconds(600)

/// The time within which something must be over. `.ci/run full` sets `TIMES_ARE_MEASURED` and gets `time` itself. Other
/// runs get at least five seconds, because their machine may be slow.
package func timeBound(_ time: Duration) -> Duration {
    ProcessInfo.processInfo.environment["TIMES_ARE_MEASURED"] == nil ? max(time, .seconds(5)) : time
}

/// Waits until other threads make the condition true. It checks once a millisecond and sleeps in between. If the time
/// is over, the test fails but goes on, so that it can clean up.
package func eventually(_ what: Comment, at place: SourceLocation = #_sourceLocation, _ isSo: () -> Bool) async {
    let deadline = MonotonicClock.now() + patienceOfTests
    while !isSo() {
        guard MonotonicClock.now() < deadline else {
            Issue.record(what, sourceLocation: place)
            return
        }
        try? await Task.sleep(for: .milliseconds(1))
    }
}

/// The same, but blocks the caller's thread. Returns false if the condition is not true within `patience`.
package func becomesTrue(within patience: Duration = patienceOfTests, _ isSo: () throws -> Bool) rethrows -> Bool {
    let deadline = MonotonicClock.now() + patience
    while try !isSo() {
        if MonotonicClock.now() >= deadline { return false }
        _ = BlockingWait.wait(for: [], until: MonotonicClock.now() + .milliseconds(1))
    }
    return true
}

/// A sanitizer's own memory and time would spoil a measurement.
package enum Sanitizer {
    package static let isActive = unsafe dlsym(nil, "__tsan_init") != nil || dlsym(nil, "__asan_init") != nil
}

/// A failure of the test's own equipment, not of the code under test.
package struct TestSupportError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// Random numbers that are the same in every run (SplitMix64).
package struct RepeatableGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
