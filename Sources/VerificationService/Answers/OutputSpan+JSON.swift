internal import JOSE

/// Writing JSON (RFC 8259) into memory that was reserved for all of it: a constant costs a few stores.
///
/// What does not fit stops the process before a byte is written outside, as every append to an `OutputSpan` does;
/// whoever reserves shows that it fits.
extension OutputSpan where Element == UInt8 {
    /// Appends constant text as it stands.
    @inline(__always)
    mutating func append(_ text: StaticString) {
        // A string literal's bytes live as long as the process, and its count is its own.
        unsafe append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends a part of a span, which must lie inside it.
    @inline(__always)
    mutating func append(_ span: Span<UInt8>, _ range: Range<Int>) {
        // `extracting` checks the range; the buffer is the part's own memory.
        unsafe span.extracting(range).withUnsafeBytes { part in unsafe append(part) }
    }

    @inline(__always)
    private mutating func append(_ source: UnsafeRawBufferPointer) {
        precondition(source.count <= freeCapacity, "the answer outgrew what was reserved for it")
        unsafe withUnsafeMutableBufferPointer { buffer, count in
            guard let base = buffer.baseAddress, let start = source.baseAddress else { return }
            // In bounds: `source.count` is at most what is free behind `count`. Source and target do not overlap, for
            // nobody else can name memory that is being written.
            unsafe UnsafeMutableRawPointer(base + count).copyMemory(from: start, byteCount: source.count)
            count += source.count
        }
    }

    /// Appends UTF-8 text as a JSON string with its quotes; control characters, `"` and `\` are escaped (section 7).
    mutating func appendString(_ text: Span<UInt8>) {
        append(UInt8(ascii: "\""))
        if JSONText.isPlain(text) {
            append(text, 0..<text.count)
            append(UInt8(ascii: "\""))
            return
        }
        for index in text.indices {
            let byte = text[index]
            if byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
                append(byte)
            } else {
                appendEscape(of: byte)
            }
        }
        append(UInt8(ascii: "\""))
    }

    /// Appends the short escape where the byte has one, else `\u00` and two hexadecimal digits.
    private mutating func appendEscape(of byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""): append("\\\"")
        case UInt8(ascii: "\\"): append("\\\\")
        case 0x0A: append("\\n")
        case 0x0D: append("\\r")
        case 0x09: append("\\t")
        default:
            append("\\u00")
            append(Self.hexadecimal(byte >> 4))
            append(Self.hexadecimal(byte & 0x0F))
        }
    }

    private static func hexadecimal(_ digit: UInt8) -> UInt8 {
        digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
    }

    /// Appends a whole number in decimal.
    mutating func append(decimal value: Int) {
        if value < 0 { append(UInt8(ascii: "-")) }
        var digits = InlineArray<20, UInt8>(repeating: 0)
        var remaining = value.magnitude
        var first = 20
        repeat {
            // A magnitude of 64 bits has at most 20 digits.
            first -= 1
            digits[first] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: remaining % 10)
            remaining /= 10
        } while remaining > 0
        append(digits.span, first..<20)
    }
}
