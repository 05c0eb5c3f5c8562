extension [UInt8] {
    /// Appends all bytes of a span, as one copy.
    @inline(__always)
    package mutating func append(_ span: Span<UInt8>) {
        // The buffer is the span's own memory and count, read before the closure ends.
        unsafe span.withUnsafeBufferPointer { buffer in unsafe append(contentsOf: buffer) }
    }

    /// Appends a part of a span; a range outside of it appends nothing, which no verdict's range is.
    @inline(__always)
    package mutating func append(_ span: Span<UInt8>, _ range: Range<Int>) {
        guard range.lowerBound >= 0, range.upperBound <= span.count else { return }
        append(span.extracting(range))
    }
}
