/// Appends to memory that was reserved for the whole output, so that a constant costs a few stores. Every append to an
/// `OutputSpan` stops the process before it writes a byte outside the memory. The caller that reserves the memory must
/// show that the output fits.
extension OutputSpan where Element == UInt8 {
    @inlinable @inline(__always)
    package mutating func append(_ text: StaticString) { unsafe append(UnsafeRawBufferPointer(text.buffer)) }

    @inlinable @inline(__always)
    package mutating func append(_ span: Span<UInt8>) { unsafe span.withUnsafeBytes { bytes in unsafe append(bytes) } }

    /// Appends a part of a span, which must lie inside it.
    @inlinable @inline(__always)
    package mutating func append(_ span: Span<UInt8>, _ range: Range<Int>) { append(span.extracting(range)) }

    @inlinable @inline(__always)
    mutating func append(_ source: UnsafeRawBufferPointer) {
        precondition(source.count <= freeCapacity, "more bytes than were reserved")
        unsafe withUnsafeMutableBufferPointer { buffer, count in
            guard let base = buffer.baseAddress, let start = source.baseAddress else { return }
            // In bounds: `source.count` is at most the free space after `count`. Source and target do not overlap,
            // because no other code can name the memory that is being written.
            unsafe UnsafeMutableRawPointer(base + count).copyMemory(from: start, byteCount: source.count)
            count += source.count
        }
    }

    package mutating func append(decimal value: Int) {
        if value < 0 { append(UInt8(ascii: "-")) }
        var digits = InlineArray<20, UInt8>(repeating: 0)
        var remaining = value.magnitude
        var first = 20
        repeat {
            first -= 1
            digits[first] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: remaining % 10)
            remaining /= 10
        } while remaining > 0
        append(digits.span, first..<20)
    }

    /// Appends a number in lower-case hexadecimal without leading zeros, which takes at most 16 bytes.
    package mutating func append(hexadecimal value: UInt64) {
        var shift = Swift.max(0, (63 - value.leadingZeroBitCount) / 4 * 4)
        while shift >= 0 {
            append(Hexadecimal.digit(UInt8(truncatingIfNeeded: value >> UInt64(shift))))
            shift -= 4
        }
    }
}

extension [UInt8] {
    @inlinable @inline(__always)
    package mutating func append(_ text: StaticString) { unsafe append(contentsOf: text.buffer) }

    @inlinable @inline(__always)
    package mutating func append(_ span: Span<UInt8>) {
        // The buffer is the span's own memory and count, and is read before the closure ends.
        unsafe span.withUnsafeBufferPointer { buffer in unsafe append(contentsOf: buffer) }
    }

    /// Appends a part of a span; a range outside the span appends nothing.
    @inlinable @inline(__always)
    package mutating func append(_ span: Span<UInt8>, _ range: Range<Int>) {
        guard range.lowerBound >= 0, range.upperBound <= span.count else { return }
        append(span.extracting(range))
    }
}

extension String {
    /// The UTF-8 that the closure writes, at most `capacity` bytes, in one allocation.
    package init(capacity: Int, _ write: (inout OutputSpan<UInt8>) -> Void) {
        unsafe self.init(unsafeUninitializedCapacity: capacity) { buffer in
            // The span checks each write against the buffer's own count, and is finalized for the same buffer.
            var output = unsafe OutputSpan(buffer: buffer, initializedCount: 0)
            write(&output)
            return unsafe output.finalize(for: buffer)
        }
    }
}
