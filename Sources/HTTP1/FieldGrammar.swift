internal import Bytes

/// The bytes of field names and values (RFC 9110 §5.1, §5.5, §5.6.2).
package enum FieldGrammar {
    /// True for `tchar`, the bytes of a token.
    @inlinable
    package static func isTokenByte(_ byte: UInt8) -> Bool {
        // One bit for each of the 128 ASCII bytes.
        if byte < 64 { return tokenLow >> UInt64(byte) & 1 == 1 }
        return byte < 128 && tokenHigh >> UInt64(byte - 64) & 1 == 1
    }

    /// True for the bytes a field value may hold: visible ASCII, space, tab and bytes from 0x80 on (`obs-text`).
    @inlinable
    package static func isValueByte(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7F || byte == 0x09
    }

    /// True for what a field value may hold.
    static func isValue(_ value: Span<UInt8>) -> Bool {
        var offset = skipPlainValue(value, 0, value.count)
        while offset < value.count {
            guard isValueByte(value[offset]) else { return false }
            offset += 1
        }
        return true
    }

    /// An offset from `offset` on, at most `end`, before which no control byte stands: sixteen bytes are looked at
    /// together, and what is left is for the caller.
    @inline(__always)
    static func skipPlainValue(_ bytes: Span<UInt8>, _ offset: Int, _ end: Int) -> Int {
        var offset = offset
        while end &- offset >= 16 {
            let marks = bytes.vector16(at: offset).marksOfControls
            if marks[0] | marks[1] != 0 { return offset &+ marks.unmarkedCount }
            offset &+= 16
        }
        return offset
    }

    /// `! # $ % & ' * + - . 0-9` of the bytes 0 … 63.
    @usableFromInline
    static let tokenLow: UInt64 = 0x03FF_6CFA_0000_0000
    /// `A-Z ^ _ ` a-z | ~` of the bytes 64 … 127.
    @usableFromInline
    static let tokenHigh: UInt64 = 0x57FF_FFFF_C7FF_FFFE
}

/// A field name that was found to be one when it was configured.
package struct FieldName: Sendable, Equatable {
    /// The name in ASCII.
    package let bytes: [UInt8]

    /// The name; nil for what is no token.
    package init?(_ name: String) {
        bytes = Array(name.utf8)
        guard !bytes.isEmpty, bytes.allSatisfy(FieldGrammar.isTokenByte) else { return nil }
    }
}

/// Walks over a comma-separated list (RFC 9110 §5.6.1); empty elements are passed over, as §5.6.1.2 asks. The value's
/// length bounds their number.
package struct ListElements {
    private var index: Int
    private let end: Int

    /// - Parameter value: Where the list lies in the bytes given to ``next(_:)``.
    package init(_ value: Range<Int>) {
        index = value.lowerBound
        end = value.upperBound
    }

    /// The next element that is not empty, white space around it removed; nil at the end.
    package mutating func next(_ bytes: Span<UInt8>) -> Range<Int>? {
        while index < end {
            let start = Self.skipWhitespace(bytes, index, end)
            var comma = start
            while comma < end, bytes[comma] != UInt8(ascii: ",") {
                comma += 1
            }
            index = comma + 1
            var last = comma
            while last > start, bytes[last - 1] == ASCII.space || bytes[last - 1] == ASCII.tab {
                last -= 1
            }
            if last > start { return start..<last }
        }
        return nil
    }

    /// The first index from `index` on, at most `end`, that holds neither space nor tab.
    package static func skipWhitespace(_ bytes: Span<UInt8>, _ index: Int, _ end: Int) -> Int {
        var index = index
        while index < end, bytes[index] == ASCII.space || bytes[index] == ASCII.tab {
            index += 1
        }
        return index
    }
}

/// IMF-fixdate (RFC 9110 §5.6.7), for instance `Sun, 06 Nov 1994 08:49:37 GMT`.
package enum HTTPDate {
    /// Appends the 29 bytes of a moment in the years 1970 … 9999; one outside is cut to that span.
    package static func append(unixSeconds: Int64, to output: inout [UInt8]) {
        let seconds = min(max(unixSeconds, 0), 253_402_300_799)
        let days = Int(seconds / 86_400)
        let secondOfDay = Int(seconds % 86_400)
        let date = civil(daysSinceEpoch: days)
        // 1970-01-01 was a Thursday.
        output.append(Self.days[(days + 4) % 7])
        output.append(", ")
        appendTwoDigits(date.day, to: &output)
        output.append(ASCII.space)
        output.append(months[date.month - 1])
        output.append(ASCII.space)
        appendTwoDigits(date.year / 100, to: &output)
        appendTwoDigits(date.year % 100, to: &output)
        output.append(ASCII.space)
        appendTwoDigits(secondOfDay / 3_600, to: &output)
        output.append(UInt8(ascii: ":"))
        appendTwoDigits(secondOfDay / 60 % 60, to: &output)
        output.append(UInt8(ascii: ":"))
        appendTwoDigits(secondOfDay % 60, to: &output)
        output.append(" GMT")
    }

    /// The civil date of a day, by counting years from 1 March, so that the leap day is the last of its year.
    private static func civil(daysSinceEpoch: Int) -> (year: Int, month: Int, day: Int) {
        // 719,468 days lie between 0000-03-01 and 1970-01-01; 146,097 in an era of 400 years.
        let shifted = daysSinceEpoch + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, day)
    }

    private static func appendTwoDigits(_ value: Int, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value / 10 % 10))
        output.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value % 10))
    }

    private static let days: [StaticString] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months: [StaticString] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
}
