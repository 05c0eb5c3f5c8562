/// Eight bytes looked at as one 64-bit word, the first byte lowest.
enum WordOfBytes {
    /// The lowest bit of each byte.
    static let lowBits: UInt64 = 0x0101_0101_0101_0101
    /// The highest bit of each byte.
    static let highBits: UInt64 = 0x8080_8080_8080_8080
}

extension UInt64 {
    /// Marks, in the highest bit, each byte below `bound` (at most 0x80). The lowest mark is exact; a mark
    /// above another mark may be false, because a borrow can run into it.
    @inline(__always)
    func bytesLess(than bound: UInt8) -> UInt64 {
        (self &- WordOfBytes.lowBits &* UInt64(bound)) & ~self & WordOfBytes.highBits
    }

    /// Marks, in the highest bit, each byte equal to `byte`. The lowest mark is exact, as above.
    @inline(__always)
    func bytesEqual(to byte: UInt8) -> UInt64 {
        (self ^ (WordOfBytes.lowBits &* UInt64(byte))).bytesLess(than: 1)
    }
}

extension UInt64 {
    /// Marks, in the highest bit, each byte that does not stand for itself in a JSON string: below 0x20, a quote, a
    /// reverse solidus, or from 0x80 on. The lowest mark is exact.
    @inline(__always)
    var specialBytes: UInt64 {
        // The difference of a byte below 0x80 has its highest bit exactly when it is below zero; that of any other byte
        // is marked anyway. Only a marked byte borrows from the one above it.
        let below = self &- WordOfBytes.lowBits &* 0x20
        let quote = (self ^ WordOfBytes.lowBits &* 0x22) &- WordOfBytes.lowBits
        let solidus = (self ^ WordOfBytes.lowBits &* 0x5C) &- WordOfBytes.lowBits
        return (below | quote | solidus | self) & WordOfBytes.highBits
    }
}

extension SIMD16<UInt8> {
    /// All ones for each byte among `specialBytes` of a word, zero for any other: the first eight bytes' in the first
    /// word. Every lane is exact.
    @inline(__always)
    var specialBytes: SIMD2<UInt64> {
        // Read as signed numbers, the bytes from 0x80 on are below 0x20 too. The types are 16 bytes of plain bits each.
        let low = (unsafe unsafeBitCast(self, to: SIMD16<Int8>.self) .< SIMD16<Int8>(repeating: 0x20)).bits
        let quote = (self .== SIMD16<UInt8>(repeating: UInt8(ascii: "\""))).bits
        let solidus = (self .== SIMD16<UInt8>(repeating: UInt8(ascii: "\\"))).bits
        return unsafe unsafeBitCast(low | quote | solidus, to: SIMD2<UInt64>.self)
    }
}

extension SIMD2<UInt64> {
    /// The number of bytes before the first mark, at most sixteen.
    @inline(__always)
    var unmarkedCount: Int {
        if self[0] != 0 { return UInt64(littleEndian: self[0]).trailingZeroBitCount / 8 }
        return 8 + UInt64(littleEndian: self[1]).trailingZeroBitCount / 8
    }
}

extension Span<UInt8> {
    /// Whether one of the 32 bytes from `offset` on is among `specialBytes`.
    @inline(__always)
    func hasSpecialBytes(in32At offset: Int) -> Bool {
        let marks = vector16(at: offset).specialBytes | vector16(at: offset &+ 16).specialBytes
        return marks[0] | marks[1] != 0
    }
}

extension SIMDMask<SIMD16<Int8>> {
    /// Each lane as a byte, of ones where it is set; what the library makes of masks goes through them lane by lane.
    @inline(__always)
    var bits: SIMD16<UInt8> {
        // Both types are 16 bytes of plain bits, each lane of the mask all ones or all zeros.
        unsafe unsafeBitCast(self, to: SIMD16<UInt8>.self)
    }
}

extension SIMDMask<SIMD32<Int8>> {
    /// Whether any lane is set; the library's `any` looks at them one by one.
    @inline(__always)
    var isAnySet: Bool {
        // Both types are 32 bytes of plain bits, each lane of the mask all ones or all zeros.
        let words = unsafe unsafeBitCast(self, to: SIMD4<UInt64>.self)
        return words[0] | words[1] | words[2] | words[3] != 0
    }
}

extension Span<UInt8> {
    /// The eight bytes from `offset` on, the first one lowest.
    @inline(__always)
    func word(at offset: Int) -> UInt64 {
        // In bounds: RawSpan itself checks that the eight bytes from `offset` lie inside. Every bit pattern
        // is a valid UInt64, which is what the call leaves to the caller.
        unsafe UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// Fewer than eight bytes as one word, the first lowest and zeros above them: the same value wherever they stand.
    @inline(__always)
    func shortWord(_ range: Range<Int>) -> UInt64 {
        if count - range.lowerBound >= 8 {
            // At most seven bytes: fewer than 64 bits.
            let bitCount = UInt64(truncatingIfNeeded: range.count) &* 8
            return word(at: range.lowerBound) & ((1 &<< bitCount) &- 1)
        }
        var word: UInt64 = 0
        for (position, offset) in range.enumerated() { word |= UInt64(self[offset]) << UInt64(8 * position) }
        return word
    }

    /// The sixteen bytes from `offset` on, the first one lowest.
    @inline(__always)
    func word16(at offset: Int) -> UInt128 {
        // As above: RawSpan checks the bounds, and every bit pattern is a value.
        unsafe UInt128(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt128.self))
    }

    /// The sixteen bytes from `offset` on.
    @inline(__always)
    func vector16(at offset: Int) -> SIMD16<UInt8> {
        // As above.
        unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
    }

    /// The 32 bytes from `offset` on.
    @inline(__always)
    func vector(at offset: Int) -> SIMD32<UInt8> {
        // As above: RawSpan checks the bounds, and every bit pattern is a value.
        unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: SIMD32<UInt8>.self)
    }

    /// The first offset at or after `start` that holds `byte`; `count` when there is none.
    func firstOffset(of byte: UInt8, from start: Int) -> Int {
        var offset = start
        let sought = SIMD32<UInt8>(repeating: byte)
        while count - offset >= 64 {
            let isFound = (vector(at: offset) .== sought) .| (vector(at: offset + 32) .== sought)
            if isFound.isAnySet { break }
            offset += 64
        }
        while count - offset >= 8 {
            let marks = word(at: offset).bytesEqual(to: byte)
            if marks != 0 { return offset + marks.trailingZeroBitCount / 8 }
            offset += 8
        }
        while offset < count, self[offset] != byte { offset += 1 }
        return offset
    }
}
