/// The time by which the memory store forgets, in milliseconds: the wall clock, but with delay after a jump ahead.
///
/// A clock that was set ahead by mistake is set back later. Entries forgotten meanwhile could then be used a second
/// time, or new ones would be refused. After such a jump this time therefore follows the monotonic clock until the wall
/// clock has stayed ahead for ``patience``. It follows a clock that is set back at once, because that forgets nothing.
struct ForgettingClock: Sendable {
    /// Two hours in milliseconds: by then NTP or a person has corrected most wrong clocks.
    static let patience: UInt64 = 7_200_000
    /// The greatest drift between the two clocks between two calls: 1 s, in milliseconds. So small a jump forgets
    /// nothing that matters.
    private static let tolerance: UInt64 = 1_000

    /// Milliseconds since 1970.
    private(set) var time: UInt64
    private var steady: UInt64
    /// The time of the monotonic clock at which the wall clock got ahead; nil if it is not ahead.
    private var aheadSince: UInt64?

    init(now: UInt64, steady: UInt64) { (time, self.steady) = (now, steady) }

    /// - Parameters:
    ///   - wall: milliseconds since 1970.
    ///   - steady: milliseconds of the monotonic clock.
    mutating func advance(now wall: UInt64, steady now: UInt64) {
        if now > steady {
            time += now - steady
            steady = now
        }
        guard wall > time + Self.tolerance else {
            time = wall
            aheadSince = nil
            return
        }
        if let aheadSince, steady - aheadSince >= Self.patience { return believe(wall) }
        aheadSince = aheadSince ?? steady
    }

    /// Accepts the wall clock now, however far ahead it is.
    mutating func believe(_ wall: UInt64) {
        time = max(time, wall)
        aheadSince = nil
    }
}
