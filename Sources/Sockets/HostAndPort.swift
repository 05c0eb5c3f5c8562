internal import Bytes

/// A host with or without a port: what stands between the slashes of a URL (RFC 3986, 3.2), user information apart.
package struct HostAndPort: Sendable, Equatable {
    /// Why a text is refused.
    package enum ParsingError: Error, Equatable, Sendable { case invalidHost, invalidPort }

    /// Lower case; an IPv6 address without its brackets.
    package let host: String
    /// 1 … 65535; nil where none is written.
    package let port: UInt16?

    /// Reads `host`, `host:port`, `[address]` or `[address]:port`.
    package init(parsing bytes: ArraySlice<UInt8>) throws(ParsingError) {
        let (host, port) = try Self.split(bytes)
        self.host = try Self.validated(host)
        self.port = if let port { try Self.port(port) } else { nil }
    }

    /// Separates the two, neither of them judged.
    static func split(
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

    private static func port(_ digits: ArraySlice<UInt8>) throws(ParsingError) -> UInt16 {
        guard let port = DecimalNumber.parse(digits).flatMap(UInt16.init(exactly:)), port > 0 else {
            throw .invalidPort
        }
        return port
    }
}
