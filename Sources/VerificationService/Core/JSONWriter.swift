internal import Bytes
internal import JOSE

/// Appends JSON (RFC 8259) to a reusable byte buffer; the caller keeps braces and commas in order.
package enum JSONWriter {
    /// Appends constant text as it stands.
    @inline(__always)
    package static func raw(_ text: StaticString, to bytes: inout [UInt8]) { bytes.append(text) }

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

/// Writing JSON (RFC 8259) into memory that was reserved for all of it.
extension OutputSpan where Element == UInt8 {
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
            append(Hexadecimal.digit(byte >> 4))
            append(Hexadecimal.digit(byte))
        }
    }
}
