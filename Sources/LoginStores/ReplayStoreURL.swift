internal import Sockets

/// The address of a store: `redis://[user:password@]host[:port][/database]`, or `rediss://…` for TLS.
package struct ReplayStoreURL: Equatable, Sendable {
    /// Why text is no such address; it may hold a password, so no description quotes it.
    package enum ParsingError: Error, Equatable, Sendable, CustomStringConvertible {
        case scheme, userInformation, host, database

        package var description: String {
            switch self {
            case .scheme: "it must be memory, or begin with redis:// or rediss://"
            case .userInformation: "its user information is not user:password, with other bytes percent-encoded"
            case .host: "its host or port is none"
            case .database: "its path must be the number of a database, 0 to 65535, and nothing may follow"
            }
        }
    }

    package let isSecure: Bool
    /// Empty for the server's default user.
    package let user: [UInt8]
    /// Nil where the URL has none.
    package let password: [UInt8]?
    /// Lower case; an IPv6 address without its brackets.
    package let host: String
    package let port: UInt16
    package let database: Int

    package init(parsing text: String) throws(ParsingError) {
        let bytes = Array(text.utf8)
        if let rest = Self.removing("redis://", from: bytes) {
            isSecure = false
            (user, password, host, port, database) = try Self.parts(rest)
        } else if let rest = Self.removing("rediss://", from: bytes) {
            isSecure = true
            (user, password, host, port, database) = try Self.parts(rest)
        } else {
            throw .scheme
        }
    }

    /// The address without user and password, fit to be shown.
    package var shown: String {
        let name = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        return "\(isSecure ? "rediss" : "redis")://\(name):\(port)/\(database)"
    }

    /// Whether the host is `localhost` or a loopback address.
    package var isLoopbackHost: Bool {
        SocketAddress.addressBytes(host).map { SocketAddress(bytes: $0, port: port)?.isLoopback == true } ?? false
    }

    private static func removing(_ scheme: String, from bytes: [UInt8]) -> ArraySlice<UInt8>? {
        guard bytes.count > scheme.utf8.count,
            String(decoding: bytes.prefix(scheme.utf8.count), as: UTF8.self).lowercased() == scheme
        else { return nil }
        return bytes.dropFirst(scheme.utf8.count)
    }

    private static func parts(
        _ bytes: ArraySlice<UInt8>
    ) throws(ParsingError) -> ([UInt8], [UInt8]?, String, UInt16, Int) {
        let end = bytes.firstIndex(of: UInt8(ascii: "/")) ?? bytes.endIndex
        var authority = bytes[..<end]
        var user: [UInt8] = []
        var password: [UInt8]?
        // The last one: a password may hold another, though it should not.
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            (user, password) = try credentials(authority[..<at])
            authority = authority[(at + 1)...]
        }
        let (host, port) = try place(authority)
        return (user, password, host, port, try database(bytes[end...]))
    }

    private static func credentials(_ bytes: ArraySlice<UInt8>) throws(ParsingError) -> ([UInt8], [UInt8]?) {
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return (try decoded(bytes), nil) }
        let password = try decoded(bytes[(colon + 1)...])
        return (try decoded(bytes[..<colon]), password.isEmpty ? nil : password)
    }

    /// Percent-encoding undone (RFC 3986, 2.1); bytes no URL holds are refused.
    private static func decoded(_ bytes: ArraySlice<UInt8>) throws(ParsingError) -> [UInt8] {
        var result: [UInt8] = []
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let byte = bytes[index]
            guard byte > 0x20, byte < 0x7F else { throw .userInformation }
            index += 1
            guard byte == UInt8(ascii: "%") else {
                result.append(byte)
                continue
            }
            guard index + 1 < bytes.endIndex, let high = Character(Unicode.Scalar(bytes[index])).hexDigitValue,
                let low = Character(Unicode.Scalar(bytes[index + 1])).hexDigitValue
            else { throw .userInformation }
            // Both are below 16.
            result.append(UInt8(high * 16 + low))
            index += 2
        }
        return result
    }

    /// Host and port have the grammar of any other URL's.
    private static func place(_ authority: ArraySlice<UInt8>) throws(ParsingError) -> (String, UInt16) {
        guard let place = try? HostAndPort(parsing: authority) else { throw .host }
        return (place.host, place.port ?? 6379)
    }

    private static func database(_ path: ArraySlice<UInt8>) throws(ParsingError) -> Int {
        let digits = path.dropFirst()
        if digits.isEmpty { return 0 }
        guard digits.count <= 5, digits.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = Int(String(decoding: digits, as: UTF8.self)), number <= 65_535
        else { throw .database }
        return number
    }
}
