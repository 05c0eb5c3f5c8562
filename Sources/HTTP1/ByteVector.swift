/// Sixteen bytes looked at together. Marks are bytes of ones, eight of them in each word, the first byte's lowest.
extension SIMD16<UInt8> {
    /// Marks each byte that is no letter, digit or hyphen: the bytes of nearly every field name.
    @inline(__always)
    var marksBeyondPlainNames: SIMD2<UInt64> {
        // With bit 0x20 set, both cases of a letter are one.
        let letter = (self | 0x20) &- UInt8(ascii: "a")
        let digit = self &- UInt8(ascii: "0")
        let isLetter = letter .< SIMD16<UInt8>(repeating: 26)
        let isDigit = digit .< SIMD16<UInt8>(repeating: 10)
        let isHyphen = self .== SIMD16<UInt8>(repeating: UInt8(ascii: "-"))
        return ~Self.words(isLetter .| isDigit .| isHyphen)
    }

    /// Marks each control byte, a tab too: all that a field value may not hold, and the end of its line.
    @inline(__always)
    var marksOfControls: SIMD2<UInt64> {
        let isLow = self .< SIMD16<UInt8>(repeating: 0x20)
        return Self.words(isLow .| (self .== SIMD16<UInt8>(repeating: 0x7F)))
    }

    @inline(__always)
    private static func words(_ mask: SIMDMask<SIMD16<Int8>>) -> SIMD2<UInt64> {
        // Both types are 16 bytes of plain bits, each lane of the mask all ones or all zeros.
        unsafe unsafeBitCast(mask, to: SIMD2<UInt64>.self)
    }
}

extension SIMD2<UInt64> {
    /// The number of bytes before the first mark, at most 16.
    @inline(__always)
    var unmarkedCount: Int {
        if self[0] != 0 { return UInt64(littleEndian: self[0]).trailingZeroBitCount / 8 }
        return 8 + UInt64(littleEndian: self[1]).trailingZeroBitCount / 8
    }
}

extension Span<UInt8> {
    /// The sixteen bytes from `offset` on.
    @inline(__always)
    func vector16(at offset: Int) -> SIMD16<UInt8> {
        // In bounds: RawSpan itself checks that the sixteen bytes from `offset` lie inside; every bit pattern is a value.
        unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
    }

    /// The eight bytes from `offset` on.
    @inline(__always)
    func word(at offset: Int) -> UInt64 {
        // As above.
        unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }
}

extension UInt64 {
    /// The eight bytes with upper-case ASCII letters in lower case.
    @inline(__always)
    var lowercasedBytes: UInt64 {
        let high: UInt64 = 0x8080_8080_8080_8080
        let low = self & ~high
        // No sum leaves its byte. The highest bit of one tells whether the byte is `A` or above, of the other `[`.
        let isLetter = low &+ 0x3F3F_3F3F_3F3F_3F3F
        let isBeyond = low &+ 0x2525_2525_2525_2525
        let isUpper = isLetter & ~isBeyond & ~self & high
        return self | (isUpper >> 2)
    }
}
