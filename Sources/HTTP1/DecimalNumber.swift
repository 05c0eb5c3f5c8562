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

    /// Appends `value` in decimal digits; a negative one as 0.
    package static func append(_ value: Int, to output: inout [UInt8]) {
        if value < 10 {
            output.append(UInt8(ascii: "0") + UInt8(clamping: value))
            return
        }
        var divisor = 1
        while value / divisor >= 10 {
            divisor *= 10
        }
        while divisor > 0 {
            output.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value / divisor % 10))
            divisor /= 10
        }
    }
}
