extension Span where Element == UInt8 {
    /// True where the bytes in `range` are exactly `text` (ASCII).
    package func equal(_ range: Range<Int>, _ text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount, range.lowerBound >= 0, range.upperBound <= count else {
            return false
        }
        let start = unsafe text.utf8Start
        for offset in 0..<range.count {
            // offset < utf8CodeUnitCount, checked above.
            if unsafe self[range.lowerBound + offset] != start[offset] { return false }
        }
        return true
    }

    /// True where the bytes in `range` are `lowercase` (ASCII, given in lower case), the case of letters set aside.
    package func equalIgnoringCase(_ range: Range<Int>, _ lowercase: StaticString) -> Bool {
        guard range.count == lowercase.utf8CodeUnitCount, range.lowerBound >= 0, range.upperBound <= count else {
            return false
        }
        let start = unsafe lowercase.utf8Start
        if range.count >= 8 { return unsafe hasEqualWords(range, UnsafeRawPointer(start)) }
        for offset in 0..<range.count {
            // offset < utf8CodeUnitCount, checked above.
            let expected = unsafe start[offset]
            if ASCII.lowercased(self[range.lowerBound + offset]) != expected { return false }
        }
        return true
    }

    /// Compares at least eight bytes, eight at a time; the last eight overlap those before them.
    private func hasEqualWords(_ range: Range<Int>, _ lowercase: UnsafeRawPointer) -> Bool {
        let last = range.count - 8
        var offset = 0
        while true {
            // `offset` is at most the text's length, which equals the range's, less eight; the span checks its own.
            let expected = unsafe lowercase.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            guard word(at: range.lowerBound + offset).lowercasedBytes == expected else { return false }
            if offset == last { return true }
            offset = Swift.min(offset + 8, last)
        }
    }
}
