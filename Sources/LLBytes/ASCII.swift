@usableFromInline
package enum ASCII {
    @inlinable package static var tab: UInt8 { 0x09 }
    @inlinable package static var lineFeed: UInt8 { 0x0A }
    @inlinable package static var carriageReturn: UInt8 { 0x0D }
    @inlinable package static var space: UInt8 { 0x20 }

    /// The lower-case letter of an upper-case letter; any other byte stays unchanged.
    @inlinable
    package static func lowercased(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

    /// The value of a decimal digit; nil for any other byte.
    @inlinable
    package static func digit(_ byte: UInt8) -> Int? { byte &- 0x30 < 10 ? Int(byte &- 0x30) : nil }

    @inlinable
    package static func isAlphanumeric(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10 }

    /// True if a byte is unreserved in a URI (RFC 3986 section 2.3).
    package static func isUnreserved(_ byte: UInt8) -> Bool { isAlphanumeric(byte) || "-._~".utf8.contains(byte) }

    /// True if a byte is a visible ASCII character: neither a space nor a control character.
    @inlinable
    package static func isVisible(_ byte: UInt8) -> Bool { byte &- 0x21 < 0x5E }
}

package enum Hexadecimal {
    /// The value of a digit in either case; nil for any other byte.
    @inlinable
    package static func value(_ digit: UInt8) -> UInt8? {
        if digit &- 0x30 < 10 { return digit &- 0x30 }
        let letter = digit | 0x20
        return letter &- 0x61 < 6 ? letter &- 0x61 &+ 10 : nil
    }

    /// The hexadecimal digit of the lowest four bits.
    @inlinable
    package static func digit(_ value: UInt8, tenIs letter: UInt8 = UInt8(ascii: "a")) -> UInt8 {
        let value = value & 0x0F
        return value < 10 ? UInt8(ascii: "0") &+ value : letter &- 10 &+ value
    }

    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: bytes.flatMap { [digit($0 >> 4), digit($0)] }, as: UTF8.self)
    }

    /// The bytes that hexadecimal digits in either case encode; nil if the number of digits is odd or a byte is not a
    /// digit.
    package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 2) else { return nil }
        let digits = text.compactMap { value($0) }
        guard digits.count == text.count else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}

