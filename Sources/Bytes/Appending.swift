/// Appends to memory that was reserved for all of it: a constant costs a few stores. What does not fit stops the process
/// before a byte is written outside, as every append to an `OutputSpan` does; the caller that reserves shows that it fits.
extension OutputSpan where Element == UInt8 {
    /// Appends constant text as it stands.
    @inlinable @inline(__always)
    package mutating func append(_ text: StaticString) {
        // A string literal's bytes live as long as the process, and its count is its own.
        unsafe append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends all bytes of a span, as one copy.
    @inlinable @inline(__always)
    package mutating func append(_ span: Span<UInt8>) {
        unsafe span.withUnsafeBytes { bytes in unsafe append(bytes) }
    }

    /// Appends a part of a span, which must lie inside it, as one copy.
    @inlinable @inline(__always)
    package mutating func append(_ span: Span<UInt8>, _ range: Range<Int>) {
        // `extracting` checks the range; the buffer is the part's own memory.
        append(span.extracting(range))
    }

    @inlinable @inline(__always)
    mutating func append(_ source: UnsafeRawBufferPointer) {
        precondition(source.count <= freeCapacity, "more bytes than were reserved")
        unsafe withUnsafeMutableBufferPointer { buffer, count in
            guard let base = buffer.baseAddress, let start = source.baseAddress else { return }
            // In bounds: `source.count` is at most what is free behind `count`. Source and target do not overlap, for
            // no other code can name memory that is being written.
            unsafe UnsafeMutableRawPointer(base + count).copyMemory(from: start, byteCount: source.count)
            count += source.count
        }
    }

    /// Appends a whole number in decimal: at most 20 bytes.
    package mutating func append(decimal value: Int) {
        if value < 0 { append(UInt8(ascii: "-")) }
        var digits = InlineArray<20, UInt8>(repeating: 0)
        var remaining = value.magnitude
        var first = 20
        repeat {
            // Two digits each time. A magnitude of 64 bits has at most 20.
            let pair = UInt8(truncatingIfNeeded: remaining % 100)
            first -= 2
            digits[first] = UInt8(ascii: "0") &+ pair / 10
            digits[first + 1] = UInt8(ascii: "0") &+ pair % 10
            remaining /= 100
        } while remaining > 0
        append(digits.span, (digits[first] == UInt8(ascii: "0") ? first + 1 : first)..<20)
    }

    /// Appends a number in lower-case hexadecimal without leading zeros: at most 16 bytes.
    package mutating func append(hexadecimal value: UInt64) {
        var shift = Swift.max(0, (63 - value.leadingZeroBitCount) / 4 * 4)
        while shift >= 0 {
            append(Hexadecimal.digit(UInt8(truncatingIfNeeded: value >> UInt64(shift))))
            shift -= 4
        }
    }
}

extension [UInt8] {
    /// Appends constant text as it stands.
    @inlinable @inline(__always)
    package mutating func append(_ text: StaticString) {
        // A string literal's bytes live as long as the process; its count is its own.
        unsafe append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends all bytes of a span, as one copy.
    @inlinable @inline(__always)
    package mutating func append(_ span: Span<UInt8>) {
        // The buffer is the span's own memory and count, read before the closure ends.
        unsafe span.withUnsafeBufferPointer { buffer in unsafe append(contentsOf: buffer) }
    }

    /// Appends a part of a span; a range outside of it appends nothing.
    @inlinable @inline(__always)
    package mutating func append(_ span: Span<UInt8>, _ range: Range<Int>) {
        guard range.lowerBound >= 0, range.upperBound <= span.count else { return }
        append(span.extracting(range))
    }
}
