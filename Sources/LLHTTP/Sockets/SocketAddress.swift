internal import CLLSystem
internal import LLBytes

package struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address bytes in network order: 4 for IPv4, 16 for IPv6.
    package let bytes: [UInt8]
    /// 0 … 65535; 0 lets the system choose.
    package let port: UInt16

    package var isIPv6: Bool { bytes.count == 16 }

    package init(bytes: [UInt8], port: UInt16) {
        self.bytes = bytes
        self.port = port
    }

    init(_ system: platform_address) {
        // The tuple is 16 UInt8 without padding, so its bytes are the address; they are copied at once.
        let all = unsafe withUnsafeBytes(of: system.address) { unsafe Array($0) }
        let bytes = system.is_ipv6 != 0 ? all : Array(all.prefix(4))
        self.init(bytes: bytes, port: system.port)
    }

    package static func loopback(port: UInt16) -> SocketAddress { SocketAddress(bytes: [127, 0, 0, 1], port: port) }

    package static func loopbackIPv6(port: UInt16) -> SocketAddress {
        SocketAddress(bytes: [UInt8](repeating: 0, count: 15) + [1], port: port)
    }

    /// True for 127.0.0.0/8, ::1 and ::ffff:127.0.0.0/104.
    package var isLoopback: Bool {
        if bytes.count == 4 { return bytes[0] == 127 }
        if bytes.prefix(15).allSatisfy({ $0 == 0 }) { return bytes[15] == 1 }
        return bytes.prefix(10).allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF && bytes[12] == 127
    }

    /// True if only one of both addresses can be listened on: they have the same port, and the same address or one of
    /// 0.0.0.0 and ::. No listener on an IPv6 address accepts IPv4.
    package func collides(with other: SocketAddress) -> Bool {
        guard port != 0, port == other.port, isIPv6 == other.isIPv6 else { return false }
        return self == other || [self, other].contains { $0.bytes.allSatisfy { $0 == 0 } }
    }

    package func with(port: UInt16) -> SocketAddress { SocketAddress(bytes: bytes, port: port) }

    /// `127.0.0.1:8080` or `[::1]:8080`.
    package var description: String { isIPv6 ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Reads `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080` (IPv4 loopback); nil for any other text.
    package init?(_ text: String) {
        guard let (host, portText) = try? HostAndPort.split(Array(text.utf8)[...]),
            let port = portText.flatMap(DecimalNumber.parse).flatMap(UInt16.init(exactly:))
        else { return nil }
        self.init(host: String(decoding: host, as: UTF8.self), port: port)
    }

    /// Reads an address literal (`127.0.0.1`, `::1`, without brackets) or `localhost`; nil for any other text.
    package init?(host: String, port: UInt16 = 0) {
        let text = Array((host == "localhost" ? "127.0.0.1" : host).utf8)
        guard let bytes = IPAddress.bytes(text.span, text.indices) else { return nil }
        self.init(bytes: bytes, port: port)
    }

    /// The address without its port, in its usual short form (RFC 5952 for IPv6).
    package var host: String { IPAddress.text(bytes) }
}

/// The addresses that begin with the same bits: `10.0.0.0/8`, `fd00::/8`, or one address alone.
package struct AddressPrefix: Sendable, Equatable {
    private let bytes: [UInt8]
    private let bitCount: Int

    /// Reads an address, with the number of its significant leading bits behind a slash (RFC 4632 §3.1, RFC 4291 §2.3);
    /// nil for any other text.
    /// - Parameter isStrict: True to refuse `localhost`, and bits set behind the significant ones. False for
    ///   `NO_PROXY`, which other programs read leniently.
    package init?(_ text: String, isStrict: Bool = true) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let bytes = SocketAddress(host: String(parts[0]))?.bytes else { return nil }
        let bits = 0..<8 * bytes.count
        let count = parts.count == 2 ? DecimalNumber.parse(parts[1].utf8) : bits.count
        guard let count, count <= bits.count else { return nil }
        if isStrict, parts[0] == "localhost" || bits[count...].contains(where: { Self.isSet($0, bytes) }) { return nil }
        self.bytes = bytes
        bitCount = count
    }

    /// True if every address of its family has this prefix.
    package var isEverything: Bool { bitCount == 0 }

    package func contains(_ address: SocketAddress) -> Bool {
        address.bytes.count == bytes.count
            && (0..<bitCount).allSatisfy { Self.isSet($0, bytes) == Self.isSet($0, address.bytes) }
    }

    private static func isSet(_ bit: Int, _ bytes: [UInt8]) -> Bool { bytes[bit / 8] >> UInt8(7 - bit % 8) & 1 == 1 }
}

