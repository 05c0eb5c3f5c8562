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

extension Span<UInt8> {
    /// The eight bytes from `offset` on, the first one lowest.
    @inline(__always)
    func word(at offset: Int) -> UInt64 {
        // In bounds: RawSpan itself checks that the eight bytes from `offset` lie inside. Every bit pattern
        // is a valid UInt64, which is what the call leaves to the caller.
        unsafe UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
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
        while count - offset >= 32, !any(vector(at: offset) .== sought) { offset += 32 }
        while count - offset >= 8 {
            let marks = word(at: offset).bytesEqual(to: byte)
            if marks != 0 { return offset + marks.trailingZeroBitCount / 8 }
            offset += 8
        }
        while offset < count, self[offset] != byte { offset += 1 }
        return offset
    }
}
