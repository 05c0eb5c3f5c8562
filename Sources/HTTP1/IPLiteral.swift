/// What may stand between brackets in an authority (RFC 3986 §3.2.2): an IPv6 address or an address of the future.
enum IPLiteral {
    static func isValid(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        guard !range.isEmpty else { return false }
        return ASCII.lowercased(bytes[range.lowerBound]) == UInt8(ascii: "v")
            ? isFuture(bytes, range) : isIPv6(bytes, withoutZone(bytes, range))
    }

    /// RFC 6874 §2: a zone after `%25`, of at least one byte; the range unchanged where there is no such zone.
    private static func withoutZone(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
        guard let percent = range.first(where: { bytes[$0] == UInt8(ascii: "%") }), range.upperBound - percent > 3,
            bytes.equal(percent..<percent + 3, "%25")
        else { return range }
        for index in percent + 3..<range.upperBound where !URIGrammar.isNameByte(bytes[index]) {
            return range
        }
        return range.lowerBound..<percent
    }

    /// `"v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" )`
    private static func isFuture(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        var index = range.lowerBound + 1
        while index < range.upperBound, ASCII.hexadecimalDigit(bytes[index]) != nil {
            index += 1
        }
        guard index > range.lowerBound + 1, index < range.upperBound, bytes[index] == UInt8(ascii: ".") else {
            return false
        }
        guard index + 1 < range.upperBound else { return false }
        for rest in index + 1..<range.upperBound {
            guard URIGrammar.isNameByte(bytes[rest]) || bytes[rest] == UInt8(ascii: ":") else { return false }
        }
        return true
    }

    /// Eight groups of one to four hexadecimal digits; one run of groups may be `::`, and the last two groups may be an
    /// IPv4 address.
    private static func isIPv6(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        var index = range.lowerBound
        var groups = 0
        var compressed = false
        while index < range.upperBound {
            if bytes[index] == UInt8(ascii: ":") {
                let isDouble = index + 1 < range.upperBound && bytes[index + 1] == UInt8(ascii: ":")
                if isDouble {
                    if compressed { return false }
                    compressed = true
                    index += 2
                    if index == range.upperBound { break }
                } else {
                    // A single colon stands between two groups, never at the start or the end.
                    guard groups > 0, index > range.lowerBound, index + 1 < range.upperBound else { return false }
                    index += 1
                }
            } else if index > range.lowerBound, bytes[index - 1] != UInt8(ascii: ":") {
                return false
            }
            let start = index
            while index < range.upperBound, index - start < 5, ASCII.hexadecimalDigit(bytes[index]) != nil {
                index += 1
            }
            if index < range.upperBound, bytes[index] == UInt8(ascii: ".") {
                guard isIPv4(bytes, start..<range.upperBound) else { return false }
                groups += 2
                break
            }
            guard (1...4).contains(index - start) else { return false }
            groups += 1
        }
        return compressed ? groups <= 7 : groups == 8
    }

    /// Four decimal numbers 0 … 255 without leading zeros.
    private static func isIPv4(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        var index = range.lowerBound
        for part in 0..<4 {
            if part > 0 {
                guard index < range.upperBound, bytes[index] == UInt8(ascii: ".") else { return false }
                index += 1
            }
            let start = index
            var value = 0
            while index < range.upperBound, index - start < 3, let digit = ASCII.digit(bytes[index]) {
                value = value * 10 + digit
                index += 1
            }
            guard index > start, value <= 255 else { return false }
            if index - start > 1, bytes[start] == UInt8(ascii: "0") { return false }
        }
        return index == range.upperBound
    }
}