/// Decimal numbers of digits alone, without a sign or white space (`Int("+5")` would be 5).
package enum DecimalNumber {
    /// The number in `range` of `bytes`. It has 1 … 18 digits and no leading zero, except for the number 0 itself;
    /// anything else gives nil. 18 digits cannot overflow (RFC 9110 §8.6).
    package static func parse(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Int? {
        guard (1...18).contains(range.count) else { return nil }
        if range.count > 1, bytes[range.lowerBound] == UInt8(ascii: "0") { return nil }
        var value = 0
        for index in range {
            guard let digit = ASCII.digit(bytes[index]) else { return nil }
            value = value &* 10 &+ digit
        }
        return value
    }

    /// The number that `digits` spell, under the same rules.
    package static func parse(_ digits: some Collection<UInt8>) -> Int? {
        let digits = Array(digits)
        return parse(digits.span, digits.indices)
    }
}

/// Several bytes read as one value; the first byte is the lowest.
extension Span<UInt8> {
    @inlinable @inline(__always)
    package func word(at offset: Int) -> UInt64 {
        // In bounds: RawSpan checks that the eight bytes from `offset` lie inside. Every bit pattern is a valid UInt64,
        // as the unsafe call requires.
        unsafe UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// Fewer than eight bytes with zeros above them. The value does not depend on the offset.
    @inlinable @inline(__always)
    package func shortWord(_ range: Range<Int>) -> UInt64 {
        if count - range.lowerBound >= 8 {
            // The range has at most seven bytes, so fewer than 64 bits.
            let bitCount = UInt64(truncatingIfNeeded: range.count) &* 8
            return word(at: range.lowerBound) & ((1 &<< bitCount) &- 1)
        }
        var word: UInt64 = 0
        for (position, offset) in range.enumerated() { word |= UInt64(self[offset]) << UInt64(8 * position) }
        return word
    }

    @inlinable @inline(__always)
    package func vector16(at offset: Int) -> SIMD16<UInt8> {
        // RawSpan checks the bounds, and every bit pattern is a valid value.
        unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
    }

    /// The first offset at or after `start` with a byte that `marks` marks, or with fewer than sixteen bytes after it.
    @inlinable @inline(__always)
    package func skipUnmarked(from start: Int, _ marks: (SIMD16<UInt8>) -> SIMD2<UInt64>) -> Int {
        var offset = start
        // The offset is from 0 to `count`, so no difference or sum overflows.
        while count &- offset >= 16 {
            let found = marks(vector16(at: offset))
            if found[0] | found[1] != 0 { return offset &+ found.unmarkedCount }
            offset &+= 16
        }
        return offset
    }

    /// The first offset at or after `start` that holds `byte`; `count` if there is none.
    @inlinable
    package func firstOffset(of byte: UInt8, from start: Int) -> Int {
        let sought = SIMD16<UInt8>(repeating: byte)
        var offset = skipUnmarked(from: start) { ($0 .== sought).words }
        while offset < count, self[offset] != byte { offset += 1 }
        return offset
    }
}

/// The result of comparing sixteen bytes: a lane is all ones if its bytes match and all zeros if they do not.
extension SIMDMask<SIMD16<Int8>> {
    /// The lanes as two words; the first byte's lane is lowest.
    @inlinable @inline(__always)
    package var words: SIMD2<UInt64> {
        // Both types are 16 bytes of plain bits.
        unsafe unsafeBitCast(self, to: SIMD2<UInt64>.self)
    }
}

extension SIMD2<UInt64> {
    /// The number of bytes before the first byte that has a bit set, at most sixteen.
    @inlinable @inline(__always)
    package var unmarkedCount: Int {
        if self[0] != 0 { return UInt64(littleEndian: self[0]).trailingZeroBitCount / 8 }
        return 8 + UInt64(littleEndian: self[1]).trailingZeroBitCount / 8
    }
}

/// Comparison of byte strings. It stops at the first difference, so do not compare secrets with it.
extension Span<UInt8> {
    /// True if the bytes in `range`, which must lie inside the span, equal `other`.
    @inlinable
    package func equal(_ range: Range<Int>, _ other: Span<UInt8>) -> Bool {
        let part = extracting(range)
        guard part.count == other.count else { return false }
        var offset = 0
        while part.count &- offset >= 8 {
            guard part.word(at: offset) == other.word(at: offset) else { return false }
            offset &+= 8
        }
        while offset < part.count, part[offset] == other[offset] { offset &+= 1 }
        return offset == part.count
    }

    /// True if the bytes in `range` equal `text`; false if the range is not inside the span.
    @inlinable
    package func equal(_ range: Range<Int>, _ text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount, range.lowerBound >= 0, range.upperBound <= count else {
            return false
        }
        return unsafe equal(range, text.buffer.span)
    }

    /// True if the bytes in `range` equal `lowercase` (ASCII, given in lower case) without regard to case.
    @inlinable
    package func equalIgnoringCase(_ range: Range<Int>, _ lowercase: StaticString) -> Bool {
        guard range.count == lowercase.utf8CodeUnitCount, range.lowerBound >= 0, range.upperBound <= count else {
            return false
        }
        let (part, expected) = unsafe (extracting(range), lowercase.buffer.span)
        for offset in part.indices where part[offset] != expected[offset] {
            guard ASCII.lowercased(part[offset]) == expected[offset] else { return false }
        }
        return true
    }
}

extension StaticString {
    /// The UTF-8 bytes of a literal, which live as long as the program. The literal must be a text, not one scalar.
    @inlinable
    package var buffer: UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount)
    }

    /// The UTF-8 byte at `index`; nil outside `0..<utf8CodeUnitCount`.
    @inlinable
    package func byte(at index: Int) -> UInt8? { unsafe buffer.indices.contains(index) ? buffer[index] : nil }
}

