/// Several bytes read as one value; the first byte is the lowest.
extension Span<UInt8> {
    @inlinable @inline(__always)
    package func word(at offset: Int) -> UInt64 {
        // In bounds: RawSpan checks that the eight bytes from `offset` lie inside. Every bit pattern is a valid UInt64,
        // as the unsafe call requires.
        unsafe UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// Fewer than eight bytes with zeros above them. The value does not depend on the offset.
    @inlinable @inline(__always)
    package func shortWord(_ range: Range<Int>) -> UInt64 {
        if count - range.lowerBound >= 8 {
            // The range has at most seven bytes, so fewer than 64 bits.
            let bitCount = UInt64(truncatingIfNeeded: range.count) &* 8
            return word(at: range.lowerBound) & ((1 &<< bitCount) &- 1)
        }
        var word: UInt64 = 0
        for (position, offset) in range.enumerated() { word |= UInt64(self[offset]) << UInt64(8 * position) }
        return word
    }

    @inlinable @inline(__always)
    package func vector16(at offset: Int) -> SIMD16<UInt8> {
        // RawSpan checks the bounds, and every bit pattern is a valid value.
        unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
    }

    /// The first offset at or after `start` with a byte that `marks` marks, or with fewer than sixteen bytes after it.
    @inlinable @inline(__always)
    package func skipUnmarked(from start: Int, _ marks: (SIMD16<UInt8>) -> SIMD2<UInt64>) -> Int {
        var offset = start
        // The offset is from 0 to `count`, so no difference or sum overflows.
        while count &- offset >= 16 {
            let found = marks(vector16(at: offset))
            if found[0] | found[1] != 0 { return offset &+ found.unmarkedCount }
            offset &+= 16
        }
        return offset
    }

    /// The first offset at or after `start` that holds `byte`; `count` if there is none.
    @inlinable
    package func firstOffset(of byte: UInt8, from start: Int) -> Int {
        let sought = SIMD16<UInt8>(repeating: byte)
        var offset = skipUnmarked(from: start) { ($0 .== sought).words }
        while offset < count, self[offset] != byte { offset += 1 }
        return offset
    }
}

/// The result of comparing sixteen bytes: a lane is all ones if its bytes match and all zeros if they do not.
extension SIMDMask<SIMD16<Int8>> {
    /// The lanes as two words; the first byte's lane is lowest.
    @inlinable @inline(__always)
    package var words: SIMD2<UInt64> {
        // Both types are 16 bytes of plain bits.
        unsafe unsafeBitCast(self, to: SIMD2<UInt64>.self)
    }
}

extension SIMD2<UInt64> {
    /// The number of bytes before the first byte that has a bit set, at most sixteen.
    @inlinable @inline(__always)
    package var unmarkedCount: Int {
        if self[0] != 0 { return UInt64(littleEndian: self[0]).trailingZeroBitCount / 8 }
        return 8 + UInt64(littleEndian: self[1]).trailingZeroBitCount / 8
    }
}

/// Comparison of byte strings. It stops at the first difference, so do not compare secrets with it.
extension Span<UInt8> {
    /// True if the bytes in `range`, which must lie inside the span, equal `other`.
    @inlinable
    package func equal(_ range: Range<Int>, _ other: Span<UInt8>) -> Bool {
        let part = extracting(range)
        guard part.count == other.count else { return false }
        var offset = 0
        while part.count &- offset >= 8 {
            guard part.word(at: offset) == other.word(at: offset) else { return false }
            offset &+= 8
        }
        while offset < part.count, part[offset] == other[offset] { offset &+= 1 }
        return offset == part.count
    }

    /// True if the bytes in `range` equal `text`; false if the range is not inside the span.
    @inlinable
    package func equal(_ range: Range<Int>, _ text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount, range.lowerBound >= 0, range.upperBound <= count else {
            return false
        }
        return unsafe equal(range, text.buffer.span)
    }

    /// True if the bytes in `range` equal `lowercase` (ASCII, given in lower case) without regard to case.
    @inlinable
    package func equalIgnoringCase(_ range: Range<Int>, _ lowercase: StaticString) -> Bool {
        guard range.count == lowercase.utf8CodeUnitCount, range.lowerBound >= 0, range.upperBound <= count else {
            return false
        }
        let (part, expected) = unsafe (extracting(range), lowercase.buffer.span)
        for offset in part.indices where ASCII.lowercased(part[offset]) != expected[offset] { return false }
        return true
    }

    @inlinable
    package func isASCII(_ range: Range<Int>) -> Bool { range.allSatisfy { self[$0] < 0x80 } }
}

extension StaticString {
    /// The UTF-8 bytes of a literal, which live as long as the program. The literal must be a text, not one scalar.
    @inlinable
    package var buffer: UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount)
    }

    /// The UTF-8 byte at `index`; nil outside `0..<utf8CodeUnitCount`.
    @inlinable
    package func byte(at index: Int) -> UInt8? { unsafe buffer.indices.contains(index) ? buffer[index] : nil }
}
