/// Reads and writes `application/x-www-form-urlencoded` text (RFC 6749 appendix B): a query or the body of a form.
package struct FormParameters {
    /// The greatest number of parameters. A form has few, but a query may contain many of another party.
    package static let countLimit = 1_024

    private var parameters: [(name: [UInt8], value: [UInt8])] = []

    /// - Parameter last: The name of a parameter that ends the reading: it and all parameters after it are ignored.
    /// - Returns: nil if the text has a broken escape or more than ``countLimit`` parameters.
    package init?(_ bytes: Span<UInt8>, _ range: Range<Int>, endingAt last: StaticString? = nil) {
        let text = bytes.extracting(range)
        var start = 0
        while start < text.count {
            let end = text.firstOffset(of: UInt8(ascii: "&"), from: start)
            if end > start {
                let parameter = text.extracting(start..<end)
                let equals = parameter.firstOffset(of: UInt8(ascii: "="), from: 0)
                if let last, parameter.equal(0..<equals, last) { return }
                guard parameters.count < Self.countLimit,
                    let name = PercentEncoding.decode(parameter, 0..<equals, isForm: true),
                    let value = PercentEncoding.decode(
                        parameter,
                        min(equals + 1, parameter.count)..<parameter.count,
                        isForm: true
                    )
                else { return nil }
                parameters.append((name, value))
            }
            start = end + 1
        }
    }

    package var count: Int { parameters.count }

    package var hasRepeatedName: Bool { Set(parameters.map(\.name)).count < parameters.count }

    package func count(of name: StaticString) -> Int { parameters.count { $0.name.span.equal($0.name.indices, name) } }

    /// The name of the first parameter outside `known`; nil if there is none.
    package func firstName(except known: [String]) -> String? {
        parameters.lazy.map { String(decoding: $0.name, as: UTF8.self) }.first { !known.contains($0) }
    }

    package func first(_ name: StaticString) -> [UInt8]? {
        parameters.first { $0.name.span.equal($0.name.indices, name) }?.value
    }

    /// The values by name, as text; the last one of a repeated name.
    package var texts: [String: String] {
        let pairs = parameters.map {
            (String(decoding: $0.name, as: UTF8.self), String(decoding: $0.value, as: UTF8.self))
        }
        return Dictionary(pairs) { $1 }
    }

    package static func encode(_ parameters: [(name: String, value: String)]) -> String {
        let pairs = parameters.map { "\(PercentEncoding.encode($0.name))=\(PercentEncoding.encode($0.value))" }
        return pairs.joined(separator: "&")
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
        output.append(Hexadecimal.digit(byte >> 4, tenIs: UInt8(ascii: "A")))
        output.append(Hexadecimal.digit(byte, tenIs: UInt8(ascii: "A")))
    }
}

extension Base64URL {
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        append(encoding: Array(bytes).span, to: &text)
        return String(decoding: text, as: UTF8.self)
    }
}

/// base64 with padding (RFC 4648 section 4). Each value has exactly one accepted spelling.
package enum Base64 {
    /// Decodes `range` of `text`; nil if padding is missing, a byte is outside the alphabet, or unused bits are not
    /// zero.
    package static func decode(_ text: Span<UInt8>, _ range: Range<Int>) -> [UInt8]? {
        guard range.count.isMultiple(of: 4) else { return nil }
        let digits = withoutPadding(text, range).map { exchanged(text[$0]) }
        var decoded: [UInt8] = []
        return Base64URL.decode(digits.span, digits.indices, into: &decoded) ? decoded : nil
    }

    /// `range` without the padding that completes its last four digits. A range with any other padding is returned
    /// unchanged.
    package static func withoutPadding(_ text: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
        guard range.count.isMultiple(of: 4) else { return range }
        var end = range.upperBound
        while end > range.lowerBound, range.upperBound - end < 2, text[end - 1] == UInt8(ascii: "=") { end -= 1 }
        return range.lowerBound..<end
    }

    package static func encode(_ bytes: [UInt8]) -> String {
        var text = Base64URL.encode(bytes).utf8.map(exchanged)
        while !text.count.isMultiple(of: 4) { text.append(UInt8(ascii: "=")) }
        return String(decoding: text, as: UTF8.self)
    }

    /// The digit of base64url for one of base64, and the reverse. A digit that base64 lacks becomes one that base64url
    /// lacks.
    private static func exchanged(_ digit: UInt8) -> UInt8 {
        switch digit {
        case UInt8(ascii: "+"): UInt8(ascii: "-")
        case UInt8(ascii: "-"): UInt8(ascii: "+")
        case UInt8(ascii: "/"): UInt8(ascii: "_")
        case UInt8(ascii: "_"): UInt8(ascii: "/")
        default: digit
        }
    }
}

extension DecimalNumber {
    /// The number as sentences write it, such as 32,768.
    package static func grouped(_ number: Int) -> String {
        var digits = Array(String(number.magnitude))
        for place in stride(from: digits.count - 3, to: 0, by: -3) { digits.insert(",", at: place) }
        return (number < 0 ? "-" : "") + String(digits)
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
