/// base64url without padding (RFC 4648 section 5, RFC 7515 section 2), with exactly one spelling for each value.
package enum Base64URL {
    /// Decodes `range` of `text` into `buffer`, replacing its content and keeping its memory.
    ///
    /// Refuses padding, any byte outside the alphabet, a length that no value has, and unused bits that are
    /// not zero (RFC 4648 sections 3.2, 3.3 and 3.5).
    /// - Returns: whether the text is strict base64url. When it is not, the buffer is empty.
    package static func decode(_ text: Span<UInt8>, _ range: Range<Int>, into buffer: inout [UInt8]) -> Bool {
        buffer.removeAll(keepingCapacity: true)
        // A rest of one digit holds six bits: less than a byte.
        guard range.count % 4 != 1 else { return false }
        var isStrict = true
        buffer.append(addingCapacity: roomNeeded(range.count)) { (output: inout OutputSpan<UInt8>) in
            isStrict = decode(text, range, to: &output)
        }
        if !isStrict { buffer.removeAll(keepingCapacity: true) }
        return isStrict
    }

    /// What is written to, at most: twelve bytes for each sixteen digits, then two words of which six bytes and eight
    /// count.
    private static func roomNeeded(_ digitCount: Int) -> Int { digitCount / 16 * 12 + 14 }

    private static func decode(_ text: Span<UInt8>, _ range: Range<Int>, to output: inout OutputSpan<UInt8>) -> Bool {
        unsafe output.withUnsafeMutableBufferPointer { buffer, count in
            guard let start = buffer.baseAddress, buffer.count - count >= roomNeeded(range.count) else { return false }
            let bytes = UnsafeMutableRawPointer(start)
            var digits = Base64URLDigits()
            let rest = range.upperBound - range.count % 16
            var offset = range.lowerBound
            var written = count
            while offset < rest {
                // In bounds: `written` is twelve for each sixteen digits before these; room is for fourteen bytes more.
                unsafe store(digits.read(text.vector16(at: offset)), to: bytes + written)
                written &+= 12
                offset &+= 16
            }
            var unusedBits: UInt64 = 0
            if rest < range.upperBound {
                let words = digits.read(lastDigits(text, rest..<range.upperBound))
                // In bounds: as above.
                unsafe store(words, to: bytes + written)
                let byteCount = range.count % 16 * 6 / 8
                // What follows the whole bytes are unused bits, and the zeros of the digits put in.
                let (front, back) = (
                    words[0] << UInt64(8 * min(byteCount, 6)), words[1] << UInt64(8 * max(byteCount - 6, 0))
                )
                unusedBits = front | back
                written += byteCount
            }
            guard digits.areStrict, unusedBits == 0 else { return false }
            count = written
            return true
        }
    }

    /// Writes the highest six bytes of both words, and two of no meaning behind them: fourteen in all.
    @inline(__always)
    private static func store(_ words: SIMD2<UInt64>, to bytes: UnsafeMutableRawPointer) {
        // The caller has shown that there is room for fourteen bytes.
        unsafe bytes.storeBytes(of: words[0].bigEndian, as: UInt64.self)
        unsafe bytes.storeBytes(of: words[1].bigEndian, toByteOffset: 6, as: UInt64.self)
    }

    /// The last digits, 1 to 15, as if digits of value zero followed.
    private static func lastDigits(_ text: Span<UInt8>, _ range: Range<Int>) -> SIMD16<UInt8> {
        let zeros = UInt128(WordOfBytes.lowBits) << 64 | UInt128(WordOfBytes.lowBits)
        var digits = zeros &* UInt128(UInt8(ascii: "A"))
        if range.upperBound >= 16 {
            // Moved down by the bytes before `range`, so that it stands lowest.
            let before = UInt128(8 * (16 - range.count))
            digits = digits << (128 - before) | text.word16(at: range.upperBound - 16) >> before
        } else {
            for (position, offset) in range.enumerated() {
                let shift = UInt128(8 * position)
                digits = digits & ~(0xFF << shift) | UInt128(text[offset]) << shift
            }
        }
        // Both are 16 bytes of plain bits, the first digit lowest.
        return unsafe unsafeBitCast(digits, to: SIMD16<UInt8>.self)
    }

    /// The base64url text of `bytes`.
    package static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 4 + 2) / 3)
        var bits: UInt32 = 0
        var bitCount: UInt32 = 0
        for byte in bytes {
            bits = (bits << 8 | UInt32(byte)) & 0xFFFF
            bitCount += 8
            while bitCount >= 6 {
                bitCount -= 6
                text.append(digit(bits >> bitCount))
            }
        }
        if bitCount > 0 { text.append(digit(bits << (6 - bitCount))) }
        return text
    }

    private static func digit(_ value: UInt32) -> UInt8 {
        let value = UInt8(value & 63)
        return switch value {
        case ..<26: UInt8(ascii: "A") + value
        case ..<52: UInt8(ascii: "a") + value - 26
        case ..<62: UInt8(ascii: "0") + value - 52
        case 62: UInt8(ascii: "-")
        default: UInt8(ascii: "_")
        }
    }
}
