extension StaticString {
    /// The UTF-8 byte at `index`, which must be below `utf8CodeUnitCount`; nil otherwise.
    package func byte(at index: Int) -> UInt8? {
        guard hasPointerRepresentation, index >= 0, index < utf8CodeUnitCount else { return nil }
        // In bounds by the line above; a literal's bytes live as long as the program.
        return unsafe utf8Start[index]
    }

    /// Whether these are exactly the bytes of `span` in `range`, which must lie inside it.
    @inline(__always)
    package func matches(_ span: Span<UInt8>, _ range: Range<Int>) -> Bool {
        guard hasPointerRepresentation, range.count == utf8CodeUnitCount else { return false }
        let start = unsafe utf8Start
        if range.count >= 8 { return unsafe hasEqualWords(UnsafeRawPointer(start), span, range) }
        for index in 0..<range.count {
            // `index` is below the literal's length, which equals the range's; the span checks its own bound.
            guard unsafe start[index] == span[range.lowerBound + index] else { return false }
        }
        return true
    }

    /// Compares at least eight bytes, eight at a time; the last eight overlap those before them.
    private func hasEqualWords(_ start: UnsafeRawPointer, _ span: Span<UInt8>, _ range: Range<Int>) -> Bool {
        var index = 0
        let last = range.count - 8
        while true {
            // `index` is at most the literal's length less eight, which equals the range's; the span checks its own
            // bounds.
            let word = unsafe start.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            guard UInt64(littleEndian: word) == span.word(at: range.lowerBound + index) else { return false }
            if index == last { return true }
            index = min(index + 8, last)
        }
    }
}
