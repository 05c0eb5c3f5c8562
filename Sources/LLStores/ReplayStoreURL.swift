internal import LLBytes
internal import LLSockets

/// The address of a store: `redis://[user:password@]host[:port][/database]`, or `rediss://…` for TLS.
package struct ReplayStoreURL: Equatable, Sendable {
    /// Why a text is not such an address. The text may hold a password, so no description quotes it.
    package enum ParsingError: String, Error, CustomStringConvertible {
        case scheme = "it must be memory, or begin with redis:// or rediss://"
        case userInformation = "its user information is not user:password, with other bytes percent-encoded"
        case host = "its host or port is none"
        case query = "it has a query, and nothing can be set by one: leave out ? and what follows"
        case database = "its path must be the number of a database, 0 to 65535, and nothing may follow"

        package var description: String { rawValue }
    }

    package let isSecure: Bool
    /// The user name; empty for the server's default user.
    package let user: [UInt8]
    /// The password; nil if the URL has none.
    package let password: [UInt8]?
    /// The host in lower case; an IPv6 address has no brackets.
    package let host: String
    package let port: UInt16
    package let database: Int

    package init(parsing text: String) throws(ParsingError) {
        let bytes = Array(text.utf8)
        let scheme = ["redis://", "rediss://"].first { scheme in
            bytes.count > scheme.utf8.count && bytes.lazy.map(ASCII.lowercased).starts(with: scheme.utf8)
        }
        guard let scheme else { throw .scheme }
        isSecure = scheme == "rediss://"
        let rest = bytes.dropFirst(scheme.utf8.count)
        let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
        var authority = rest[..<end]
        var credentials: [[UInt8]] = []
        // The last `@` separates the user information, because a password may wrongly contain another one.
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            let parts = authority[..<at].split(
                separator: UInt8(ascii: ":"),
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
            for part in parts {
                // Bytes that a URL cannot hold are refused.
                guard part.allSatisfy(ASCII.isVisible), let text = PercentEncoding.decode(part.span, 0..<part.count)
                else { throw .userInformation }
                credentials.append(text)
            }
            authority = authority[(at + 1)...]
        }
        user = credentials.first ?? []
        password = credentials.count > 1 && !credentials[1].isEmpty ? credentials[1] : nil
        // Host and port follow the grammar of all other URLs.
        guard let place = try? HostAndPort(parsing: authority) else {
            throw authority.contains(UInt8(ascii: "?")) ? .query : .host
        }
        (host, port) = (place.host, place.port ?? 6379)
        let digits = rest[end...].dropFirst()
        guard !digits.contains(UInt8(ascii: "?")) else { throw .query }
        guard digits.count <= 5, digits.allSatisfy({ (0x30...0x39).contains($0) }),
            let database = UInt16(digits.isEmpty ? "0" : String(decoding: digits, as: UTF8.self))
        else { throw .database }
        self.database = Int(database)
    }

    /// The address without user and password, safe to display.
    package var shown: String {
        let name = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        return "\(isSecure ? "rediss" : "redis")://\(name):\(port)/\(database)"
    }

    /// True if the host is `localhost` or a loopback address.
    package var isLoopbackHost: Bool {
        SocketAddress(host: host)?.isLoopback == true
    }
}
