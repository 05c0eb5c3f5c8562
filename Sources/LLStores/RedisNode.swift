internal import LLBytes
internal import LLHTTP

/// The place of one server: a node of a cluster, a sentinel, or a single primary. The host of a Unix socket is its path.
package struct RedisNode: Hashable, Sendable, CustomStringConvertible {
    /// A name in lower case or an address; an IPv6 address has no brackets.
    package let host: String
    package let port: UInt16

    package init(host: String, port: UInt16) { (self.host, self.port) = (host, port) }

    var isSocket: Bool { host.hasPrefix("/") }

    package var description: String {
        if isSocket { return host }
        return host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}

extension RedisNode {
    /// A node from the host and port in a server's answer; nil if they are invalid.
    /// - Parameter teller: The node that sent the answer. Its own host is used if the host in the answer is empty or
    ///   null.
    init?(_ host: RedisReply, _ port: RedisReply, toldBy teller: RedisNode) {
        guard let number = port.number.flatMap({ UInt16(exactly: $0) }), number > 0 else { return nil }
        switch host {
        case .null: self.init(host: teller.host, port: number)
        case .string(let bytes): self.init(host: bytes[...], port: number, toldBy: teller)
        case .status, .error, .redirect, .integer, .array: return nil
        }
    }

    /// - Parameter host: a name or an address without brackets; empty for the host of the teller.
    fileprivate init?(host: ArraySlice<UInt8>, port: UInt16, toldBy teller: RedisNode?) {
        if host.isEmpty, let teller {
            self.init(host: teller.host, port: port)
            return
        }
        let isBare = host.contains(UInt8(ascii: ":"))
        let authority = isBare ? [UInt8(ascii: "[")] + host + [UInt8(ascii: "]")] : Array(host)
        // A server writes `?` for a node without a known name; this is not a host.
        guard let place = try? HostAndPort(parsing: authority[...]), place.port == nil else { return nil }
        self.init(host: place.host, port: port)
    }
}

extension RedisReply {
    /// The number that an integer or a string holds.
    fileprivate var number: Int64? {
        switch self {
        case .integer(let number): number
        case .string(let bytes): DecimalNumber.parse(bytes).map { Int64($0) }
        case .status, .error, .redirect, .null, .array: nil
        }
    }

    /// The elements of an array.
    var elements: [RedisReply]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    var redirect: RedisRedirect? {
        if case .redirect(let redirect) = self { redirect } else { nil }
    }

    /// The values of an array of names and values.
    fileprivate var fields: [String: RedisReply] {
        guard let elements else { return [:] }
        var fields: [String: RedisReply] = [:]
        for index in stride(from: 0, to: elements.count - 1, by: 2) {
            if let name = elements[index].text { fields[name] = elements[index + 1] }
        }
        return fields
    }
}

/// A redirection to another node of the cluster.
package enum RedisRedirect: Hashable, Sendable {
    /// The slot belongs to another node. The map of the cluster names it, so the name in the answer is not used.
    case moved
    /// The slot is on its way to a node, and this key is there or nowhere. The node has an empty host if it is the host
    /// of the node that answers.
    case ask(RedisNode)

    /// The redirection that an error means: `MOVED slot host:port` or `ASK slot host:port`; nil for other errors.
    init?(error line: ArraySlice<UInt8>) {
        let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.count == 3, let slot = DecimalNumber.parse(words[1]), slot < 16_384,
            let colon = words[2].lastIndex(of: UInt8(ascii: ":")),
            let number = DecimalNumber.parse(words[2][(colon + 1)...]), let port = UInt16(exactly: number), port > 0
        else { return nil }
        if words[0].elementsEqual("MOVED".utf8) {
            self = .moved
            return
        }
        let empty = RedisNode(host: "", port: port)
        guard words[0].elementsEqual("ASK".utf8),
            let node = RedisNode(host: words[2][..<colon], port: port, toldBy: empty)
        else { return nil }
        self = .ask(node)
    }
}

/// The nodes of a cluster, as reported by one of them.
struct RedisClusterMap: Equatable {
    /// Most nodes that are kept: 512. A cluster has a thousand at most, by its own documentation.
    static let nodeLimit = 512

    /// The node that holds the keys; nil if there is none.
    let owner: RedisNode?
    /// All reported nodes, the owner first.
    let nodes: [RedisNode]

    /// Reads the answer to CLUSTER SLOTS: ranges of slots, each with its primary and its replicas.
    init(slots reply: RedisReply, toldBy teller: RedisNode, slot: Int64 = RedisKeys.clusterSlot) throws(RedisFailure) {
        guard let ranges = reply.elements else { throw .malformedAnswer }
        var owner: RedisNode?
        var nodes: [RedisNode] = []
        for range in ranges {
            guard let parts = range.elements, parts.count >= 3, let first = parts[0].number, let last = parts[1].number
            else { throw .malformedAnswer }
            for (index, part) in parts.dropFirst(2).enumerated() {
                guard let words = part.elements, words.count >= 2 else { throw .malformedAnswer }
                guard let node = RedisNode(words[0], words[1], toldBy: teller) else { continue }
                nodes.append(node)
                if index == 0, (first...max(first, last)).contains(slot) { owner = node }
            }
        }
        self.owner = owner
        var seen: Set<RedisNode> = []
        let all = (owner.map { [$0] } ?? []) + nodes
        self.nodes = Array(all.filter { seen.insert($0).inserted }.prefix(Self.nodeLimit))
    }

}

extension RedisReply {
    /// The primary in an answer to SENTINEL MASTER, and the number of its configuration, which grows with each failover.
    func primary(toldBy teller: RedisNode) throws(RedisFailure) -> (RedisNode, epoch: Int64) {
        switch self {
        case .error(code: "NOAUTH"), .error(code: "WRONGPASS"): throw .sentinelUnauthenticated
        // The code of an unknown name.
        case .error(code: "ERR"): throw .unknownMaster
        case .error(let code): throw RedisFailure(code: code, of: "SENTINEL")
        default:
            guard let host = fields["ip"], let port = fields["port"],
                let primary = RedisNode(host, port, toldBy: teller), let epoch = fields["config-epoch"]?.number
            else { throw .malformedAnswer }
            return (primary, epoch)
        }
    }
}
