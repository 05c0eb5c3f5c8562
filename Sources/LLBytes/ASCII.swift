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

    /// The lower-case digit of the lowest four bits.
    @inlinable
    package static func digit(_ value: UInt8) -> UInt8 {
        let value = value & 0x0F
        return value < 10 ? UInt8(ascii: "0") &+ value : UInt8(ascii: "a") &- 10 &+ value
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

    /// The number as sentences write it, such as 32,768.
    package static func grouped(_ number: Int) -> String {
        var text = ""
        for (index, digit) in String(number).reversed().enumerated() {
            if index > 0, index % 3 == 0, digit != "-" { text = "," + text }
            text = String(digit) + text
        }
        return text
    }

    /// True for an id as Facebook writes it: a 64-bit number above 0 in 1 to 20 digits, without a leading zero.
    package static func isIdentifier(_ digits: some Collection<UInt8>) -> Bool {
        (1...20).contains(digits.count) && digits.first != UInt8(ascii: "0")
            && digits.allSatisfy { ASCII.digit($0) != nil }
    }
}

package enum PermissionName {
    /// The form of a name, for messages.
    package static let shape = "1 to 64 of [a-z_], words with a full stop between them"

    /// True for a name of that form, such as `user_actions.fitness`. A full stop only separates two words, so a name is
    /// never `.` or `..`, which would change a path.
    package static func isValid(_ text: String) -> Bool {
        let words = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return (1...64).contains(text.utf8.count) && words.allSatisfy { !$0.isEmpty }
            && words.joined().allSatisfy { $0 &- 0x61 < 26 || $0 == UInt8(ascii: "_") }
    }
}

/// Percent-encoding (RFC 3986 section 2.1).
package enum PercentEncoding {
    /// The byte that the three bytes from `index` on encode; nil unless they are `%` and two hexadecimal digits before
    /// `end`.
    package static func byte(_ bytes: Span<UInt8>, at index: Int, before end: Int) -> UInt8? {
        guard end - index > 2, bytes[index] == UInt8(ascii: "%"), let high = Hexadecimal.value(bytes[index + 1]),
            let low = Hexadecimal.value(bytes[index + 2])
        else { return nil }
        return high << 4 | low
    }

    /// Decodes `range` of `bytes`; nil if a `%` is not followed by two hexadecimal digits.
    /// - Parameter isForm: whether `+` means a space (`application/x-www-form-urlencoded`).
    package static func decode(_ bytes: Span<UInt8>, _ range: Range<Int>, isForm: Bool = false) -> [UInt8]? {
        let text = bytes.extracting(range)
        var decoded: [UInt8] = []
        decoded.reserveCapacity(text.count)
        var index = 0
        var percent = text.firstOffset(of: UInt8(ascii: "%"), from: 0)
        var plus = isForm ? text.firstOffset(of: UInt8(ascii: "+"), from: 0) : text.count
        while true {
            let end = min(percent, plus)
            decoded.append(text, index..<end)
            guard end < text.count else { return decoded }
            if end == plus {
                decoded.append(ASCII.space)
                index = end + 1
                plus = text.firstOffset(of: UInt8(ascii: "+"), from: index)
            } else {
                guard let byte = byte(text, at: end, before: text.count) else { return nil }
                decoded.append(byte)
                index = end + 3
                percent = text.firstOffset(of: UInt8(ascii: "%"), from: index)
            }
        }
    }

    package static func encode(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 { if ASCII.isUnreserved(byte) { bytes.append(byte) } else { append(byte, to: &bytes) } }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends `%` and the byte's two digits, in upper case (RFC 3986 section 2.1).
    package static func append(_ byte: UInt8, to bytes: inout [UInt8]) {
        bytes.append(addingCapacity: 3) { (output: inout OutputSpan<UInt8>) in append(byte, to: &output) }
    }

    /// Appends the same three bytes to memory that has room for them.
    package static func append(_ byte: UInt8, to output: inout OutputSpan<UInt8>) {
        output.append(UInt8(ascii: "%"))
        output.append(digit(byte >> 4))
        output.append(digit(byte & 0x0F))
    }

    private static func digit(_ half: UInt8) -> UInt8 {
        half < 10 ? UInt8(ascii: "0") + half : UInt8(ascii: "A") - 10 + half
    }
}
