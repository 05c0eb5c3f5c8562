internal import Sockets

/// The pause after a failure: doubled each time, up to the greatest, until all is well again.
struct GrowingPause {
    private let limits: ReplayLimits
    private var length: Duration

    init(_ limits: ReplayLimits) {
        self.limits = limits
        length = limits.firstPause
    }

    /// When the pause ends that begins now; the next one is longer.
    mutating func end(from now: MonotonicInstant) -> MonotonicInstant {
        let longest = length.wholeNanoseconds
        length = min(length * 2, limits.greatestPause)
        // Replicas that lost the server together must not all come back at one moment.
        return now.adding(nanoseconds: UInt64.random(in: longest / 2...longest))
    }

    /// Begins with the first again.
    mutating func reset() { length = limits.firstPause }
}
