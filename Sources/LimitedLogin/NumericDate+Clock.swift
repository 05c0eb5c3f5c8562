internal import LLBytes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#endif

extension NumericDate {
    /// The current time by the system's clock. Verdicts do not use it: they take the time as an argument.
    public static var now: NumericDate {
        // If the clock gives no time, the result is 1970; no token is valid then.
        NumericDate(secondsSince1970: systemSeconds()) ?? .beginning
    }

    /// Seconds since 1970 by the system's clock, with their fraction; negative before 1970. It is the standard clock of a
    /// ``LoginVerifier``.
    public static func systemSeconds() -> Double { Double(WallClock.unixNanoseconds()) / 1_000_000_000 }

    #if canImport(FoundationEssentials)
    /// The time as a FoundationEssentials `Date`; nil outside 0 to 2⁵³ seconds since 1970.
    public init?(_ date: Date) { self.init(secondsSince1970: date.timeIntervalSince1970) }

    /// The time as a FoundationEssentials `Date`, as exact as a `Date` can be.
    public var date: Date { Date(timeIntervalSince1970: secondsSince1970) }
    #endif
}
