import LLSockets

/// A monotonic clock that moves only when a test says so.
final class ManualClock: Sendable {
    private let moment = Locked(MonotonicInstant(nanoseconds: 1_000_000_000))

    var now: MonotonicInstant { moment.withLock { $0 } }

    func advance(by duration: Duration) {
        moment.withLock { $0 = $0 + duration }
    }
}
