internal import Bytes

extension SocketAddress {
    /// Reads `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080` (IPv4 loopback); nil for anything else.
    package init?(_ text: String) {
        guard let colon = text.utf8.lastIndex(of: UInt8(ascii: ":")) else { return nil }
        let portText = text[text.index(after: colon)...]
        guard let port = Self.decimal(portText.utf8, atMost: 65_535) else { return nil }
        var host = text[..<colon]
        if host.utf8.first == UInt8(ascii: "[") {
            guard host.utf8.last == UInt8(ascii: "]"), host.utf8.count > 2 else { return nil }
            host = host.dropFirst().dropLast()
            guard host.utf8.contains(UInt8(ascii: ":")) else { return nil }
        } else if host.utf8.contains(UInt8(ascii: ":")) {
            return nil
        }
        guard let bytes = Self.addressBytes(String(host)) else { return nil }
        self.init(bytes: bytes, port: UInt16(port))
    }

    /// Reads an address literal (`127.0.0.1`, `::1`, without brackets) or `localhost`; nil for anything else.
    package static func addressBytes(_ host: String) -> [UInt8]? {
        if host == "localhost" { return [127, 0, 0, 1] }
        if host.utf8.contains(UInt8(ascii: ":")) { return ipv6(host) }
        return ipv4(host[...])
    }

    /// Four decimal numbers 0 … 255 without leading zeros (RFC 3986 §3.2.2 `dec-octet`).
    private static func ipv4(_ text: Substring) -> [UInt8]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bytes: [UInt8] = []
        for part in parts {
            guard let value = decimal(part.utf8, atMost: 255) else { return nil }
            bytes.append(UInt8(value))
        }
        return bytes
    }

    /// RFC 4291 §2.2: eight groups of hexadecimal digits, one run of zeros as `::`, perhaps IPv4 at the end.
    private static func ipv6(_ text: String) -> [UInt8]? {
        let halves = splitAtDoubleColon(text)
        guard let front = groups(halves.front, mayEndInIPv4: halves.back == nil) else { return nil }
        guard let backText = halves.back else { return front.count == 16 ? front : nil }
        guard let back = groups(backText, mayEndInIPv4: true), front.count + back.count <= 14 else { return nil }
        return front + [UInt8](repeating: 0, count: 16 - front.count - back.count) + back
    }

    private static func splitAtDoubleColon(_ text: String) -> (front: Substring, back: Substring?) {
        var index = text.startIndex
        while index < text.endIndex {
            let next = text.index(after: index)
            if text[index] == ":", next < text.endIndex, text[next] == ":" {
                return (text[..<index], text[text.index(after: next)...])
            }
            index = next
        }
        return (text[...], nil)
    }

    private static func groups(_ text: Substring, mayEndInIPv4: Bool) -> [UInt8]? {
        if text.isEmpty { return [] }
        var bytes: [UInt8] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (position, part) in parts.enumerated() {
            if mayEndInIPv4, position == parts.count - 1, part.contains(".") {
                guard let tail = ipv4(part) else { return nil }
                bytes += tail
            } else {
                guard let value = hexadecimal(part.utf8) else { return nil }
                bytes += [UInt8(value >> 8), UInt8(value & 0xFF)]
            }
        }
        return bytes.count <= 16 ? bytes : nil
    }

    private static func decimal(_ digits: some Collection<UInt8>, atMost limit: Int) -> Int? {
        let digits = Array(digits)
        guard let value = DecimalNumber.parse(digits.span, digits.indices), value <= limit else { return nil }
        return value
    }

    private static func hexadecimal(_ digits: some Collection<UInt8>) -> Int? {
        guard (1...4).contains(digits.count) else { return nil }
        var value = 0
        for digit in digits {
            guard let digit = Hexadecimal.value(digit) else { return nil }
            value = value << 4 | Int(digit)
        }
        return value
    }

    /// The address without its port, in its usual short form (RFC 5952 for IPv6).
    package var host: String {
        if bytes.count == 4 { return bytes.map { String($0) }.joined(separator: ".") }
        let groups = stride(from: 0, to: 16, by: 2).map { Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]) }
        guard let zeros = Self.longestZeroRun(groups) else {
            return groups.map { String($0, radix: 16) }.joined(separator: ":")
        }
        let front = groups[..<zeros.lowerBound].map { String($0, radix: 16) }.joined(separator: ":")
        let back = groups[zeros.upperBound...].map { String($0, radix: 16) }.joined(separator: ":")
        return front + "::" + back
    }

    /// The first longest run of at least two zero groups (RFC 5952 §4.2).
    private static func longestZeroRun(_ groups: [Int]) -> Range<Int>? {
        var best: Range<Int>?
        var start = 0
        while start < groups.count {
            var end = start
            while end < groups.count, groups[end] == 0 { end += 1 }
            if end - start >= 2, end - start > (best?.count ?? 0) { best = start..<end }
            start = max(end, start + 1)
        }
        return best
    }
}
