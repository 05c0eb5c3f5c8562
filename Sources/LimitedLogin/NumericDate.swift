internal import LLBytes
internal import LLJOSE

/// Seconds since 1970-01-01T00:00:00Z without leap seconds (RFC 7519 section 2, NumericDate).
public struct NumericDate: Comparable, Hashable, Sendable {
    /// The seconds: finite, from 0 to 2⁵³; fractions are allowed.
    public let secondsSince1970: Double

    package static let beginning = NumericDate(milliseconds: 0)

    /// The last time: 2⁵³ seconds, the greatest number up to which a double holds every integer.
    package static let greatestSeconds: Double = 9_007_199_254_740_992

    /// A time; nil outside 0 to 2⁵³ seconds, and for NaN.
    public init?(secondsSince1970: Double) {
        guard secondsSince1970 >= 0, secondsSince1970 <= Self.greatestSeconds else { return nil }
        self.secondsSince1970 = secondsSince1970
    }

    /// A time in whole seconds; nil outside 0 to 2⁵³.
    public init?(secondsSince1970: some BinaryInteger) {
        guard secondsSince1970 >= 0, secondsSince1970 <= Int64(1) << 53 else { return nil }
        self.secondsSince1970 = Double(secondsSince1970)
    }

    /// A time in milliseconds. Only the lowest 48 bits count, so it is always in range.
    init(milliseconds: UInt64) { secondsSince1970 = Double(milliseconds & 0xFFFF_FFFF_FFFF) / 1_000 }

    /// The whole seconds, rounded down. In range: the value is from 0 to 2⁵³.
    public var wholeSeconds: Int64 { Int64(secondsSince1970) }

    /// The unit that the number seems to count in place of seconds; nil for a time that seconds may mean. 10¹¹ seconds, 10¹⁴
    /// milliseconds and 10¹⁷ microseconds are all in the year 5138.
    var mistakenUnit: StaticString? {
        if secondsSince1970 < 1e11 { return nil }
        return secondsSince1970 < 1e14 ? "milliseconds" : "microseconds"
    }

    /// True if this is at most `seconds` ago, and not ahead.
    func isRecent(within seconds: Int, clockSkew: Duration, now: NumericDate) -> Bool {
        !isAhead(of: now, clockSkew: clockSkew)
            && now.secondsSince1970 - secondsSince1970 <= Double(seconds)
    }

    /// True if this is later by more than the skew, which is limited to 0 to 300 s.
    func isAhead(of other: NumericDate, clockSkew: Duration) -> Bool {
        secondsSince1970 > other.secondsSince1970 + Self.skew(clockSkew)
    }

    /// A clock skew within its range, 0 to 300 s.
    static func skew(_ skew: Duration) -> Double {
        min(max(.zero, skew), .seconds(VerificationLimits.clockSkewSeconds)).asSeconds
    }

    /// True if the left time is before the right one.
    public static func < (left: NumericDate, right: NumericDate) -> Bool {
        left.secondsSince1970 < right.secondsSince1970
    }
}

extension Duration {
    // The quotient of two durations is not exact: 9,700 s by 1 s is not 9,700.
    var asSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}

extension JSONObject {
    func date(_ node: Int) -> NumericDate? {
        // An integer is compared exactly: as a double, 2⁵³ + 1 would be equal to 2⁵³.
        if let integer = document.integer(node, in: bytes.span) { return NumericDate(secondsSince1970: integer) }
        guard let value = document.double(node, in: bytes.span), value < NumericDate.greatestSeconds else { return nil }
        return NumericDate(secondsSince1970: value)
    }

    func date(_ name: StaticString, of node: Int? = nil) -> NumericDate? { member(name, of: node).flatMap { date($0) } }
}

extension NumericDate {
    /// The current time by the system's clock.
    public static var now: NumericDate {
        // If the clock gives no time, the result is 1970; no token is valid then.
        NumericDate(secondsSince1970: systemSeconds()) ?? .beginning
    }

    /// Seconds since 1970 by the system's clock; negative before 1970. It is the standard clock of a ``LoginVerifier``.
    public static func systemSeconds() -> Double { Double(WallClock.unixNanoseconds()) / 1_000_000_000 }
}

/// The JSON is a number of seconds since 1970.
extension NumericDate: Codable {
    /// Reads a time; throws for a number outside 0 to 2⁵³.
    public init(from decoder: any Decoder) throws {
        let seconds = try decoder.singleValueContainer().decode(Double.self)
        guard let date = NumericDate(secondsSince1970: seconds) else {
            throw DecodingError.unfit("no number of seconds since 1970", decoder)
        }
        self = date
    }

    /// Writes the seconds.
    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        try value.encode(secondsSince1970)
    }
}

extension DecodingError {
    static func unfit(_ description: String, _ decoder: any Decoder) -> DecodingError {
        .dataCorrupted(Context(codingPath: decoder.codingPath, debugDescription: description))
    }
}
