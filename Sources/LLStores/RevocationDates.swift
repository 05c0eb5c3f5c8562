/// The times at which revocations were dated here, and the lead of the clock at each time.
///
/// The wall clock and the monotonic clock differ by an offset that changes only if the wall clock is set. A revocation that
/// was dated with a greater offset than the present one was dated ahead: the clock has been set back since.
struct RevocationDates: Sendable {
    /// The most periods: 64. A clock is seldom set. If it is set more often, the oldest period is forgotten, and its
    /// revocations count as correctly dated.
    private static let periodLimit = 64
    /// The greatest difference between two offsets of one clock: 1 s, for both are whole seconds.
    private static let jitter: Int64 = 1

    /// Moments in whole seconds since 1970, all dated with this offset, in seconds.
    private struct Period {
        var first: Int64
        var last: Int64
        let offset: Int64
    }

    private var periods: [Period] = []

    /// Records that a revocation was dated.
    /// - Parameters:
    ///   - offset: the wall clock less the monotonic clock, in seconds.
    ///   - gap: the greatest pause, in seconds, within one period.
    mutating func note(_ moment: Int64, offset: Int64, gap: Int64 = .max) {
        if let last = periods.last, abs(last.offset - offset) <= Self.jitter, moment - last.last <= gap {
            periods[periods.count - 1].first = min(last.first, moment)
            periods[periods.count - 1].last = max(last.last, moment)
            return
        }
        if periods.count == Self.periodLimit { periods.removeFirst() }
        periods.append(Period(first: moment, last: moment, offset: offset))
    }

    /// The greatest number of seconds by which a revocation of this time may have been dated ahead; 0 if it was not.
    /// - Parameter offset: the present one.
    func lead(of moment: Int64, offset: Int64) -> Int64 {
        let margin = Int64(ReplayLimits.clockMargin / 1_000)
        let leads = periods.filter { $0.first <= moment && moment <= $0.last }.map { $0.offset - offset }
        return leads.filter { $0 > margin }.max() ?? 0
    }
}
