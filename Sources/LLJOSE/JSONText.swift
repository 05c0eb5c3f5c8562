internal import LLBytes

/// Reads the value of a JSON string, UTF-8 byte by byte, with its escapes decoded (RFC 8259 section 7).
/// It is meant for text that the parser accepted. For any other text it still ends and reads nothing outside its range.
package struct JSONStringReader {
    private var offset: Int
    private let end: Int
    /// Bytes of a decoded `\u` escape that are not returned yet.
    private var pending = Unicode.UTF8.EncodedScalar()

    package init(_ range: Range<Int>) {
        offset = range.lowerBound
        end = range.upperBound
    }

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

    /// An escape is never shorter than its value: a pair of twelve bytes is four bytes of UTF-8.
    @inline(__always)
    private static func write(_ bytes: Span<UInt8>, _ range: Range<Int>, to output: inout OutputSpan<UInt8>) {
        var reader = JSONStringReader(range)
        while let byte = reader.next(in: bytes) { output.append(byte) }
    }

    package static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = []
        JSONWriter.string(text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
