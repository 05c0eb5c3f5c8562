internal import Bytes
internal import HTTP1

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
        let (host, portText) = try Self.split(authority)
        self.scheme = scheme
        self.host = try Self.validated(host)
        port = try Self.port(portText, for: scheme)
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

    private static func split(
        _ authority: ArraySlice<UInt8>
    ) throws(ParsingError) -> (host: ArraySlice<UInt8>, port: ArraySlice<UInt8>?) {
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
    private static func validated(_ host: ArraySlice<UInt8>) throws(ParsingError) -> String {
        let lowered = host.map(ASCII.lowercased)
        let text = String(decoding: lowered, as: UTF8.self)
        guard (1...253).contains(lowered.count) else { throw .invalidHost }
        if lowered.contains(UInt8(ascii: ":")) {
            guard SocketAddress.addressBytes(text) != nil else { throw .invalidHost }
            return text
        }
        var labels = lowered.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        // A name may end in the root's dot.
        if labels.count > 1, labels.last?.isEmpty == true { labels.removeLast() }
        for label in labels {
            guard (1...63).contains(label.count), label.first != UInt8(ascii: "-"), label.last != UInt8(ascii: "-"),
                label.allSatisfy(isNameByte)
            else { throw .invalidHost }
        }
        // A last label of digits alone is an address or nothing: `127.1` and `0x7f.1` are read differently by many.
        if let last = labels.last, last.allSatisfy({ ASCII.digit($0) != nil }) || last.starts(with: Array("0x".utf8)) {
            guard SocketAddress.addressBytes(text) != nil else { throw .invalidHost }
        }
        return text
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        byte &- 0x61 < 26 || byte &- 0x30 < 10 || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }

    private static func port(_ text: ArraySlice<UInt8>?, for scheme: Scheme) throws(ParsingError) -> UInt16 {
        guard let text else { return scheme.defaultPort }
        let digits = Array(text)
        guard let number = DecimalNumber.parse(digits.span, 0..<digits.count), let port = UInt16(exactly: number),
            port > 0
        else { throw .invalidPort }
        return port
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
