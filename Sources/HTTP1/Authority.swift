/// `uri-host [ ":" port ]` (RFC 9110 §4.2, §7.2; RFC 3986 §3.2), without user information.
package enum Authority {
    package enum Port {
        case optional
        case required
    }

    /// True where `range` of `bytes` is a host that is not empty, perhaps with a port of at most 65,535.
    package static func isValid(_ bytes: Span<UInt8>, _ range: Range<Int>, port: Port) -> Bool {
        guard range.lowerBound >= 0, range.upperBound <= bytes.count, !range.isEmpty else { return false }
        var index = range.lowerBound
        if bytes[index] == UInt8(ascii: "[") {
            while index < range.upperBound, bytes[index] != UInt8(ascii: "]") {
                index += 1
            }
            guard index < range.upperBound, IPLiteral.isValid(bytes, range.lowerBound + 1..<index) else {
                return false
            }
            index += 1
        } else {
            while index < range.upperBound, bytes[index] != UInt8(ascii: ":") {
                guard let next = afterNameByte(bytes, index, range.upperBound) else { return false }
                index = next
            }
            if index == range.lowerBound { return false }
        }
        if index == range.upperBound { return port == .optional }
        guard bytes[index] == UInt8(ascii: ":") else { return false }
        return isValidPort(bytes, index + 1..<range.upperBound, port)
    }

    /// The index after one byte (or percent-encoding) of a `reg-name`; nil where it is none. A comma, though RFC 3986
    /// lets it pass, shows a list of hosts, and is refused.
    private static func afterNameByte(_ bytes: Span<UInt8>, _ index: Int, _ end: Int) -> Int? {
        let byte = bytes[index]
        if byte == UInt8(ascii: "%") {
            guard end - index > 2, let high = ASCII.hexadecimalDigit(bytes[index + 1]),
                ASCII.hexadecimalDigit(bytes[index + 2]) != nil, high >= 2
            else { return nil }
            return index + 3
        }
        return URIGrammar.isNameByte(byte) && byte != UInt8(ascii: ",") ? index + 1 : nil
    }

    private static func isValidPort(_ bytes: Span<UInt8>, _ range: Range<Int>, _ port: Port) -> Bool {
        // RFC 3986 §3.2.3: the digits may be missing; RFC 9112 §3.2.3: not for CONNECT.
        if range.isEmpty { return port == .optional }
        guard range.count <= 5 else { return false }
        var value = 0
        for index in range {
            guard let digit = ASCII.digit(bytes[index]) else { return false }
            value = value * 10 + digit
        }
        return value <= 65_535 && (port == .optional || value > 0)
    }
}
