extension JSONScanner {
    /// RFC 8259 section 6: `-`? digits fraction? exponent?, no leading zero; and no value beyond a double.
    static func scanNumber(_ bytes: Span<UInt8>, from start: Int, limit: Int) throws(JSONError) -> Int {
        var offset = start
        if bytes[offset] == UInt8(ascii: "-") { offset += 1 }
        let whole = offset
        offset = skipDigits(bytes, from: offset)
        guard offset > whole else { throw JSONError(.invalidNumber, at: offset) }
        guard bytes[whole] != UInt8(ascii: "0") || offset == whole + 1 else {
            throw JSONError(.invalidNumber, at: whole)
        }
        if offset < bytes.count, bytes[offset] == UInt8(ascii: ".") {
            let fraction = offset + 1
            offset = skipDigits(bytes, from: fraction)
            guard offset > fraction else { throw JSONError(.invalidNumber, at: offset) }
        }
        var hasExponent = false
        if offset < bytes.count, bytes[offset] | 0x20 == UInt8(ascii: "e") {
            hasExponent = true
            offset += 1
            if offset < bytes.count, bytes[offset] == UInt8(ascii: "+") || bytes[offset] == UInt8(ascii: "-") {
                offset += 1
            }
            let exponent = offset
            offset = skipDigits(bytes, from: exponent)
            guard offset > exponent else { throw JSONError(.invalidNumber, at: offset) }
        }
        guard offset - start <= limit else { throw JSONError(.numberOutOfRange, at: start) }
        // Without an exponent, 64 digits are far within a double's 10³⁰⁸.
        if hasExponent, !(double(bytes, start..<offset)?.isFinite ?? false) {
            throw JSONError(.numberOutOfRange, at: start)
        }
        return offset
    }

    private static func skipDigits(_ bytes: Span<UInt8>, from start: Int) -> Int {
        var offset = start
        while offset < bytes.count, bytes[offset] &- UInt8(ascii: "0") < 10 { offset += 1 }
        return offset
    }

    /// The value of a number's text as the nearest double.
    static func double(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Double? {
        var text = String()
        text.reserveCapacity(range.count)
        for offset in range { text.unicodeScalars.append(Unicode.Scalar(bytes[offset])) }
        return Double(text)
    }

    /// The value of a number's text when it is a plain integer of 64 bits.
    static func integer(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Int64? {
        var offset = range.lowerBound
        guard offset < range.upperBound else { return nil }
        let isNegative = bytes[offset] == UInt8(ascii: "-")
        if isNegative { offset += 1 }
        var value: Int64 = 0
        if range.upperBound - offset <= 18 {
            // Eighteen digits stay below 10¹⁸: nothing overflows.
            while offset < range.upperBound {
                let digit = bytes[offset] &- UInt8(ascii: "0")
                guard digit < 10 else { return nil }
                value = value &* 10 &+ Int64(digit)
                offset &+= 1
            }
            return isNegative ? -value : value
        }
        while offset < range.upperBound {
            let digit = bytes[offset] &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            // Built downwards, because the least 64-bit integer has no positive twin.
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, overflowAgain) = product.subtractingReportingOverflow(Int64(digit))
            guard !overflow, !overflowAgain else { return nil }
            value = sum
            offset += 1
        }
        if isNegative { return value }
        return value == .min ? nil : -value
    }
}
