internal import LLBytes

/// The bracket of a person's age in years. It has at least one bound, and the lower is less than the upper.
public struct AgeRange: Equatable, Hashable, Sendable {
    /// The least age; nil if there is none.
    public let minimum: Int?
    /// The greatest age; nil if there is none.
    public let maximum: Int?

    /// A bracket; nil without any bound, with a negative one, and if the minimum is not less than the maximum.
    public init?(minimum: Int?, maximum: Int?) {
        guard minimum != nil || maximum != nil, minimum ?? 0 >= 0, maximum ?? 0 >= 0 else { return nil }
        if let minimum, let maximum, minimum >= maximum { return nil }
        self.minimum = minimum
        self.maximum = maximum
    }
}

/// The shared parts of a person's birthday: a date, a day of the year, or a year.
@nonexhaustive  // SE-0487
public enum Birthday: Equatable, Hashable, Sendable, CustomStringConvertible {
    /// The whole date: year 1 to 9999, a day that exists.
    case date(year: Int, month: Int, day: Int)
    /// The day of the year, without the year.
    case dayOfYear(month: Int, day: Int)
    /// The year alone.
    case year(Int)

    /// Reads Facebook's three spellings: `MM/DD/YYYY`, `MM/DD` and `YYYY`; nil for any other text.
    init?(_ text: Span<UInt8>, _ range: Range<Int>) {
        let (text, slash) = (text.extracting(range), UInt8(ascii: "/"))
        guard text.count != 4 else {
            guard let year = Self.number(text, 0..<4), year >= 1 else { return nil }
            self = .year(year)
            return
        }
        let hasYear = text.count == 10 && text[5] == slash
        // Without a year, 29 February is accepted.
        guard hasYear || text.count == 5, text[2] == slash,
            let year = hasYear ? Self.number(text, 6..<10) : 4, year >= 1,
            let month = Self.number(text, 0..<2), (1...12).contains(month),
            let day = Self.number(text, 3..<5), day >= 1, day <= Self.dayCount(ofMonth: month, year: year)
        else { return nil }
        self = hasYear ? .date(year: year, month: month, day: day) : .dayOfYear(month: month, day: day)
    }

    /// The birthday in the form of `birthdate` in OpenID Connect Core section 5.1: `YYYY-MM-DD`, `0000-MM-DD` without a
    /// year, or `YYYY`.
    public var description: String { String(capacity: 10) { write(to: &$0) } }

    /// Appends ``description``, at most 10 bytes. Of a number outside its range it writes the last digits.
    package func write(to bytes: inout OutputSpan<UInt8>) {
        let (year, day): (Int, (month: Int, day: Int)?) =
            switch self {
            case .date(let year, let month, let day): (year, (month, day))
            case .dayOfYear(let month, let day): (0, (month, day))
            case .year(let year): (year, nil)
            }
        Self.twoDigits(year / 100, &bytes)
        Self.twoDigits(year, &bytes)
        guard let day else { return }
        bytes.append(UInt8(ascii: "-"))
        Self.twoDigits(day.month, &bytes)
        bytes.append(UInt8(ascii: "-"))
        Self.twoDigits(day.day, &bytes)
    }

    private static func twoDigits(_ value: Int, _ bytes: inout OutputSpan<UInt8>) {
        let digits = value.magnitude % 100
        bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digits / 10))
        bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digits % 10))
    }

    private static func dayCount(ofMonth month: Int, year: Int) -> Int {
        let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return month == 2 ? (isLeapYear ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    }

    private static func number(_ text: Span<UInt8>, _ range: Range<Int>) -> Int? {
        var value = 0
        for offset in range {
            guard let digit = ASCII.digit(text[offset]) else { return nil }
            // At most four digits are read.
            value = value * 10 + digit
        }
        return value
    }
}

extension AgeRange: Codable {
    private enum CodingKeys: String, CodingKey {
        case minimum = "min"
        case maximum = "max"
    }

    /// Reads a bracket; throws without any bound and for bounds out of range.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let minimum = try members.decodeIfPresent(Int.self, forKey: .minimum)
        let maximum = try members.decodeIfPresent(Int.self, forKey: .maximum)
        guard let range = AgeRange(minimum: minimum, maximum: maximum) else {
            throw DecodingError.unfit("no bracket of ages", decoder)
        }
        self = range
    }
}

/// The text has the form of `birthdate` in OpenID Connect Core section 5.1; see ``Birthday/description``.
extension Birthday: Codable {
    /// Reads a birthday; throws for any text outside the three spellings.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let facebook =
            switch parts.count {
            case 1: text
            case 3 where parts[0] == "0000": "\(parts[1])/\(parts[2])"
            case 3: "\(parts[1])/\(parts[2])/\(parts[0])"
            default: ""
            }
        // The parser of Facebook's spelling decides if the date exists.
        guard let birthday = Birthday(facebook.utf8.span, 0..<facebook.utf8.count), birthday.description == text
        else { throw DecodingError.unfit("no birthday", decoder) }
        self = birthday
    }

    /// Writes ``description``.
    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        try value.encode(description)
    }
}
