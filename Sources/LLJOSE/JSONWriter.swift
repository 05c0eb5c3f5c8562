internal import LLBytes

/// Appends JSON (RFC 8259) to a reusable byte buffer. The caller writes the braces; members put their own commas.
package enum JSONWriter {
    @inline(__always)
    package static func raw(_ text: StaticString, to bytes: inout [UInt8]) { bytes.append(text) }

    /// Appends text as a JSON string with its quotes; control characters, `"` and `\` are escaped (section 7).
    package static func string(_ text: String, to bytes: inout [UInt8]) { string(text.utf8.span, to: &bytes) }

    package static func string(_ text: Span<UInt8>, to bytes: inout [UInt8]) {
        // The longest escape has six bytes.
        bytes.append(addingCapacity: text.count * 6 + 2) { (output: inout OutputSpan<UInt8>) in
            output.appendString(text)
        }
    }

    package static func integer(_ value: Int, to bytes: inout [UInt8]) {
        // A 64-bit number has at most a sign and twenty digits.
        bytes.append(addingCapacity: 21) { (output: inout OutputSpan<UInt8>) in output.append(decimal: value) }
    }

    package static func array<Element>(
        _ elements: some Sequence<Element>,
        to bytes: inout [UInt8],
        _ write: (Element, inout [UInt8]) -> Void
    ) {
        bytes.append(UInt8(ascii: "["))
        for (index, element) in elements.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            write(element, &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    // MARK: Members of the object that the buffer ends with

    /// Appends `"name":`, preceded by a comma unless the buffer ends with the object's brace.
    package static func name(_ name: StaticString, to bytes: inout [UInt8]) {
        raw(bytes.last == UInt8(ascii: "{") ? "\"" : ",\"", to: &bytes)
        raw(name, to: &bytes)
        raw("\":", to: &bytes)
    }

    package static func member(_ name: StaticString, _ value: String?, to bytes: inout [UInt8]) {
        guard let value else { return }
        self.name(name, to: &bytes)
        string(value, to: &bytes)
    }

    package static func member(_ name: StaticString, _ value: Int?, to bytes: inout [UInt8]) {
        guard let value else { return }
        self.name(name, to: &bytes)
        integer(value, to: &bytes)
    }

    package static func member(_ name: StaticString, _ value: Bool, to bytes: inout [UInt8]) {
        self.name(name, to: &bytes)
        raw(value ? "true" : "false", to: &bytes)
    }

    package static func member(_ name: StaticString, _ values: [String]?, to bytes: inout [UInt8]) {
        guard let values else { return }
        self.name(name, to: &bytes)
        array(values, to: &bytes) { string($0, to: &$1) }
    }
}

extension OutputSpan where Element == UInt8 {
    /// Appends UTF-8 text as a JSON string with its quotes; control characters, `"` and `\` are escaped (section 7).
    /// The output must have room for it.
    package mutating func appendString(_ text: Span<UInt8>) {
        append(UInt8(ascii: "\""))
        if JSONText.isPlain(text) {
            append(text, 0..<text.count)
        } else {
            for index in text.indices {
                if JSONText.needsEscape(text[index]) {
                    appendEscape(of: text[index])
                } else {
                    append(text[index])
                }
            }
        }
        append(UInt8(ascii: "\""))
    }

    /// The short escape of a byte if it has one, else `\u00` and two hexadecimal digits.
    private mutating func appendEscape(of byte: UInt8) {
        switch byte {
        case 0x0A: append("\\n")
        case 0x0D: append("\\r")
        case 0x09: append("\\t")
        case 0x20...:
            append(UInt8(ascii: "\\"))
            append(byte)
        default:
            append("\\u00")
            append(Hexadecimal.digit(byte >> 4))
            append(Hexadecimal.digit(byte))
        }
    }
}
