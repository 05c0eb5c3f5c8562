internal import LLBytes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#elseif canImport(Foundation)
public import Foundation
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

    #if canImport(FoundationEssentials) || canImport(Foundation)
    /// A `Date`; nil outside 0 to 2⁵³ seconds since 1970.
    public init?(_ date: Date) { self.init(secondsSince1970: date.timeIntervalSince1970) }

    /// The time as a `Date`, as exact as a `Date` can be.
    public var date: Date { Date(timeIntervalSince1970: secondsSince1970) }
    #endif
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

    /// Writes the seconds, as an integer if they are whole.
    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        if let whole = Int64(exactly: secondsSince1970) {
            try value.encode(whole)
        } else {
            try value.encode(secondsSince1970)
        }
    }
}

extension DecodingError {
    /// The error for a value with the right type that is still invalid.
    static func unfit(_ description: String, _ decoder: any Decoder) -> DecodingError {
        .dataCorrupted(Context(codingPath: decoder.codingPath, debugDescription: description))
    }
}
