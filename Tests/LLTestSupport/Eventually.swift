internal import FoundationEssentials
internal import LLSockets
package import Testing

/// How long ``eventually(_:within:sourceLocation:_:)`` waits. Ten minutes are enough for a slow machine, and a run that
/// hangs still ends.
package let patienceOfTests = Duration.seconds(600)

/// The time within which something must be over. `.ci/run full` sets `TIMES_ARE_MEASURED` and gets `time` itself. Other
/// runs get at least five seconds, because their machine may be slow.
package func timeBound(_ time: Duration) -> Duration {
    ProcessInfo.processInfo.environment["TIMES_ARE_MEASURED"] == nil ? max(time, .seconds(5)) : time
}

/// Waits until other threads make the condition true. It checks once a millisecond and sleeps in between. If the time
/// is over, the test fails but goes on, so that it can clean up.
package func eventually(
    _ what: Comment,
    within patience: Duration = patienceOfTests,
    sourceLocation: SourceLocation = #_sourceLocation,
    _ isSo: () -> Bool
) async {
    let deadline = MonotonicClock.now() + patience
    while !isSo() {
        guard MonotonicClock.now() < deadline else {
            Issue.record(what, sourceLocation: sourceLocation)
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
