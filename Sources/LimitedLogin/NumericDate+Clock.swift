#if canImport(FoundationEssentials)
public import FoundationEssentials
#elseif canImport(Foundation)
public import Foundation
#endif
#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

extension NumericDate {
    /// The present by the system's clock. No verdict asks for it: the time is an argument there.
    public static var now: NumericDate {
        // Where the clock gives no time it is 1970, when no token was valid.
        NumericDate(secondsSince1970: SystemClock.secondsSince1970()) ?? .beginning
    }

    #if canImport(FoundationEssentials) || canImport(Foundation)
    /// A moment of Foundation; nil outside 0 to 2⁵³ seconds since 1970.
    public init?(_ date: Date) { self.init(secondsSince1970: date.timeIntervalSince1970) }

    /// The moment for Foundation, as exact as a `Date` can be.
    public var date: Date { Date(timeIntervalSince1970: secondsSince1970) }
    #endif
}

/// The system's clock. The verdict itself never asks it: the time is an argument there.
@usableFromInline
enum SystemClock {
    /// The present in seconds since 1970.
    @usableFromInline
    static func secondsSince1970() -> Double {
        var time = timespec()
        // CLOCK_REALTIME is always there; where it were not, the time would be 1970, when no token was valid.
        guard unsafe clock_gettime(CLOCK_REALTIME, &time) == 0 else { return 0 }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000
    }
}
