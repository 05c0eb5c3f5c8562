internal import LLBytes
internal import LLHTTP

/// The place of one server: a node of a cluster, a sentinel, or a single primary. The host of a Unix socket is its path.
package struct RedisNode: Hashable, Sendable, CustomStringConvertible {
    /// A name in lower case or an address; an IPv6 address has no brackets.
    package let host: String
    package let port: UInt16

    var isSocket: Bool { host.hasPrefix("/") }

    var isNamed: Bool { host == "localhost" || SocketAddress(host: host) == nil }

    package var description: String {
        if isSocket { return host }
        return host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// The name that the node's certificate must have: the node's own, also if that is an address. A node that is only
    /// told by its address must have one for the name in the URL, if there is one: the holder of that name is trusted.
    func certificateName(through start: RedisNode?) -> String {
        if !isNamed, let start, start.isNamed { return start.host }
        return host
    }
}

extension RedisNode {
    /// A node from the host and port in a server's answer; nil if they are invalid.
    /// - Parameter teller: the node that sent the answer. Its own host is used if the host in the answer is empty or null.
    fileprivate init?(_ host: RedisReply, _ port: RedisReply, toldBy teller: RedisNode) {
        guard case .string(let bytes) = host == .null ? .string([]) : host,
            let number = port.number.flatMap({ UInt16(exactly: $0) }), number > 0
        else { return nil }
        self.init(host: bytes[...], port: number, toldBy: teller)
    }

    /// - Parameter host: a name or an address without brackets; empty for the host of the teller.
    fileprivate init?(host: ArraySlice<UInt8>, port: UInt16, toldBy teller: RedisNode) {
        let host = host.isEmpty ? ArraySlice(teller.host.utf8) : host
        let isBare = host.contains(UInt8(ascii: ":"))
        let authority = isBare ? [UInt8(ascii: "[")] + host + [UInt8(ascii: "]")] : Array(host)
        // A server writes `?` for a node without a known name; this is not a host.
        guard let place = try? HostAndPort(parsing: authority[...]), place.port == nil else { return nil }
        self.init(host: place.host, port: port)
    }
}

extension RedisReply {
    /// The redirection that an error means: `MOVED slot host:port` or `ASK slot host:port`; nil for other errors.
    static func redirect(_ line: ArraySlice<UInt8>, from teller: RedisNode) -> RedisReply? {
        let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.count == 3, let slot = DecimalNumber.parse(words[1]), slot < 16_384,
            let colon = words[2].lastIndex(of: UInt8(ascii: ":")),
            let number = DecimalNumber.parse(words[2][(colon + 1)...]), let port = UInt16(exactly: number), port > 0
        else { return nil }
        if words[0].elementsEqual("MOVED".utf8) { return .redirect(nil) }
        guard words[0].elementsEqual("ASK".utf8) else { return nil }
        return RedisNode(host: words[2][..<colon], port: port, toldBy: teller).map { .redirect($0) }
    }

    /// The failure that a redirection means; nil for other answers.
    var redirection: RedisFailure? {
        if case .redirect(let target) = self { target.map { .slotMoves(to: $0) } ?? .moved } else { nil }
    }

    /// The answer itself if it is no refusal of a command.
    func orFailure(of command: String) throws(RedisFailure) -> RedisReply {
        if case .error(let code) = self { throw RedisFailure(code: code, of: command) }
        if let redirection { throw redirection }
        return self
    }

    /// The number that an integer or a string holds.
    var number: Int64? {
        switch self {
        case .integer(let number): number
        case .string(let bytes): DecimalNumber.parse(bytes).map { Int64($0) }
        case .status, .error, .redirect, .null, .array: nil
        }
    }

    var elements: [RedisReply]? { if case .array(let elements) = self { elements } else { nil } }

    /// The value of a name in an array of names and values.
    private subscript(name: String) -> RedisReply? {
        guard let elements else { return nil }
        let index = stride(from: 0, to: elements.count - 1, by: 2).first { elements[$0].text == name }
        return index.map { elements[$0 + 1] }
    }

    /// The owner of the keys and all nodes, the owner first, in an answer to CLUSTER SLOTS: ranges of slots, each with its
    /// primary and its replicas. At most 512 nodes are kept: half of the greatest cluster by its own documentation.
    func clusterMap(toldBy teller: RedisNode) throws(RedisFailure) -> (owner: RedisNode?, nodes: [RedisNode]) {
        guard let ranges = elements else { throw .malformedAnswer }
        var owner: RedisNode?
        var nodes: [RedisNode] = []
        for range in ranges {
            guard let parts = range.elements, parts.count >= 3, let first = parts[0].number, let last = parts[1].number
            else { throw .malformedAnswer }
            for (index, part) in parts.dropFirst(2).enumerated() {
                guard let words = part.elements, words.count >= 2 else { throw .malformedAnswer }
                guard let node = RedisNode(words[0], words[1], toldBy: teller) else { continue }
                nodes.append(node)
                if index == 0, (first...max(first, last)).contains(RedisKeys.clusterSlot) { owner = node }
            }
        }
        var seen: Set<RedisNode> = []
        let all = (owner.map { [$0] } ?? []) + nodes
        return (owner, Array(all.filter { seen.insert($0).inserted }.prefix(512)))
    }

    /// The primary in an answer to SENTINEL MASTER, and the number of its configuration, which grows with each failover.
    func primary(toldBy teller: RedisNode) throws(RedisFailure) -> (RedisNode, epoch: Int64) {
        switch self {
        case .error(code: "NOAUTH"), .error(code: "WRONGPASS"): throw .sentinelUnauthenticated
        // The code of an unknown name.
        case .error(code: "ERR"): throw .unknownMaster
        default: break
        }
        let facts = try orFailure(of: "SENTINEL")
        guard let host = facts["ip"], let port = facts["port"], let primary = RedisNode(host, port, toldBy: teller),
            let epoch = facts["config-epoch"]?.number
        else { throw .malformedAnswer }
        return (primary, epoch)
    }
}
