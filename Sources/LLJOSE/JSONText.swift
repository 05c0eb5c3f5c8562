internal import LLBytes

package enum JSONText {
    /// True if every byte represents itself in a JSON string: ASCII except control characters, `"` and `\`.
    package static func isPlain(_ bytes: Span<UInt8>) -> Bool {
        let start = bytes.skipUnmarked(from: 0) { $0.specialBytes }
        return (start..<bytes.count).allSatisfy { bytes[$0] < 0x80 && !needsEscape(bytes[$0]) }
    }

    static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    /// The value of a string that the parser accepted. `range` is the text between its quotes.
    package static func value(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String {
        String(capacity: range.count) { (output: inout OutputSpan<UInt8>) in write(bytes, range, to: &output) }
    }

    package static func append(_ bytes: Span<UInt8>, _ range: Range<Int>, to buffer: inout [UInt8]) {
        guard !range.isEmpty else { return }
        buffer.append(addingCapacity: range.count) { (output: inout OutputSpan<UInt8>) in
            write(bytes, range, to: &output)
        }
    }

    /// Writes the value of a string, with its escapes decoded (RFC 8259 section 7). An escape is never shorter than its
    /// value: a pair of twelve bytes is four bytes of UTF-8. It reads nothing outside the range, whatever the text is.
    private static func write(_ bytes: Span<UInt8>, _ range: Range<Int>, to output: inout OutputSpan<UInt8>) {
        let text = bytes.extracting(range)
        var offset = 0
        while true {
            let end = text.firstOffset(of: UInt8(ascii: "\\"), from: offset)
            output.append(text, offset..<end)
            guard end + 1 < text.count else { return }
            offset = end + 2
            switch text[end + 1] {
            case UInt8(ascii: "b"): output.append(0x08)
            case UInt8(ascii: "f"): output.append(0x0C)
            case UInt8(ascii: "n"): output.append(ASCII.lineFeed)
            case UInt8(ascii: "r"): output.append(ASCII.carriageReturn)
            case UInt8(ascii: "t"): output.append(ASCII.tab)
            case UInt8(ascii: "u"): writeCodePoint(text, &offset, to: &output)
            case let byte: output.append(byte)
            }
        }
    }

    /// Writes the character whose digits, with the second half of a pair, follow a `\u`.
    private static func writeCodePoint(_ text: Span<UInt8>, _ offset: inout Int, to output: inout OutputSpan<UInt8>) {
        var code = readFourDigits(text, &offset)
        if code & 0xFC00 == 0xD800 {
            // The parser has checked that the other half follows as `\uDC00` to `\uDFFF`.
            offset = min(offset + 2, text.count)
            code = 0x10000 + ((code & 0x3FF) << 10) + (readFourDigits(text, &offset) & 0x3FF)
        }
        // A text that the parser accepted never holds half a pair.
        for byte in String(Unicode.Scalar(code) ?? "\u{FFFD}").utf8 { output.append(byte) }
    }

    private static func readFourDigits(_ text: Span<UInt8>, _ offset: inout Int) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 where offset < text.count {
            value = value << 4 | UInt32(Hexadecimal.value(text[offset]) ?? 0)
            offset += 1
        }
        return value
    }

    package static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = []
        JSONWriter.string(text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
