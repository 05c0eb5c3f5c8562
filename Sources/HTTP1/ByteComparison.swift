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
        for offset in 0..<range.count {
            // offset < utf8CodeUnitCount, checked above.
            let expected = unsafe start[offset]
            if ASCII.lowercased(self[range.lowerBound + offset]) != expected { return false }
        }
        return true
    }
}
