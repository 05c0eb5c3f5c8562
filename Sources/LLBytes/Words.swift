/// Several bytes read as one value; the first byte is the lowest.
extension Span<UInt8> {
    /// The eight bytes from `offset` on.
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

    /// The sixteen bytes from `offset` on.
    @inlinable @inline(__always)
    package func vector16(at offset: Int) -> SIMD16<UInt8> {
        // RawSpan checks the bounds, and every bit pattern is a valid value.
        unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
    }

    /// The first offset at or after `start` that holds `byte`; `count` if there is none.
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

    /// The last offset that holds `byte`; nil if there is none.
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

/// Comparison of byte strings up to the first difference, eight bytes at a time. The last eight bytes may overlap the
/// ones before them. Do not compare secrets with it: it does not take constant time.
extension Span<UInt8> {
    /// True if the bytes in `range`, which must lie inside the span, equal `other`.
    @inlinable
    package func equal(_ range: Range<Int>, _ other: Span<UInt8>) -> Bool {
        guard range.count == other.count else { return false }
        if range.count < 8 { return shortWord(range) == other.shortWord(0..<range.count) }
        let last = range.count - 8
        var distance = 0
        while word(at: range.lowerBound + distance) == other.word(at: distance) {
            if distance == last { return true }
            distance = Swift.min(distance + 8, last)
        }
        return false
    }

    /// True if the bytes in `range` equal `text`; false if the range is not inside the span.
    @inlinable
    package func equal(_ range: Range<Int>, _ text: StaticString) -> Bool {
        matches(range, text, byte: { $0 }, word: { $0 })
    }

    /// True if the bytes in `range` equal `lowercase` (ASCII, given in lower case) without regard to case.
    @inlinable
    package func equalIgnoringCase(_ range: Range<Int>, _ lowercase: StaticString) -> Bool {
        matches(range, lowercase, byte: { ASCII.lowercased($0) }, word: { $0.lowercasedBytes })
    }

    /// True if the bytes in `range`, mapped one by one or eight at a time, equal `text`.
    @inlinable @inline(__always)
    func matches(
        _ range: Range<Int>,
        _ text: StaticString,
        byte: (UInt8) -> UInt8,
        word map: (UInt64) -> UInt64
    ) -> Bool {
        guard range.count == text.utf8CodeUnitCount, range.lowerBound >= 0, range.upperBound <= count else {
            return false
        }
        let start = unsafe text.utf8Start
        var offset = 0
        let last = range.count - 8
        while last >= 0 {
            // `offset` is at most the text's length less eight, and the range has the same length. The span checks its
            // own bounds.
            let expected = unsafe UnsafeRawPointer(start).loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            guard map(self.word(at: range.lowerBound + offset)) == UInt64(littleEndian: expected) else { return false }
            if offset == last { return true }
            offset = Swift.min(offset + 8, last)
        }
        while offset < range.count {
            // offset < utf8CodeUnitCount, checked above.
            guard unsafe byte(self[range.lowerBound + offset]) == start[offset] else { return false }
            offset += 1
        }
        return true
    }

    /// True if every byte in `range` is below 0x80.
    @inlinable
    package func isASCII(_ range: Range<Int>) -> Bool {
        for offset in range where self[offset] >= 0x80 { return false }
        return true
    }
}

extension UInt64 {
    /// The eight bytes with upper-case ASCII letters changed to lower case.
    @inlinable @inline(__always)
    package var lowercasedBytes: UInt64 {
        let high: UInt64 = 0x8080_8080_8080_8080
        let low = self & ~high
        // No sum carries into the next byte. The highest bit of the first sum marks bytes from `A` on, and of the
        // second sum bytes from `[` on.
        let isLetter = low &+ 0x3F3F_3F3F_3F3F_3F3F
        let isBeyond = low &+ 0x2525_2525_2525_2525
        let isUpper = isLetter & ~isBeyond & ~self & high
        return self | (isUpper >> 2)
    }
}

extension StaticString {
    /// The UTF-8 byte at `index`; nil outside `0..<utf8CodeUnitCount`.
    package func byte(at index: Int) -> UInt8? {
        guard hasPointerRepresentation, index >= 0, index < utf8CodeUnitCount else { return nil }
        // In bounds: the line above checks it. A literal's bytes live as long as the program.
        return unsafe utf8Start[index]
    }
}
