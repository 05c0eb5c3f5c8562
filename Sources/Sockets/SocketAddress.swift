internal import Bytes
internal import CSystemCalls

/// An IPv4 or IPv6 address with a port.
package struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address bytes in network order: 4 for IPv4, 16 for IPv6.
    package let bytes: [UInt8]
    /// 0 … 65535; 0 lets the system choose.
    package let port: UInt16
    /// The IPv6 scope (interface index) of a link-local address, else 0.
    package let scope: UInt32

    /// True where the address is IPv6.
    package var isIPv6: Bool { bytes.count == 16 }

    /// An address of 4 or 16 bytes; nil for any other number.
    package init?(bytes: [UInt8], port: UInt16, scope: UInt32 = 0) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        self.bytes = bytes
        self.port = port
        self.scope = scope
    }

    init(_ system: platform_address) {
        let all = Self.array(system)
        bytes = system.is_ipv6 != 0 ? all : Array(all.prefix(4))
        port = system.port
        scope = system.scope
    }

    /// 127.0.0.1 with a port.
    package static func loopback(port: UInt16) -> SocketAddress {
        SocketAddress(validated: [127, 0, 0, 1], port: port)
    }

    /// ::1 with a port.
    package static func loopbackIPv6(port: UInt16) -> SocketAddress {
        SocketAddress(validated: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], port: port)
    }

    private init(validated bytes: [UInt8], port: UInt16) {
        self.bytes = bytes
        self.port = port
        scope = 0
    }

    /// True for 127.0.0.0/8, ::1 and ::ffff:127.0.0.0/104.
    package var isLoopback: Bool {
        if bytes.count == 4 { return bytes[0] == 127 }
        if bytes.prefix(15).allSatisfy({ $0 == 0 }) { return bytes[15] == 1 }
        return bytes.prefix(10).allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF && bytes[12] == 127
    }

    /// Whether only one of both can be listened on: they share a port, and an address, of which 0.0.0.0 and :: are all.
    /// No listener on an IPv6 address takes IPv4.
    package func collides(with other: SocketAddress) -> Bool {
        guard port != 0, port == other.port, isIPv6 == other.isIPv6 else { return false }
        return self == other || [self, other].contains { $0.bytes.allSatisfy { $0 == 0 } }
    }

    /// The same address with another port.
    package func with(port: UInt16) -> SocketAddress {
        SocketAddress(bytes: bytes, port: port, scope: scope) ?? self
    }

    var system: platform_address {
        var system = platform_address()
        system.port = port
        system.scope = scope
        system.is_ipv6 = isIPv6 ? 1 : 0
        Self.fill(&system, bytes)
        return system
    }

    /// `127.0.0.1:8080` or `[::1]:8080`.
    package var description: String {
        isIPv6 ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}

extension SocketAddress {
    /// The 16 bytes of the C structure, which Swift sees as a tuple.
    private static func array(_ system: platform_address) -> [UInt8] {
        var copy = system.address
        // The tuple is 16 UInt8 without padding, so its bytes are the address; they are copied at once.
        return unsafe withUnsafeBytes(of: &copy) { unsafe Array($0) }
    }

    private static func fill(_ system: inout platform_address, _ bytes: [UInt8]) {
        // At most 16 bytes (checked when the address was made) go into a tuple of 16.
        unsafe withUnsafeMutableBytes(of: &system.address) { target in
            unsafe target.copyBytes(from: bytes.prefix(target.count))
        }
    }
}

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

    fileprivate static func decimal(_ digits: some Collection<UInt8>, atMost limit: Int) -> Int? {
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

/// The addresses that begin with the same bits: `10.0.0.0/8`, `fd00::/8`, or one address alone.
package struct AddressPrefix: Sendable, Equatable {
    private let bytes: [UInt8]
    private let bitCount: Int

    /// Reads an address, with the number of its leading bits that count behind a slash (RFC 4632 §3.1, RFC 4291 §2.3);
    /// nil for anything else, for a name, and where a bit behind those that count is set.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let host = parts.first, host != "localhost", let bytes = SocketAddress.addressBytes(String(host)) else {
            return nil
        }
        var bitCount = 8 * bytes.count
        if parts.count == 2 {
            guard let number = SocketAddress.decimal(parts[1].utf8, atMost: bitCount) else { return nil }
            bitCount = number
        }
        for bit in bitCount..<8 * bytes.count where bytes[bit / 8] >> UInt8(7 - bit % 8) & 1 == 1 { return nil }
        self.init(bytes: bytes, bitCount: bitCount)
    }

    /// The addresses that share their first `bitCount` bits with one of 4 or 16 bytes; nil where it has fewer bits.
    package init?(bytes: [UInt8], bitCount: Int) {
        guard (0...8 * bytes.count).contains(bitCount) else { return nil }
        self.bytes = bytes
        self.bitCount = bitCount
    }

    /// Whether the address begins with these bits.
    package func contains(_ address: SocketAddress) -> Bool {
        guard address.bytes.count == bytes.count else { return false }
        let whole = bitCount / 8
        guard bytes[..<whole] == address.bytes[..<whole] else { return false }
        let rest = bitCount % 8
        return rest == 0 || (bytes[whole] ^ address.bytes[whole]) >> UInt8(8 - rest) == 0
    }
}
