/// base64url without padding (RFC 4648 section 5, RFC 7515 section 2). Each value has exactly one accepted spelling.
package enum Base64URL {
    /// Decodes `range` of `text` into `buffer`. It replaces the buffer's content and keeps its memory.
    /// It refuses padding, bytes outside the alphabet, a length that no value has, and unused bits that are not zero
    /// (RFC 4648 sections 3.2, 3.3 and 3.5).
    /// - Returns: whether the text is strict base64url. The buffer is empty if it is not.
    package static func decode(_ text: Span<UInt8>, _ range: Range<Int>, into buffer: inout [UInt8]) -> Bool {
        buffer.removeAll(keepingCapacity: true)
        // A single leftover digit holds six bits, which is less than a byte.
        guard range.count % 4 != 1 else { return false }
        var isStrict = true
        buffer.append(addingCapacity: roomNeeded(range.count)) { (output: inout OutputSpan<UInt8>) in
            isStrict = decode(text, range, to: &output)
        }
        if !isStrict { buffer.removeAll(keepingCapacity: true) }
        return isStrict
    }

    /// Decodes a part of `range` of `text`, which must be strict base64url, and appends it. Digits are decoded in
    /// groups of four, so up to two neighbouring bytes on each side are appended too.
    /// - Parameter bytes: The positions of the wanted bytes among all decoded bytes.
    /// - Returns: The positions of the wanted bytes in the buffer; nil if the text does not hold them, and then nothing
    ///   is appended.
    package static func append(
        _ bytes: Range<Int>,
        of text: Span<UInt8>,
        _ range: Range<Int>,
        to buffer: inout [UInt8]
    ) -> Range<Int>? {
        guard bytes.upperBound <= range.count * 3 / 4 else { return nil }
        let first = range.lowerBound + bytes.lowerBound / 3 * 4
        let end = min(range.upperBound, range.lowerBound + (bytes.upperBound + 2) / 3 * 4)
        let start = buffer.count + bytes.lowerBound % 3
        var isStrict = false
        buffer.append(addingCapacity: roomNeeded(end - first)) { (output: inout OutputSpan<UInt8>) in
            isStrict = decode(text, first..<max(first, end), to: &output)
        }
        return isStrict ? start..<start + bytes.count : nil
    }

    /// The greatest number of bytes written: six for each eight digits, then one word of which at most five bytes
    /// count.
    private static func roomNeeded(_ digitCount: Int) -> Int { digitCount / 8 * 6 + 8 }

    /// Appends the decoded bytes; nothing if the text is not strict. The output has room for `roomNeeded` bytes.
    private static func decode(_ text: Span<UInt8>, _ range: Range<Int>, to output: inout OutputSpan<UInt8>) -> Bool {
        let first = output.count
        output.append(repeating: 0, count: roomNeeded(range.count))
        var span = output.mutableSpan
        // Every store below is checked to be in bounds, and any bits are valid bytes.
        var bytes = unsafe span.mutableBytes
        var union: UInt32 = 0
        var rest = text.extracting(range)
        var written = first
        while rest.count >= 8 {
            bytes.storeBytes(of: read(rest, &union), toByteOffset: written, as: UInt64.self)
            written &+= 6
            rest = rest.extracting(droppingFirst: 8)
        }
        // The last zero to seven digits are filled up with digits of value zero.
        let bits = read(InlineArray<8, UInt8> { $0 < rest.count ? rest[$0] : UInt8(ascii: "A") }.span, &union)
        bytes.storeBytes(of: bits, toByteOffset: written, as: UInt64.self)
        let byteCount = rest.count * 6 / 8
        // The bits after the whole bytes are the unused bits and the zeros of the added digits.
        let isStrict = union < 1 << 24 && UInt64(bigEndian: bits) << UInt64(8 * byteCount) == 0
        output.removeLast(output.count - (isStrict ? written + byteCount : first))
        return isStrict
    }

    /// The six bytes that the first eight digits encode, and two zeros, in the order of memory.
    /// - Parameter union: gains all bits of the digits; 2²⁴ and above if a byte is no digit.
    @inline(__always)
    private static func read(_ digits: Span<UInt8>, _ union: inout UInt32) -> UInt64 {
        let front = group(digits[0], digits[1], digits[2], digits[3])
        let back = group(digits[4], digits[5], digits[6], digits[7])
        union |= front | back
        return (UInt64(front) << 40 | UInt64(back) << 16).bigEndian
    }

    @inline(__always)
    private static func group(_ first: UInt8, _ second: UInt8, _ third: UInt8, _ fourth: UInt8) -> UInt32 {
        bits[Int(first)] | bits[0x100 | Int(second)] | bits[0x200 | Int(third)] | bits[0x300 | Int(fourth)]
    }

    /// The bits that each byte stands for as the first digit of a group of four, then as the second, third and fourth.
    private static let bits: InlineArray<1_024, UInt32> = {
        // The eight bits above the 24 of a group mark a byte that is not a digit.
        var bits = InlineArray<1_024, UInt32>(repeating: 0xFF00_0000)
        for place in 0..<4 {
            for value in 0..<64 as Range<UInt32> {
                bits[place << 8 | Int(digit(value))] = value << UInt32(18 - 6 * place)
            }
        }
        return bits
    }()

    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        append(encoding: Array(bytes).span, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    package static func append(encoding bytes: Span<UInt8>, to text: inout [UInt8]) {
        // An array without memory shares one with all others, and the standard library would write its count there.
        guard !bytes.isEmpty else { return }
        text.append(addingCapacity: (bytes.count * 4 + 2) / 3) { (output: inout OutputSpan<UInt8>) in
            for start in stride(from: 0, to: bytes.count, by: 3) {
                // Three bytes are four digits. The last one or two bytes are filled up with zeros.
                let count = min(3, bytes.count - start)
                var group = UInt32(bytes[start]) << 16
                if count > 1 { group |= UInt32(bytes[start + 1]) << 8 }
                if count > 2 { group |= UInt32(bytes[start + 2]) }
                output.append(digit(group >> 18))
                output.append(digit(group >> 12))
                if count > 1 { output.append(digit(group >> 6)) }
                if count > 2 { output.append(digit(group)) }
            }
        }
    }

    private static func digit(_ value: UInt32) -> UInt8 {
        // In bounds: the alphabet has 64 digits, and the value is below 64.
        unsafe alphabet.utf8Start[Int(value & 63)]
    }

    private static let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
}

/// base64 with padding (RFC 4648 section 4). Each value has exactly one accepted spelling.
package enum Base64 {
    /// Decodes `range` of `text`; nil if padding is missing, a byte is outside the alphabet, or unused bits are not
    /// zero.
    package static func decode(_ text: Span<UInt8>, _ range: Range<Int>) -> [UInt8]? {
        guard range.count.isMultiple(of: 4) else { return nil }
        let digits = withoutPadding(text, range).map { exchanged(text[$0]) }
        var decoded: [UInt8] = []
        return Base64URL.decode(digits.span, digits.indices, into: &decoded) ? decoded : nil
    }

    /// `range` without the padding that completes its last four digits. A range with any other padding is returned
    /// unchanged.
    package static func withoutPadding(_ text: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
        guard range.count.isMultiple(of: 4) else { return range }
        var end = range.upperBound
        while end > range.lowerBound, range.upperBound - end < 2, text[end - 1] == UInt8(ascii: "=") { end -= 1 }
        return range.lowerBound..<end
    }

    package static func encode(_ bytes: [UInt8]) -> String {
        var text = Base64URL.encode(bytes).utf8.map(exchanged)
        while !text.count.isMultiple(of: 4) { text.append(UInt8(ascii: "=")) }
        return String(decoding: text, as: UTF8.self)
    }

    /// The digit of base64url for one of base64, and the reverse. A digit that base64 lacks becomes one that base64url
    /// lacks.
    private static func exchanged(_ digit: UInt8) -> UInt8 {
        switch digit {
        case UInt8(ascii: "+"): UInt8(ascii: "-")
        case UInt8(ascii: "-"): UInt8(ascii: "+")
        case UInt8(ascii: "/"): UInt8(ascii: "_")
        case UInt8(ascii: "_"): UInt8(ascii: "/")
        default: digit
        }
    }
}
