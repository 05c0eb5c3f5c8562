internal import LLBytes

/// Reads the value of a JSON string, UTF-8 byte by byte, with its escapes decoded (RFC 8259 section 7).
///
/// It is meant for text that the parser accepted. For any other text it still ends and reads nothing outside its range.
package struct JSONStringReader {
    private var offset: Int
    private let end: Int
    /// Bytes of a decoded `\u` escape that are not returned yet.
    private var pending = Unicode.UTF8.EncodedScalar()

    /// - Parameter range: the text between the string's quotes.
    package init(_ range: Range<Int>) {
        offset = range.lowerBound
        end = range.upperBound
    }

    /// The range of the bytes up to the next escape or the end. Each of these bytes represents itself.
    package mutating func nextRun(in bytes: Span<UInt8>) -> Range<Int> {
        guard pending.isEmpty else { return offset..<offset }
        let start = offset
        offset = bytes.extracting(0..<end).firstOffset(of: UInt8(ascii: "\\"), from: start)
        return start..<offset
    }

    /// Appends the rest of the value. The output must have room for it.
    package mutating func readAll(of bytes: Span<UInt8>, to output: inout OutputSpan<UInt8>) {
        while true {
            output.append(bytes.extracting(nextRun(in: bytes)))
            guard let byte = next(in: bytes) else { return }
            output.append(byte)
        }
    }

    /// The next byte of the value; nil at the end.
    package mutating func next(in bytes: Span<UInt8>) -> UInt8? {
        if !pending.isEmpty { return pending.removeFirst() }
        guard offset < end else { return nil }
        let byte = bytes[offset]
        offset += 1
        guard byte == UInt8(ascii: "\\"), offset < end else { return byte }
        let escape = bytes[offset]
        offset += 1
        switch escape {
        case UInt8(ascii: "b"): return 0x08
        case UInt8(ascii: "f"): return 0x0C
        case UInt8(ascii: "n"): return 0x0A
        case UInt8(ascii: "r"): return 0x0D
        case UInt8(ascii: "t"): return 0x09
        case UInt8(ascii: "u"): return nextOfCodePoint(in: bytes)
        default: return escape
        }
    }

    /// Decodes the digits after `\u`, with the second half of a pair, into UTF-8 and returns the first byte.
    private mutating func nextOfCodePoint(in bytes: Span<UInt8>) -> UInt8? {
        var code = readFourDigits(in: bytes)
        if code & 0xFC00 == 0xD800 {
            // The parser has checked that the other half follows as `\uDC00` to `\uDFFF`.
            offset = min(offset + 2, end)
            code = 0x10000 + ((code & 0x3FF) << 10) + (readFourDigits(in: bytes) & 0x3FF)
        }
        // A text that the parser accepted never holds half a pair.
        pending = Unicode.UTF8.encode(Unicode.Scalar(code) ?? "\u{FFFD}") ?? pending
        return pending.isEmpty ? nil : pending.removeFirst()
    }

    private mutating func readFourDigits(in bytes: Span<UInt8>) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 where offset < end {
            value = value << 4 | UInt32(Hexadecimal.value(bytes[offset]) ?? 0)
            offset += 1
        }
        return value
    }
}

/// The text of a JSON string outside a document.
package enum JSONText {
    /// True if every byte represents itself in a JSON string: ASCII except control characters, `"` and `\`.
    package static func isPlain(_ bytes: Span<UInt8>) -> Bool {
        var offset = 0
        while bytes.count - offset >= 16 {
            let marks = bytes.vector16(at: offset).specialBytes
            if marks[0] | marks[1] != 0 { return false }
            offset += 16
        }
        while offset < bytes.count {
            let byte = bytes[offset]
            if byte < 0x20 || byte >= 0x80 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return false }
            offset += 1
        }
        return true
    }

    /// The value of a string that the parser accepted. `range` is the text between its quotes.
    package static func value(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String {
        var value: [UInt8] = []
        append(bytes, range, to: &value)
        return String(decoding: value, as: UTF8.self)
    }

    /// Appends the value as UTF-8.
    package static func append(_ bytes: Span<UInt8>, _ range: Range<Int>, to buffer: inout [UInt8]) {
        guard !range.isEmpty else { return }
        // An escape is never shorter than its value: `\u0080` is two bytes of UTF-8, and a pair of twelve bytes is
        // four.
        buffer.append(addingCapacity: range.count) { (output: inout OutputSpan<UInt8>) in
            var reader = JSONStringReader(range)
            reader.readAll(of: bytes, to: &output)
        }
    }
}

extension JSONText {
    /// Text as a JSON string with its quotes.
    package static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = []
        append(quoted: text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends text as a JSON string with its quotes; control characters, `"` and `\` are escaped (section 7).
    package static func append(quoted text: String, to bytes: inout [UInt8]) {
        var text = text
        text.withUTF8 { utf8 in unsafe append(quoted: utf8.span, to: &bytes) }
    }

    package static func append(quoted text: Span<UInt8>, to bytes: inout [UInt8]) {
        // The longest escape has six bytes.
        bytes.append(addingCapacity: text.count * 6 + 2) { (output: inout OutputSpan<UInt8>) in
            output.appendString(text)
        }
    }
}

/// Writing JSON (RFC 8259) into memory that was reserved for all of it.
extension OutputSpan where Element == UInt8 {
    /// Appends UTF-8 text as a JSON string with its quotes; control characters, `"` and `\` are escaped (section 7).
    package mutating func appendString(_ text: Span<UInt8>) {
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

    /// Appends the short escape if the byte has one, else `\u00` and two hexadecimal digits.
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
