/// Decimal numbers read by hand: digits alone, no sign, no white space (`Int("+5")` would be 5).
package enum DecimalNumber {
    /// The number in `range` of `bytes`: 1 … 18 digits, no leading zero unless it is the only digit; nil for anything
    /// else. 18 digits cannot overflow (RFC 9110 §8.6).
    package static func parse(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Int? {
        guard (1...18).contains(range.count) else { return nil }
        if range.count > 1, bytes[range.lowerBound] == UInt8(ascii: "0") { return nil }
        var value = 0
        for index in range {
            guard let digit = ASCII.digit(bytes[index]) else { return nil }
            value = value * 10 + digit
        }
        return value
    }

    /// Greatest number of digits of an `Int`.
    package static let digitCount = 19

    /// Appends `value` in decimal digits, at most ``digitCount``; a negative one as 0.
    package static func append(_ value: Int, to output: inout OutputSpan<UInt8>) {
        var digits = InlineArray<19, UInt8>(repeating: UInt8(ascii: "0"))
        var rest = max(value, 0)
        var first = digitCount
        repeat {
            // The greatest `Int` has nineteen digits.
            first -= 1
            digits[first] += UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        } while rest > 0
        output.append(digits.span.extracting(first..<digitCount))
    }
}
