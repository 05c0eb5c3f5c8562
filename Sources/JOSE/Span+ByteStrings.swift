/// What is asked about strings of bytes, eight bytes at a time; the last eight overlap those before them.
extension Span<UInt8> {
    /// Whether the bytes in `range` are those of `other`, compared up to the first difference.
    package func areEqual(_ range: Range<Int>, to other: Span<UInt8>) -> Bool {
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

    /// A number made of the length and bytes of `range`, the same for the same bytes. Who knows the bytes can choose others
    /// of the same number.
    package func hash(of range: Range<Int>) -> UInt64 {
        var hash = UInt64(truncatingIfNeeded: range.count)
        if range.count < 8 {
            hash = (hash << 56 ^ shortWord(range)) &* 0x9E37_79B9_7F4A_7C15
            return hash ^ hash >> 32
        }
        let last = range.upperBound - 8
        var offset = range.lowerBound
        while true {
            hash = (hash ^ word(at: offset)) &* 0x9E37_79B9_7F4A_7C15
            hash ^= hash >> 32
            if offset == last { return hash }
            offset = Swift.min(offset + 8, last)
        }
    }

    /// Whether every byte in `range` is below 0x80.
    package func isASCII(_ range: Range<Int>) -> Bool {
        if range.count < 8 { return shortWord(range) & WordOfBytes.highBits == 0 }
        let last = range.upperBound - 8
        var offset = range.lowerBound
        while word(at: offset) & WordOfBytes.highBits == 0 {
            if offset == last { return true }
            offset = Swift.min(offset + 8, last)
        }
        return false
    }
}
