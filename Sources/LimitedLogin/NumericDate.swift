internal import JOSE

/// Seconds since 1970-01-01T00:00:00Z without leap seconds (RFC 7519 section 2, NumericDate).
public struct NumericDate: Comparable, Hashable, Sendable {
    /// The seconds: finite, from 0 to 2⁵³; fractions are legal.
    public let secondsSince1970: Double

    /// The beginning of 1970.
    package static let beginning = NumericDate(milliseconds: 0)

    /// The last moment there is: 2⁵³ seconds, the greatest number up to which a double holds every integer.
    public static let greatestSeconds: Double = 9_007_199_254_740_992

    /// A moment; nil outside 0 to 2⁵³ seconds, and for what is not a number.
    public init?(secondsSince1970: Double) {
        guard secondsSince1970 >= 0, secondsSince1970 <= Self.greatestSeconds else { return nil }
        self.secondsSince1970 = secondsSince1970
    }

    /// A moment in whole seconds; nil outside 0 to 2⁵³.
    public init?(secondsSince1970: Int64) {
        guard secondsSince1970 >= 0, secondsSince1970 <= 1 << 53 else { return nil }
        self.secondsSince1970 = Double(secondsSince1970)
    }

    /// A moment in whole seconds, which a literal may give; nil outside 0 to 2⁵³.
    public init?(secondsSince1970: Int) {
        self.init(secondsSince1970: Int64(secondsSince1970))
    }

    /// A moment in milliseconds, of which the lowest 48 bits count: up to the year 10889, and so always in range.
    init(milliseconds: UInt64) {
        secondsSince1970 = Double(milliseconds & 0xFFFF_FFFF_FFFF) / 1_000
    }

    /// The moment that a number of a JSON text stands for; nil outside 0 to 2⁵³, and for what is no number.
    init?(_ document: borrowing JSONDocument, _ node: Int, in bytes: Span<UInt8>) {
        // An integer is judged exactly: as a double, 2⁵³ + 1 would pass for 2⁵³.
        if let integer = document.integer(node, in: bytes) {
            self.init(secondsSince1970: integer)
            return
        }
        guard let value = document.double(node, in: bytes), value < Self.greatestSeconds else { return nil }
        self.init(secondsSince1970: value)
    }

    /// The whole seconds, rounded down.
    public var wholeSeconds: Int64 {
        // In range: the value is from 0 to 2⁵³.
        Int64(secondsSince1970)
    }

    /// Whether this is at most `seconds` ago, and ahead by no more than the skew, of which 0 to 300 s count.
    func isRecent(within seconds: Int, clockSkewSeconds: Int, now: NumericDate) -> Bool {
        let skew = min(max(0, clockSkewSeconds), VerificationLimits.clockSkewSeconds)
        return secondsSince1970 <= now.secondsSince1970 + Double(skew)
            && now.secondsSince1970 - secondsSince1970 <= Double(seconds)
    }

    /// Whether the left moment is before the right one.
    public static func < (left: NumericDate, right: NumericDate) -> Bool {
        left.secondsSince1970 < right.secondsSince1970
    }
}
