/// Several bytes looked at as one value, the first byte lowest.
extension Span<UInt8> {
    /// The eight bytes from `offset` on.
    @inlinable @inline(__always)
    package func word(at offset: Int) -> UInt64 {
        // In bounds: RawSpan itself checks that the eight bytes from `offset` lie inside. Every bit pattern
        // is a valid UInt64, which is what the call leaves to the caller.
        unsafe UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// Fewer than eight bytes with zeros above them: the same value at any offset.
    @inlinable @inline(__always)
    package func shortWord(_ range: Range<Int>) -> UInt64 {
        if count - range.lowerBound >= 8 {
            // At most seven bytes: fewer than 64 bits.
            let bitCount = UInt64(truncatingIfNeeded: range.count) &* 8
            return word(at: range.lowerBound) & ((1 &<< bitCount) &- 1)
        }
        var word: UInt64 = 0
        for (position, offset) in range.enumerated() { word |= UInt64(self[offset]) << UInt64(8 * position) }
        return word
    }

    /// The sixteen bytes from `offset` on as one number.
    @inlinable @inline(__always)
    package func word16(at offset: Int) -> UInt128 {
        // As above: RawSpan checks the bounds, and every bit pattern is a value.
        unsafe UInt128(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt128.self))
    }

    /// The sixteen bytes from `offset` on.
    @inlinable @inline(__always)
    package func vector16(at offset: Int) -> SIMD16<UInt8> {
        // As above.
        unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
    }

    /// The first offset at or after `start` that holds `byte`; `count` when there is none.
    @inlinable
    package func firstOffset(of byte: UInt8, from start: Int) -> Int {
        var offset = start
        let sought = SIMD16<UInt8>(repeating: byte)
        while count &- offset >= 16 {
            let found = (vector16(at: offset) .== sought).words
            if found[0] | found[1] != 0 { return offset &+ found.unmarkedCount }
            offset &+= 16
        }
        while offset < count, self[offset] != byte { offset += 1 }
        return offset
    }

    /// The last offset that holds `byte`; nil when there is none.
    @inlinable
    package func lastOffset(of byte: UInt8) -> Int? {
        var end = count
        let sought = SIMD16<UInt8>(repeating: byte)
        while end >= 16 {
            let found = (vector16(at: end &- 16) .== sought).words
            if found[0] | found[1] != 0 { break }
            end &-= 16
        }
        while end > 0 {
            end -= 1
            if self[end] == byte { return end }
        }
        return nil
    }
}

/// A comparison of sixteen bytes: a lane is all ones where it holds and all zeros where it does not.
extension SIMDMask<SIMD16<Int8>> {
    /// Each lane as a byte; what the library makes of masks goes through them lane by lane.
    @inlinable @inline(__always)
    package var bits: SIMD16<UInt8> {
        // Both types are 16 bytes of plain bits.
        unsafe unsafeBitCast(self, to: SIMD16<UInt8>.self)
    }

    /// The lanes as two words, the first byte's lowest.
    @inlinable @inline(__always)
    package var words: SIMD2<UInt64> {
        // As above.
        unsafe unsafeBitCast(self, to: SIMD2<UInt64>.self)
    }
}

extension SIMD2<UInt64> {
    /// The number of bytes before the first one that is marked with a bit, at most sixteen.
    @inlinable @inline(__always)
    package var unmarkedCount: Int {
        if self[0] != 0 { return UInt64(littleEndian: self[0]).trailingZeroBitCount / 8 }
        return 8 + UInt64(littleEndian: self[1]).trailingZeroBitCount / 8
    }
}