/// Appends to memory that was reserved for the whole output, so that a constant costs a few stores. Every append to an
/// `OutputSpan` stops the process before it writes a byte outside the memory. The caller that reserves the memory must
/// show that the output fits.
extension OutputSpan where Element == UInt8 {
    @inlinable @inline(__always)
    package mutating func append(_ text: StaticString) { unsafe append(text.buffer) }

    @inlinable @inline(__always)
    package mutating func append(_ span: Span<UInt8>) { unsafe span.withUnsafeBufferPointer { unsafe append($0) } }

    /// Appends a part of a span, which must lie inside it.
    @inlinable @inline(__always)
    package mutating func append(_ span: Span<UInt8>, _ range: Range<Int>) { append(span.extracting(range)) }

    @inlinable @inline(__always)
    mutating func append(_ source: UnsafeBufferPointer<UInt8>) {
        precondition(source.count <= freeCapacity, "more bytes than were reserved")
        unsafe withUnsafeMutableBufferPointer { buffer, count in
            guard let base = buffer.baseAddress, let start = source.baseAddress else { return }
            // In bounds: `source.count` is at most the free space after `count`. Source and target do not overlap,
            // because no other code can name the memory that is being written.
            unsafe (base + count).initialize(from: start, count: source.count)
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

/// base64url without padding (RFC 4648 section 5, RFC 7515 section 2). Each value has exactly one accepted spelling.
package enum Base64URL {
    /// Decodes `range` of `text` into `buffer`. It replaces the buffer's content and keeps its memory.
    /// It refuses padding, bytes outside the alphabet, a length that no value has, and unused bits that are not zero
    /// (RFC 4648 sections 3.2, 3.3 and 3.5).
    /// - Returns: whether the text is strict base64url. The buffer is empty if it is not.
    package static func decode(_ text: Span<UInt8>, _ range: Range<Int>, into buffer: inout [UInt8]) -> Bool {
        buffer.removeAll(keepingCapacity: true)
        // A single leftover digit holds six bits, which is less than a byte.
        guard range.count % 4 != 1 else { return false }
        var isStrict = true
        buffer.append(addingCapacity: roomNeeded(range.count)) { (output: inout OutputSpan<UInt8>) in
            isStrict = decode(text, range, to: &output)
        }
        return isStrict
    }

    /// Decodes a part of `range` of `text`, which must be strict base64url, and appends it. Digits are decoded in
    /// groups of four, so up to two neighbouring bytes on each side are appended too.
    /// - Parameter bytes: The positions of the wanted bytes among all decoded bytes.
    /// - Returns: The positions of the wanted bytes in the buffer; nil if the text does not hold them, and then nothing
    ///   is appended.
    package static func append(
        _ bytes: Range<Int>,
        of text: Span<UInt8>,
        _ range: Range<Int>,
        to buffer: inout [UInt8]
    ) -> Range<Int>? {
        guard bytes.upperBound <= range.count * 3 / 4 else { return nil }
        let first = range.lowerBound + bytes.lowerBound / 3 * 4
        let end = min(range.upperBound, range.lowerBound + (bytes.upperBound + 2) / 3 * 4)
        let start = buffer.count + bytes.lowerBound % 3
        var isStrict = false
        buffer.append(addingCapacity: roomNeeded(end - first)) { (output: inout OutputSpan<UInt8>) in
            isStrict = decode(text, first..<max(first, end), to: &output)
        }
        return isStrict ? start..<start + bytes.count : nil
    }

    /// The greatest number of bytes written: six for each eight digits, then one word of which at most five bytes
    /// count.
    private static func roomNeeded(_ digitCount: Int) -> Int { digitCount / 8 * 6 + 8 }

    /// Appends the decoded bytes; nothing if the text is not strict. The output has room for `roomNeeded` bytes.
    private static func decode(_ text: Span<UInt8>, _ range: Range<Int>, to output: inout OutputSpan<UInt8>) -> Bool {
        let first = output.count
        output.append(repeating: 0, count: roomNeeded(range.count))
        var span = output.mutableSpan
        // Every store below is checked to be in bounds, and any bits are valid bytes.
        var bytes = unsafe span.mutableBytes
        var union: UInt32 = 0
        var rest = text.extracting(range)
        var written = first
        while rest.count >= 8 {
            bytes.storeBytes(of: read(rest, &union), toByteOffset: written, as: UInt64.self)
            written &+= 6
            rest = rest.extracting(droppingFirst: 8)
        }
        // The last zero to seven digits are filled up with digits of value zero.
        let bits = read(InlineArray<8, UInt8> { $0 < rest.count ? rest[$0] : UInt8(ascii: "A") }.span, &union)
        bytes.storeBytes(of: bits, toByteOffset: written, as: UInt64.self)
        let byteCount = rest.count * 6 / 8
        // The bits after the whole bytes are the unused bits and the zeros of the added digits.
        let isStrict = union < 1 << 24 && UInt64(bigEndian: bits) << UInt64(8 * byteCount) == 0
        output.removeLast(output.count - (isStrict ? written + byteCount : first))
        return isStrict
    }

    /// The six bytes that the first eight digits encode, and two zeros, in the order of memory.
    /// - Parameter union: gains all bits of the digits; 2²⁴ and above if a byte is no digit.
    @inline(__always)
    private static func read(_ digits: Span<UInt8>, _ union: inout UInt32) -> UInt64 {
        let front = group(digits[0], digits[1], digits[2], digits[3])
        let back = group(digits[4], digits[5], digits[6], digits[7])
        union |= front | back
        return (UInt64(front) << 40 | UInt64(back) << 16).bigEndian
    }

    @inline(__always)
    private static func group(_ first: UInt8, _ second: UInt8, _ third: UInt8, _ fourth: UInt8) -> UInt32 {
        bits[Int(first)] | bits[0x100 | Int(second)] | bits[0x200 | Int(third)] | bits[0x300 | Int(fourth)]
    }

    /// The bits that each byte stands for as the first digit of a group of four, then as the second, third and fourth.
    private static let bits: InlineArray<1_024, UInt32> = {
        // The eight bits above the 24 of a group mark a byte that is not a digit.
        var bits = InlineArray<1_024, UInt32>(repeating: 0xFF00_0000)
        for place in 0..<4 {
            for value in 0..<64 as Range<UInt32> {
                bits[place << 8 | Int(digit(value))] = value << UInt32(18 - 6 * place)
            }
        }
        return bits
    }()

    package static func append(encoding bytes: Span<UInt8>, to text: inout [UInt8]) {
        // An array without memory shares one with all others, and the standard library would write its count there.
        guard !bytes.isEmpty else { return }
        text.append(addingCapacity: (bytes.count * 4 + 2) / 3) { (output: inout OutputSpan<UInt8>) in
            for start in stride(from: 0, to: bytes.count, by: 3) {
                // Three bytes are four digits. The last one or two bytes are filled up with zeros.
                let count = min(3, bytes.count - start)
                var group = UInt32(bytes[start]) << 16
                if count > 1 { group |= UInt32(bytes[start + 1]) << 8 }
                if count > 2 { group |= UInt32(bytes[start + 2]) }
                output.append(digit(group >> 18))
                output.append(digit(group >> 12))
                if count > 1 { output.append(digit(group >> 6)) }
                if count > 2 { output.append(digit(group)) }
            }
        }
    }

    private static func digit(_ value: UInt32) -> UInt8 {
        // In bounds: the alphabet has 64 digits, and the value is below 64.
        unsafe alphabet.utf8Start[Int(value & 63)]
    }

    private static let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
}
