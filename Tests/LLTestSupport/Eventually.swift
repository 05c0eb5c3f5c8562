internal import FoundationEssentials
internal import LLSockets
package import Testing

/// How long ``eventually(_:within:sourceLocation:_:)`` waits. Ten minutes: no machine that is merely slow needs them, and a
/// run that would hang ends.
package let patienceOfTests = Duration.seconds(600)

/// A time within which something must be over. `.ci/run full` sets `TIMES_ARE_MEASURED` and holds the time itself; elsewhere
/// a machine may be slow, and the bound is at least five seconds.
package func timeBound(_ time: Duration) -> Duration {
    ProcessInfo.processInfo.environment["TIMES_ARE_MEASURED"] == nil ? max(time, .seconds(5)) : time
}

/// Waits for what other threads bring about, and leaves the processor to them for a millisecond between two looks. Where it
/// does not come, the test fails and goes on, so that it can end what it began.
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

/// The same in the caller's thread; false where it does not come within `patience`.
package func becomesTrue(within patience: Duration = patienceOfTests, _ isSo: () throws -> Bool) rethrows -> Bool {
    let deadline = MonotonicClock.now() + patience
    while try !isSo() {
        if MonotonicClock.now() >= deadline { return false }
        _ = BlockingWait.wait(for: [], until: MonotonicClock.now() + .milliseconds(1))
    }
    return true
}
