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
        var text = text
        text.withUTF8 { utf8 in unsafe string(utf8.span, to: &bytes) }
    }

    /// Appends UTF-8 text as a JSON string with its quotes.
    package static func string(_ text: Span<UInt8>, to bytes: inout [UInt8]) {
        // The longest escape has six bytes.
        bytes.append(addingCapacity: text.count * 6 + 2) { (output: inout OutputSpan<UInt8>) in
            output.appendString(text)
        }
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
        // A sign and the twenty digits of 64 bits.
        bytes.append(addingCapacity: 21) { (output: inout OutputSpan<UInt8>) in output.append(decimal: value) }
    }
}
