internal import Sockets

/// How many refetches unknown key IDs may cause: a burst, then one per interval (the generic cell rate algorithm, which
/// needs one moment of memory and no timer).
struct RefetchBudget: Sendable {
    private let interval: UInt64
    private let tolerance: UInt64
    // The moment at which the whole burst is earned again.
    private var fullAgainAt = MonotonicInstant(nanoseconds: 0)

    init(burst: Int, interval: Duration) {
        self.interval = interval.wholeNanoseconds
        let (tolerance, overflow) = self.interval.multipliedReportingOverflow(by: UInt64(max(burst, 1) - 1))
        self.tolerance = overflow ? .max : tolerance
    }

    /// When the next refetch may be taken; in the past if one is left.
    var nextAt: MonotonicInstant {
        MonotonicInstant(nanoseconds: fullAgainAt.nanoseconds - min(tolerance, fullAgainAt.nanoseconds))
    }

    /// Takes one refetch; false when none is left.
    mutating func take(at now: MonotonicInstant) -> Bool {
        guard now >= nextAt else { return false }
        fullAgainAt = max(fullAgainAt, now).adding(nanoseconds: interval)
        return true
    }
}
