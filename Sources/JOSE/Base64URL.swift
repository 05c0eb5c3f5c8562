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
        // All digits joined by OR: a byte outside the alphabet leaves a bit at 64 or above.
        var joined: UInt8 = 0
        var offset = range.lowerBound
        let blockCount = range.count / Base64URLBlock.digitCount
        let room = range.count / 4 * 3 + 2 + Base64URLBlock.storedByteCount
        buffer.append(addingCapacity: room) { (output: inout OutputSpan<UInt8>) in
            if !Base64URLBlock.decode(text, from: offset, count: blockCount, into: &output) { joined = outside }
            offset += blockCount * Base64URLBlock.digitCount
            while range.upperBound - offset >= 4 {
                let a = digit(text[offset])
                let b = digit(text[offset + 1])
                let c = digit(text[offset + 2])
                let d = digit(text[offset + 3])
                joined |= a | b | c | d
                output.append(a << 2 | b >> 4)
                output.append(b << 4 | c >> 2)
                output.append(c << 6 | d)
                offset += 4
            }
            joined |= decodeRest(text, offset..<range.upperBound, &output)
        }
        if joined < 64 { return true }
        buffer.removeAll(keepingCapacity: true)
        return false
    }

    /// Decodes the last two or three digits; returns their OR, with high bits set where unused bits are not zero.
    private static func decodeRest(
        _ text: Span<UInt8>,
        _ rest: Range<Int>,
        _ output: inout OutputSpan<UInt8>
    ) -> UInt8 {
        guard rest.count >= 2 else { return 0 }
        let a = digit(text[rest.lowerBound])
        let b = digit(text[rest.lowerBound + 1])
        output.append(a << 2 | b >> 4)
        if rest.count == 2 { return a | b | (b & 0x0F == 0 ? 0 : outside) }
        let c = digit(text[rest.lowerBound + 2])
        output.append(b << 4 | c >> 2)
        return a | b | c | (c & 0x03 == 0 ? 0 : outside)
    }

    /// Marks a byte outside the alphabet. Digits are below 64.
    private static let outside: UInt8 = 0xFF

    /// The value of a byte as a base64url digit.
    @inline(__always)
    private static func digit(_ byte: UInt8) -> UInt8 {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0") + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: outside
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
