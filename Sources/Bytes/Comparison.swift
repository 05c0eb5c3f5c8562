/// Comparison of byte strings up to the first difference, eight bytes at a time; the last eight overlap those before
/// them. Secrets are compared elsewhere, in constant time.
extension Span<UInt8> {
    /// Whether the bytes in `range`, which must lie inside, are those of `other`.
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

    /// Whether the bytes in `range` are exactly those of `text`; false where the range is not inside.
    @inlinable
    package func equal(_ range: Range<Int>, _ text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount, range.lowerBound >= 0, range.upperBound <= count else {
            return false
        }
        let start = unsafe text.utf8Start
        if range.count < 8 {
            for offset in 0..<range.count {
                // offset < utf8CodeUnitCount, checked above.
                guard unsafe self[range.lowerBound + offset] == start[offset] else { return false }
            }
            return true
        }
        return unsafe hasWords(of: UnsafeRawPointer(start), range) { $0 }
    }

    /// Whether the bytes in `range` are `lowercase` (ASCII, given in lower case), the case of letters set aside.
    @inlinable
    package func equalIgnoringCase(_ range: Range<Int>, _ lowercase: StaticString) -> Bool {
        guard range.count == lowercase.utf8CodeUnitCount, range.lowerBound >= 0, range.upperBound <= count else {
            return false
        }
        let start = unsafe lowercase.utf8Start
        if range.count < 8 {
            for offset in 0..<range.count {
                // offset < utf8CodeUnitCount, checked above.
                guard unsafe ASCII.lowercased(self[range.lowerBound + offset]) == start[offset] else { return false }
            }
            return true
        }
        return unsafe hasWords(of: UnsafeRawPointer(start), range) { $0.lowercasedBytes }
    }

    /// Whether the words of `range`, at least eight bytes, are those at `start` once they are mapped.
    @inlinable @inline(__always)
    func hasWords(of start: UnsafeRawPointer, _ range: Range<Int>, mapped: (UInt64) -> UInt64) -> Bool {
        let last = range.count - 8
        var offset = 0
        while true {
            // `offset` is at most the text's length, which equals the range's, less eight; the span checks its own.
            let expected = unsafe UInt64(littleEndian: start.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            guard mapped(word(at: range.lowerBound + offset)) == expected else { return false }
            if offset == last { return true }
            offset = Swift.min(offset + 8, last)
        }
    }

    /// Whether every byte in `range` is below 0x80.
    @inlinable
    package func isASCII(_ range: Range<Int>) -> Bool {
        for offset in range where self[offset] >= 0x80 { return false }
        return true
    }
}

extension UInt64 {
    /// The eight bytes with upper-case ASCII letters in lower case.
    @inlinable @inline(__always)
    package var lowercasedBytes: UInt64 {
        let high: UInt64 = 0x8080_8080_8080_8080
        let low = self & ~high
        // No sum leaves its byte. The highest bit of one tells whether the byte is `A` or above, of the other `[`.
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
        // In bounds by the line above; a literal's bytes live as long as the program.
        return unsafe utf8Start[index]
    }
}
