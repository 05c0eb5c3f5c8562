internal import Bytes

/// IMF-fixdate (RFC 9110 §5.6.7), for instance `Sun, 06 Nov 1994 08:49:37 GMT`.
package enum HTTPDate {
    /// Appends the 29 bytes of a moment in the years 1970 … 9999; one outside is cut to that span.
    package static func append(unixSeconds: Int64, to output: inout [UInt8]) {
        let seconds = min(max(unixSeconds, 0), 253_402_300_799)
        let days = Int(seconds / 86_400)
        let secondOfDay = Int(seconds % 86_400)
        let date = civil(daysSinceEpoch: days)
        // 1970-01-01 was a Thursday.
        output.append(dayName((days + 4) % 7))
        output.append(", ")
        appendTwoDigits(date.day, to: &output)
        output.append(ASCII.space)
        output.append(monthName(date.month))
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

    private static func dayName(_ index: Int) -> StaticString {
        switch index {
        case 0: "Sun"
        case 1: "Mon"
        case 2: "Tue"
        case 3: "Wed"
        case 4: "Thu"
        case 5: "Fri"
        default: "Sat"
        }
    }

    private static func monthName(_ month: Int) -> StaticString {
        switch month {
        case 1: "Jan"
        case 2: "Feb"
        case 3: "Mar"
        case 4: "Apr"
        case 5: "May"
        case 6: "Jun"
        case 7: "Jul"
        case 8: "Aug"
        case 9: "Sep"
        case 10: "Oct"
        case 11: "Nov"
        default: "Dec"
        }
    }
}
