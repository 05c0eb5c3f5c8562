/// Appends JSON (RFC 8259) to a reusable byte buffer; the caller keeps braces and commas in order.
package enum JSONWriter {
    /// Appends constant text as it stands.
    @inline(__always)
    package static func raw(_ text: StaticString, to bytes: inout [UInt8]) {
        // A string literal's bytes live as long as the process; its count is its own.
        unsafe bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends text as a JSON string with its quotes; control characters, `"` and `\` are escaped (section 7).
    package static func string(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 { escaped(byte, to: &bytes) }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Appends UTF-8 text as a JSON string with its quotes.
    package static func string(_ text: Span<UInt8>, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for index in text.indices { escaped(text[index], to: &bytes) }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Appends `"name":"value"`.
    package static func member(_ name: StaticString, _ value: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        raw(name, to: &bytes)
        raw("\":", to: &bytes)
        string(value, to: &bytes)
    }

    /// Appends a whole number in decimal.
    package static func integer(_ value: Int, to bytes: inout [UInt8]) {
        var digits = InlineArray<20, UInt8>(repeating: 0)
        var remaining = value.magnitude
        var count = 0
        repeat {
            digits[count] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: remaining % 10)
            remaining /= 10
            count += 1
        } while remaining > 0
        if value < 0 { bytes.append(UInt8(ascii: "-")) }
        while count > 0 {
            count -= 1
            bytes.append(digits[count])
        }
    }

    private static func escaped(_ byte: UInt8, to bytes: inout [UInt8]) {
        switch byte {
        case UInt8(ascii: "\""): raw("\\\"", to: &bytes)
        case UInt8(ascii: "\\"): raw("\\\\", to: &bytes)
        case 0x0a: raw("\\n", to: &bytes)
        case 0x0d: raw("\\r", to: &bytes)
        case 0x09: raw("\\t", to: &bytes)
        case 0..<0x20:
            raw("\\u00", to: &bytes)
            bytes.append(hexDigit(byte >> 4))
            bytes.append(hexDigit(byte & 0x0f))
        default: bytes.append(byte)
        }
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
