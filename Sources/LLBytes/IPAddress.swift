/// Internet addresses as text.
package enum IPAddress {
    /// The four bytes of an IPv4 address; nil for anything else. The text is four decimal numbers 0 … 255 without
    /// leading zeros (RFC 3986 section 3.2.2, `dec-octet`).
    package static func ipv4(_ text: Span<UInt8>, _ range: Range<Int>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var start = range.lowerBound
        for index in range.lowerBound...range.upperBound
        where index == range.upperBound || text[index] == UInt8(ascii: ".") {
            guard let value = DecimalNumber.parse(text, start..<index), value <= 255 else { return nil }
            bytes.append(UInt8(value))
            start = index + 1
        }
        return bytes.count == 4 ? bytes : nil
    }

    /// The 16 bytes of an IPv6 address (RFC 4291 section 2.2); nil for anything else. The text is eight groups of one
    /// to four hexadecimal digits. One run of zero groups may be `::`, and the last two groups may be an IPv4 address.
    package static func ipv6(_ text: Span<UInt8>, _ range: Range<Int>) -> [UInt8]? {
        let end = range.upperBound
        var bytes: [UInt8] = []
        var zeros: Int?
        var index = range.lowerBound
        while index < end {
            if text[index] == UInt8(ascii: ":") {
                if index + 1 < end, text[index + 1] == UInt8(ascii: ":") {
                    guard zeros == nil else { return nil }
                    zeros = bytes.count
                    index += 2
                    if index == end { break }
                } else {
                    // A single colon separates two groups, so it is never the first or the last byte.
                    guard index > range.lowerBound, index + 1 < end else { return nil }
                    index += 1
                }
            } else if index > range.lowerBound, text[index - 1] != UInt8(ascii: ":") {
                return nil
            }
            let start = index
            var group = 0
            while index < end, index - start < 5, let digit = Hexadecimal.value(text[index]) {
                group = group << 4 | Int(digit)
                index += 1
            }
            if index < end, text[index] == UInt8(ascii: ".") {
                guard let tail = ipv4(text, start..<end) else { return nil }
                bytes += tail
                break
            }
            guard (1...4).contains(index - start) else { return nil }
            bytes += [UInt8(group >> 8), UInt8(group & 0xFF)]
        }
        guard let zeros else { return bytes.count == 16 ? bytes : nil }
        guard bytes.count <= 14 else { return nil }
        bytes.insert(contentsOf: repeatElement(0, count: 16 - bytes.count), at: zeros)
        return bytes
    }
}
