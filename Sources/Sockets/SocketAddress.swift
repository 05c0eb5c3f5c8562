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
