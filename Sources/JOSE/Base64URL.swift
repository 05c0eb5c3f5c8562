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
        let wholeCount = range.count / 8 * 8
        buffer.append(addingCapacity: range.count / 8 * 6 + 8) { (output: inout OutputSpan<UInt8>) in
            let faults = decodeWords(text, range.lowerBound..<range.lowerBound + wholeCount, to: &output)
            isStrict =
                faults == 0 && decodeRest(text, range.lowerBound + wholeCount..<range.upperBound, to: &output)
        }
        if !isStrict { buffer.removeAll(keepingCapacity: true) }
        return isStrict
    }

    /// Decodes digits eight at a time; their number is a multiple of eight. Returns their faults, gathered, so
    /// that good text takes no branch for them.
    private static func decodeWords(
        _ text: Span<UInt8>,
        _ range: Range<Int>,
        to output: inout OutputSpan<UInt8>
    ) -> UInt32 {
        unsafe output.withUnsafeMutableBufferPointer { buffer, count in
            // Each word stores eight bytes, of which the next word overwrites the last two: the buffer must hold
            // six for each word and two more.
            guard let start = buffer.baseAddress, buffer.count >= range.count / 8 * 6 + 2 else {
                return range.isEmpty ? 0 : Base64URLDigits.fault
            }
            let bytes = UnsafeMutableRawPointer(start)
            var faults: UInt32 = 0
            var offset = range.lowerBound
            var written = count
            while offset < range.upperBound {
                let word = text.word(at: offset)
                let (front, back) = (Base64URLDigits.shared.group(word), Base64URLDigits.shared.group(word >> 32))
                faults |= front | back
                let bits = UInt64(front) << 40 | UInt64(back) << 16
                // In bounds: `written` is six for each word before this one, see above.
                unsafe bytes.storeBytes(of: bits.bigEndian, toByteOffset: written, as: UInt64.self)
                written += 6
                offset += 8
            }
            count = written
            return faults & Base64URLDigits.fault
        }
    }

    /// Decodes the last digits, fewer than eight, as if digits of value zero followed.
    private static func decodeRest(_ text: Span<UInt8>, _ rest: Range<Int>, to output: inout OutputSpan<UInt8>) -> Bool
    {
        guard !rest.isEmpty else { return true }
        var word = WordOfBytes.lowBits &* UInt64(UInt8(ascii: "A"))
        for (position, offset) in rest.enumerated() {
            let shift = UInt64(8 * position)
            word = word & ~(0xFF << shift) | UInt64(text[offset]) << shift
        }
        let (front, back) = (Base64URLDigits.shared.group(word), Base64URLDigits.shared.group(word >> 32))
        guard (front | back) & Base64URLDigits.fault == 0 else { return false }
        let bits = UInt64(front) << 24 | UInt64(back)
        let byteCount = rest.count * 6 / 8
        append(bits, byteCount: byteCount, to: &output)
        // What follows the whole bytes are unused bits, and the zeros put in above.
        return bits & (1 << UInt64(48 - 8 * byteCount) - 1) == 0
    }

    /// Appends the highest bytes of 48 bits, the highest first.
    @inline(__always)
    private static func append(_ bits: UInt64, byteCount: Int, to output: inout OutputSpan<UInt8>) {
        var shift: UInt64 = 40
        for _ in 0..<byteCount {
            output.append(UInt8(truncatingIfNeeded: bits >> shift))
            shift &-= 8
        }
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
