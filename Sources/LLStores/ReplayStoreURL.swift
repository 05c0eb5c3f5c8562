internal import LLBytes
internal import LLHTTP

/// The address of a store: `redis://[user:password@]host[:port][/database]`, or `rediss://…` for TLS.
///
/// `redis+cluster://` and `rediss+cluster://` take several places, separated by commas, and database 0 alone.
/// `redis+sentinel://` and `rediss+sentinel://` take the places of the sentinels and the name of the master as the path.
/// `redis+unix:///path?db=1` is a Unix socket; the database may be left out.
package struct ReplayStoreURL: Equatable, Sendable {
    /// The reason why a text is not such an address. The text may contain a password, so no description quotes it.
    package enum ParsingError: String, Error, CustomStringConvertible {
        case scheme =
            "it must be memory, or begin with redis:// or rediss://, each also with +cluster or +sentinel, or redis+unix://"
        case userInformation =
            "its user or password has a byte that stands there only percent-encoded, such as one of @ : / # ? %: encode it, or use replay_store_password_file"
        case host =
            "it needs a host name or address (a socket is redis+unix:///PATH), and a port from 1 to 65535 if it names one"
        case query = "it has a query, and nothing can be set by one: leave out ? and what follows"
        case database = "its path must be the number of a database, 0 to 65535, and nothing may follow"
        case clusterPath = "a cluster has database 0 alone: leave out the path"
        case masterName = "its path must be the name of the master that the sentinels watch, such as /mymaster"
        case places = "it names more than 16 places"
        case socket = "a socket is redis+unix:///PATH or redis+unix:///PATH?db=N, with at most 107 bytes of path"

        package var description: String { rawValue }
    }

    /// The kind of servers behind the address.
    package enum Kind: Hashable, Sendable {
        case single
        case cluster
        /// Sentinels that tell the present primary. The value is the name by which they watch it.
        case sentinel(master: String)
    }

    /// Most places in an address: 16. A few are enough to find the others.
    private static let placeLimit = 16
    /// The kinds by their schemes without TLS.
    private static let kinds: [String: Kind] = [
        "redis": .single, "redis+cluster": .cluster, "redis+sentinel": .sentinel(master: ""), "redis+unix": .single,
    ]

    package let kind: Kind
    package let isSecure: Bool
    /// The user name; empty for the server's default user.
    package let user: [UInt8]
    /// The password; nil if the URL has none.
    package let password: [UInt8]?
    /// The server, the first nodes, or the sentinels; at least one.
    package let places: [RedisNode]
    package let database: Int
    /// The scheme without TLS.
    private let scheme: String

    /// The host of the first place in lower case; an IPv6 address has no brackets.
    package var host: String { places[0].host }

    package init(parsing text: String) throws(ParsingError) {
        do throws(ParsingError) { try self.init(reading: text) } catch {
            // The only `@` ends the user information, which comes before any path.
            let parts = text.split(separator: "@", omittingEmptySubsequences: false)
            let isMisread = parts.count > 2 || parts.count == 2 && parts[0].count(where: { $0 == "/" }) > 2
            throw isMisread && error != .socket ? .userInformation : error
        }
    }

    private init(reading text: String) throws(ParsingError) {
        guard let border = text.firstRange(of: "://") else { throw .scheme }
        let name = text[..<border.lowerBound].lowercased()
        isSecure = name.hasPrefix("rediss")
        scheme = isSecure ? "redis" + name.dropFirst(6) : name
        guard let kind = Self.kinds[scheme], name != "rediss+unix" else { throw .scheme }
        let rest = Array(text[border.upperBound...].utf8)
        if scheme == "redis+unix" {
            let parts = rest.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
            let query = parts.count == 1 ? ArraySlice("db=0".utf8) : parts[1]
            guard let path = try? UnixSocketPath(String(decoding: parts[0], as: UTF8.self)),
                path.description.hasPrefix("/"), query.starts(with: "db=".utf8),
                let database = Self.database(query.dropFirst(3))
            else { throw .socket }
            (self.kind, user, password, self.database) = (kind, [], nil, database)
            places = [RedisNode(host: path.description, port: 0)]
            return
        }
        guard !rest.isEmpty else { throw .scheme }
        let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
        var authority = rest[..<end]
        var credentials: [[UInt8]] = []
        // The last `@` separates the user information, because a password may wrongly contain another one.
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            let colon = UInt8(ascii: ":")
            for part in authority[..<at].split(separator: colon, maxSplits: 1, omittingEmptySubsequences: false) {
                // Bytes that a URL cannot hold are refused.
                guard part.allSatisfy(ASCII.isVisible), let text = PercentEncoding.decode(part.span, 0..<part.count)
                else { throw .userInformation }
                credentials.append(text)
            }
            authority = authority[(at + 1)...]
        }
        user = credentials.first ?? []
        password = credentials.count > 1 && !credentials[1].isEmpty ? credentials[1] : nil
        places = try Self.places(authority, kind)
        let path = rest[end...].dropFirst()
        guard !path.contains(UInt8(ascii: "?")) else { throw .query }
        switch kind {
        case .single:
            guard let database = path.isEmpty ? 0 : Self.database(path) else { throw .database }
            (self.kind, self.database) = (kind, database)
        case .cluster:
            guard path.isEmpty || path == [UInt8(ascii: "0")] else { throw .clusterPath }
            (self.kind, database) = (kind, 0)
        case .sentinel:
            // The alphabet that Sentinel itself allows for names.
            guard (1...100).contains(path.count),
                path.allSatisfy({ ASCII.isAlphanumeric($0) || ".-_".utf8.contains($0) })
            else { throw .masterName }
            (self.kind, database) = (.sentinel(master: String(decoding: path, as: UTF8.self)), 0)
        }
    }

    private static func database(_ digits: ArraySlice<UInt8>) -> Int? {
        DecimalNumber.parse(digits).flatMap { UInt16(exactly: $0) }.map { Int($0) }
    }

    /// Host and port follow the grammar of all other URLs.
    private static func places(_ authority: ArraySlice<UInt8>, _ kind: Kind) throws(ParsingError) -> [RedisNode] {
        let comma = UInt8(ascii: ",")
        let parts = kind == .single ? [authority] : authority.split(separator: comma, omittingEmptySubsequences: false)
        guard parts.count <= placeLimit else { throw .places }
        var places: [RedisNode] = []
        for part in parts {
            guard let place = try? HostAndPort(parsing: part) else {
                throw authority.contains(UInt8(ascii: "?")) ? .query : .host
            }
            let usual: UInt16 = if case .sentinel = kind { 26379 } else { 6379 }
            places.append(RedisNode(host: place.host, port: place.port ?? usual))
        }
        return places
    }

    /// The address without user and password, safe to display.
    package var shown: String {
        if places[0].isSocket { return "\(scheme)://\(host)?db=\(database)" }
        let path =
            switch kind {
            case .single: "/\(database)"
            case .cluster: ""
            case .sentinel(let master): "/\(master)"
            }
        return "\(isSecure ? secureScheme : scheme + "://")\(places.map(\.description).joined(separator: ","))\(path)"
    }

    /// The beginning of such an address with TLS.
    package var secureScheme: String { "rediss\(scheme.dropFirst(5))://" }

    /// True if every host is `localhost` or a loopback address.
    package var isLoopbackHost: Bool {
        places.allSatisfy { $0.isSocket || SocketAddress(host: $0.host)?.isLoopback == true }
    }
}