/// A host with or without a port: the authority of a URL (RFC 3986, 3.2) without user information.
package struct HostAndPort: Sendable, Equatable {
    /// Lower case; an IPv6 address without its brackets.
    package let host: String
    /// 1 … 65535; nil if the text has none.
    package let port: UInt16?

    /// Reads `host`, `host:port`, `[address]` or `[address]:port`.
    package init(parsing bytes: ArraySlice<UInt8>) throws(HTTPURL.ParsingError) {
        let (host, port) = try Self.split(bytes)
        self.host = try Self.validated(host)
        self.port = port.flatMap(DecimalNumber.parse).flatMap(UInt16.init(exactly:))
        guard port == nil || self.port ?? 0 > 0 else { throw .invalidPort }
    }

    /// Separates host and port without checking either.
    static func split(
        _ authority: ArraySlice<UInt8>
    ) throws(HTTPURL.ParsingError) -> (host: ArraySlice<UInt8>, port: ArraySlice<UInt8>?) {
        if authority.first == UInt8(ascii: "[") {
            guard let end = authority.firstIndex(of: UInt8(ascii: "]")) else { throw .invalidHost }
            let host = authority[(authority.startIndex + 1)..<end]
            guard host.contains(UInt8(ascii: ":")) else { throw .invalidHost }
            let tail = authority[(end + 1)...]
            if tail.isEmpty { return (host, nil) }
            guard tail.first == UInt8(ascii: ":") else { throw .invalidHost }
            return (host, tail.dropFirst())
        }
        guard let colon = authority.firstIndex(of: UInt8(ascii: ":")) else { return (authority, nil) }
        return (authority[..<colon], authority[(colon + 1)...])
    }

    /// A DNS name (RFC 1123, 2.1, with the underscore that private zones use) or an address.
    private static func validated(_ host: ArraySlice<UInt8>) throws(HTTPURL.ParsingError) -> String {
        let lowered = host.map(ASCII.lowercased)
        let text = String(decoding: lowered, as: UTF8.self)
        guard (1...253).contains(lowered.count) else { throw .invalidHost }
        if lowered.contains(UInt8(ascii: ":")) {
            guard SocketAddress(host: text) != nil else { throw .invalidHost }
            return text
        }
        var labels = lowered.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        // A name may end in the root's dot.
        if labels.count > 1, labels.last?.isEmpty == true { labels.removeLast() }
        for label in labels {
            guard (1...63).contains(label.count), label.first != UInt8(ascii: "-"), label.last != UInt8(ascii: "-"),
                label.allSatisfy({ ASCII.isAlphanumeric($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") })
            else { throw .invalidHost }
        }
        // A last label of digits alone is an address or nothing: `127.1` and `0x7f.1` are read differently by many.
        if let last = labels.last, last.allSatisfy({ ASCII.digit($0) != nil }) || last.starts(with: Array("0x".utf8)) {
            guard SocketAddress(host: text) != nil else { throw .invalidHost }
        }
        return text
    }
}

package enum ListenAddress: Hashable, Sendable, CustomStringConvertible {
    case network(SocketAddress)
    case unix(UnixSocketPath)

    package static let unixPrefix = "unix:"

    package static func loopback(port: UInt16) -> ListenAddress { .network(.loopback(port: port)) }

    package var network: SocketAddress? { if case .network(let address) = self { address } else { nil } }

    /// The arguments of CLLSystem's calls: the bytes of the address or path, and the port; -1 for a path.
    var system: (bytes: [UInt8], port: Int32) {
        switch self {
        case .network(let address): (address.bytes, Int32(address.port))
        case .unix(let path): (Array(path.description.utf8), -1)
        }
    }

    /// `127.0.0.1:8080`, `[::1]:8080` or `unix:/run/limited-login/http.sock`.
    package var description: String {
        switch self {
        case .network(let address): address.description
        case .unix(let path): Self.unixPrefix + path.description
        }
    }
}

package struct UnixSocketPath: Hashable, Sendable, CustomStringConvertible {
    package struct ParsingError: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    /// The greatest length of a path: the system's `sun_path` without its final NUL.
    package static let greatestByteCount = 107

    package let description: String

    /// - Throws: An error if the path is relative (it would depend on the working directory), or if the system cannot
    ///   hold it.
    package init(_ text: String) throws(ParsingError) {
        func fault(_ what: String) -> ParsingError { ParsingError(description: "the path of a socket \(what)") }
        let (count, most) = (text.utf8.count, Self.greatestByteCount)
        guard text.utf8.first == UInt8(ascii: "/") else { throw fault("must begin with '/'") }
        guard !text.utf8.contains(0) else { throw fault("holds no NUL byte") }
        guard count <= most else { throw fault("has at most \(most) bytes, and this one \(count)") }
        description = text
    }
}

/// The permissions of a socket's file: a client needs the right to write to it.
package struct UnixSocketMode: Hashable, Sendable, CustomStringConvertible {
    /// `0660`: the service's user and group.
    package static let standard = UnixSocketMode(bits: 0o660)

    let bits: UInt32

    private init(bits: UInt32) { self.bits = bits }

    /// Reads three or four octal digits; nil for any other text, and if the owner could not read and write.
    package init?(_ text: String) {
        guard (3...4).contains(text.utf8.count), text.first != "+", let bits = UInt32(text, radix: 8),
            (0o600...0o777).contains(bits)
        else { return nil }
        self.bits = bits
    }

    /// True if every user of the machine may connect: write permission is enough (unix(7)).
    package var isForEverybody: Bool { bits & 0o002 != 0 }

    package var description: String { "0" + String(bits, radix: 8) }
}
