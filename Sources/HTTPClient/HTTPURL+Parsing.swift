internal import Bytes
internal import Sockets

extension HTTPURL {
    /// Reads an absolute URL.
    package init(parsing text: String) throws(ParsingError) {
        let bytes = Array(text.utf8)
        let scheme: Scheme
        var rest: ArraySlice<UInt8>
        // RFC 3986, 3.1: a scheme's case does not matter.
        if let tail = Self.removing("https://", from: bytes) {
            scheme = .https
            rest = tail
        } else if let tail = Self.removing("http://", from: bytes) {
            scheme = .http
            rest = tail
        } else {
            throw .unsupportedScheme
        }
        let authorityEnd = rest.firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? rest.endIndex
        let authority = rest[..<authorityEnd]
        rest = rest[authorityEnd...]
        // RFC 9110, 4.2.4: user information in a URL only serves deceit.
        guard !authority.contains(UInt8(ascii: "@")) else { throw .userInformation }
        let place: HostAndPort
        do throws(HostAndPort.ParsingError) {
            place = try HostAndPort(parsing: authority)
        } catch {
            throw error == .invalidHost ? .invalidHost : .invalidPort
        }
        self.scheme = scheme
        host = place.host
        port = place.port ?? scheme.defaultPort
        target = try Self.target(rest)
        guard scheme == .https || isLoopbackHost else { throw .plainHTTPBeyondLoopback }
    }

    /// Whether the host is `localhost` or a loopback address: known without asking a resolver.
    package var isLoopbackHost: Bool {
        guard let bytes = SocketAddress.addressBytes(host) else { return false }
        return SocketAddress(bytes: bytes, port: port)?.isLoopback ?? false
    }

    /// The address, when the host is written as one; `localhost` counts.
    var literalAddress: SocketAddress? {
        SocketAddress.addressBytes(host).flatMap { SocketAddress(bytes: $0, port: port) }
    }

    private static func removing(_ prefix: String, from bytes: [UInt8]) -> ArraySlice<UInt8>? {
        let prefix = Array(prefix.utf8)
        guard bytes.count > prefix.count, bytes.prefix(prefix.count).map(ASCII.lowercased) == prefix else { return nil }
        return bytes[prefix.count...]
    }

    /// Path and query: visible ASCII without the fragment, which never travels (RFC 9110, 4.2.5), and without the bytes
    /// that no URL holds (RFC 3986, 2).
    private static func target(_ rest: ArraySlice<UInt8>) throws(ParsingError) -> String {
        let forbidden = Array("\"<>\\^`{|}#".utf8)
        for byte in rest {
            guard byte > 0x20, byte < 0x7F, !forbidden.contains(byte) else { throw .invalidPath }
        }
        let text = String(decoding: rest, as: UTF8.self)
        return rest.first == UInt8(ascii: "/") ? text : "/" + text
    }
}
