/// Writing into memory that was reserved for all of it. What does not fit stops the process before a byte is written
/// outside, as every append to an `OutputSpan` does; whoever reserves shows that it fits.
extension OutputSpan where Element == UInt8 {
    /// Appends constant text as it stands.
    @inline(__always)
    mutating func append(_ text: StaticString) {
        // A StaticString's bytes are a constant of the program.
        unsafe append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends all bytes of a span, as one copy.
    @inline(__always)
    mutating func append(_ span: Span<UInt8>) {
        unsafe span.withUnsafeBytes { bytes in unsafe append(bytes) }
    }

    @inline(__always)
    private mutating func append(_ source: UnsafeRawBufferPointer) {
        precondition(source.count <= freeCapacity, "more bytes than were reserved")
        unsafe withUnsafeMutableBufferPointer { buffer, count in
            guard let base = buffer.baseAddress, let start = source.baseAddress else { return }
            // In bounds: `source.count` is at most what is free behind `count`. Source and target do not overlap, for
            // nobody else can name memory that is being written.
            unsafe UnsafeMutableRawPointer(base + count).copyMemory(from: start, byteCount: source.count)
            count += source.count
        }
    }
}
