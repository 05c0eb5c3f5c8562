internal import LLSockets

/// Limits the log lines about refusals. Each worker has one.
///
/// Each client can send bad tokens, so a flood of them must not fill the log.
struct RefusalPace {
    /// 10 a second: enough to find a mistake by hand, and at most 1 GB a week for each worker.
    static let linesPerSecond = 10

    private(set) var secondEnds = MonotonicInstant(nanoseconds: 0)
    private var lineCount = 0
    /// The number of refusals without a line that no line has reported yet.
    private(set) var untoldCount = 0

    /// - Returns: True if the refusal at this moment gets a line.
    mutating func admits(at now: MonotonicInstant) -> Bool {
        if now >= secondEnds { (secondEnds, lineCount) = (now + .seconds(1), 0) }
        guard lineCount < Self.linesPerSecond else {
            untoldCount += 1
            return false
        }
        lineCount += 1
        return true
    }

    /// - Returns: The number of refusals without a line in the second that is over; nil if there are none.
    mutating func takeUntold(at now: MonotonicInstant) -> Int? {
        guard untoldCount > 0, now >= secondEnds else { return nil }
        defer { untoldCount = 0 }
        return untoldCount
    }
}
