internal import HTTP1

/// Reads a media type (RFC 9110 section 8.3.1) as far as this service needs it.
enum MediaType {
    /// Whether the field value is `application/json`, without parameters or with `charset=utf-8` alone: JSON is UTF-8
    /// (RFC 8259 section 8.1), and another charset would be another text.
    static func isJSON(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Bool {
        var end = value.lowerBound
        while end < value.upperBound, bytes[end] != UInt8(ascii: ";") { end += 1 }
        guard bytes.equalIgnoringCase(trimmed(bytes, value.lowerBound..<end), "application/json") else { return false }
        guard end < value.upperBound else { return true }
        let parameter = trimmed(bytes, (end + 1)..<value.upperBound)
        return bytes.equalIgnoringCase(parameter, "charset=utf-8")
            || bytes.equalIgnoringCase(parameter, "charset=\"utf-8\"")
            || parameter.isEmpty
    }

    /// Whether the field value is `application/x-www-form-urlencoded`. Its parameters are passed over: the type has
    /// none, and what clients add (`charset=UTF-8`) changes nothing.
    static func isForm(_ bytes: Span<UInt8>, _ value: Range<Int>) -> Bool {
        var end = value.lowerBound
        while end < value.upperBound, bytes[end] != UInt8(ascii: ";") { end += 1 }
        return bytes.equalIgnoringCase(
            trimmed(bytes, value.lowerBound..<end),
            "application/x-www-form-urlencoded"
        )
    }

    private static func trimmed(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
        var start = range.lowerBound
        var end = range.upperBound
        while start < end, isBlank(bytes[start]) { start += 1 }
        while end > start, isBlank(bytes[end - 1]) { end -= 1 }
        return start..<end
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}
