/// Seconds since 1970-01-01T00:00:00Z without leap seconds (RFC 7519 section 2, NumericDate).
public struct NumericDate: Comparable, Hashable, Sendable {
    /// The seconds: finite, from 0 to 2⁵³.
    public let secondsSince1970: Double

    /// A moment; nil outside 0 to 2⁵³ seconds.
    public init?(secondsSince1970: Double) {
        guard secondsSince1970 >= 0, secondsSince1970 <= 9_007_199_254_740_992 else { return nil }
        self.secondsSince1970 = secondsSince1970
    }

    /// Whether the left moment is before the right one.
    public static func < (left: NumericDate, right: NumericDate) -> Bool {
        left.secondsSince1970 < right.secondsSince1970
    }
}
