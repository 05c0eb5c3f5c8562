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

    /// Appends some of the bytes that `range` of `text` stands for, which is known to be strict base64url, with at most two
    /// of their neighbours on each side: digits come in fours.
    /// - Parameter bytes: their places among all the bytes.
    /// - Returns: where they stand in the buffer; nil, and nothing appended, where they are not there.
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
        // `A` sixteen times: a digit of value zero. A literal of 128 bits would be put together anew at each call.
        let zeros: UInt64 = 0x4141_4141_4141_4141
        var digits = UInt128(zeros) << 64 | UInt128(zeros)
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

/// The values of base64url digits (RFC 4648 table 2), sixteen at a time and without a table: what is not in the alphabet
/// is noticed once, at the end.
struct Base64URLDigits {
    #if _endian(big)
    #error("the digits are put together in lanes whose lowest byte comes first")
    #endif

    /// All bits of a lane as long as each byte in it was in the alphabet.
    private var good = SIMD16<UInt8>(repeating: 0xFF)

    /// Whether every byte read so far is in the alphabet.
    @inline(__always)
    var areStrict: Bool {
        // The types are 16 bytes of plain bits each.
        let words = unsafe unsafeBitCast(good, to: SIMD2<UInt64>.self)
        return words[0] & words[1] == .max
    }

    /// The bits of sixteen digits: those of each eight as the highest 48 of a word, the first digit's highest.
    @inline(__always)
    mutating func read(_ text: SIMD16<UInt8>) -> SIMD2<UInt64> {
        // With bit 0x20 set, both cases of a letter are one; the lower case counts from 26.
        let letter = (text | 0x20) &- UInt8(ascii: "a")
        let digit = text &- UInt8(ascii: "0")
        let isLetter = (letter .< SIMD16<UInt8>(repeating: 26)).bits
        let isDigit = (digit .< SIMD16<UInt8>(repeating: 10)).bits
        let isLine = (text .== SIMD16<UInt8>(repeating: UInt8(ascii: "_"))).bits
        let isSign = (text .== SIMD16<UInt8>(repeating: UInt8(ascii: "-"))).bits | isLine
        good &= isLetter | isDigit | isSign
        let lower = (text .> SIMD16<UInt8>(repeating: UInt8(ascii: "_"))).bits & 26
        // A mask of ones is -1: taking it away makes 63 of 62.
        let sign = (isSign & 62) &- isLine
        let value = isLetter & (letter &+ lower) | isDigit & (digit &+ 52) | sign
        return Self.joined(value)
    }

    /// Moves the six bits of each lane together: two lanes to twelve bits, those to 24, those to 48.
    @inline(__always)
    private static func joined(_ value: SIMD16<UInt8>) -> SIMD2<UInt64> {
        // The types are 16 bytes of plain bits each.
        let pairs = unsafe unsafeBitCast(value, to: SIMD8<UInt16>.self)
        let twelves = (pairs & 0x3F) &<< 6 | pairs &>> 8
        let groups = unsafe unsafeBitCast(twelves, to: SIMD4<UInt32>.self)
        let bits = (groups & 0xFFFF) &<< 12 | groups &>> 16
        let words = unsafe unsafeBitCast(bits, to: SIMD2<UInt64>.self)
        return words &<< 40 | (words &>> 32) &<< 16
    }
}

/// base64 with its padding (RFC 4648 section 4), with exactly one spelling for each value.
package enum Base64 {
    /// Decodes `range` of `text`; nil for padding that is missing, any byte outside the alphabet, and unused bits that
    /// are not zero.
    package static func decode(_ text: Span<UInt8>, _ range: Range<Int>) -> [UInt8]? {
        guard range.count.isMultiple(of: 4) else { return nil }
        var end = range.upperBound
        while end > range.lowerBound, range.upperBound - end < 2, text[end - 1] == UInt8(ascii: "=") { end -= 1 }
        var digits: [UInt8] = []
        digits.reserveCapacity(end - range.lowerBound)
        for index in range.lowerBound..<end {
            switch text[index] {
            case UInt8(ascii: "+"): digits.append(UInt8(ascii: "-"))
            case UInt8(ascii: "/"): digits.append(UInt8(ascii: "_"))
            case UInt8(ascii: "-"), UInt8(ascii: "_"): return nil
            case let digit: digits.append(digit)
            }
        }
        var decoded: [UInt8] = []
        return Base64URL.decode(digits.span, digits.indices, into: &decoded) ? decoded : nil
    }

    /// The base64 text of `bytes`.
    package static func encode(_ bytes: [UInt8]) -> String {
        var text = Base64URL.encode(bytes).map { digit in
            switch digit {
            case UInt8(ascii: "-"): UInt8(ascii: "+")
            case UInt8(ascii: "_"): UInt8(ascii: "/")
            default: digit
            }
        }
        while !text.count.isMultiple(of: 4) { text.append(UInt8(ascii: "=")) }
        return String(decoding: text, as: UTF8.self)
    }
}
