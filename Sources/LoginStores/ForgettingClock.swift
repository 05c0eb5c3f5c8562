/// The time by which the memory store forgets: the wall clock, except that a clock that jumps ahead is not believed at once.
///
/// A clock that was set ahead by mistake is set back again. What it had let the store forget would then be good a second
/// time, or be refused although it is new. So this time goes on by the monotonic clock after such a jump, until the wall
/// clock has stayed ahead for ``patience``. It follows a clock that is set back at once: that forgets nothing. Milliseconds.
struct ForgettingClock: Sendable {
    /// Two hours: by then NTP or a person has corrected most wrong clocks.
    static let patience: UInt64 = 7_200_000
    /// How far the two clocks may drift apart between two looks: 1 s. A jump as small forgets nothing that matters.
    private static let tolerance: UInt64 = 1_000

    /// Milliseconds since 1970.
    private(set) var time: UInt64
    private var steady: UInt64
    /// Since when the wall clock has been ahead, by the monotonic clock; nil where it is not.
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

    /// Believes the wall clock now, however far ahead it is.
    mutating func believe(_ wall: UInt64) {
        time = max(time, wall)
        aheadSince = nil
    }
}
