extension OutputSpan where Element == UInt8 {
    /// Appends a part of a span as one copy. The range must lie inside it and the part fit into what is free.
    @inline(__always)
    mutating func append(_ span: Span<UInt8>, _ range: Range<Int>) {
        precondition(range.count <= freeCapacity, "more bytes than were reserved")
        unsafe span.extracting(range).withUnsafeBytes { part in
            unsafe withUnsafeMutableBufferPointer { buffer, count in
                guard let base = buffer.baseAddress, let start = part.baseAddress else { return }
                // In bounds: `extracting` checked the range, and its length is at most what is free behind `count`.
                // Source and target do not overlap: nobody else can name memory that is being written.
                unsafe UnsafeMutableRawPointer(base + count).copyMemory(from: start, byteCount: part.count)
                count += part.count
            }
        }
    }
}
