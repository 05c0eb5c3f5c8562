internal import LLBytes
internal import LLHTTP

/// An answer of a Redis or Valkey server, limited to the types that this project's commands return.
package enum RedisReply: Hashable, Sendable {
    /// A simple string, such as `OK`.
    case status(String)
    /// An error. Only its code, the first word, is kept.
    case error(code: String)
    /// A node of a cluster tells that the slot of the keys is on its way to this node: a key is there or nowhere. Nil if
    /// the slot belongs to another node; the map of the cluster names it.
    case redirect(RedisNode?)
    case integer(Int64)
    case string([UInt8])
    case null
    case array([RedisReply])

    package var text: String? {
        switch self {
        case .status(let text): text
        case .string(let bytes): String(decoding: bytes, as: UTF8.self)
        case .error, .redirect, .integer, .null, .array: nil
        }
    }
}

/// Reads answers from a stream of bytes in RESP2 (https://redis.io/docs/latest/develop/reference/protocol-spec/).
///
/// It throws ``RedisFailure/malformedAnswer`` for bytes that break the protocol, use an unsupported part of it, or exceed
/// a limit, and ``RedisFailure/answerTooLong`` for an answer that is too long as a whole. Announced lengths reserve no
/// memory. Do not use the reader again after an error.
package struct RESPReader {
    /// Bytes of one whole answer. 512 KiB: the map of a cluster with 4,096 ranges of slots and a primary each, or a
    /// thousand with three replicas. A page of revocations takes 40 KiB.
    package static let byteLimit = 524_288
    /// Bytes of a line without its end: a status, an error, a number, a count. 1,024: the servers cut the text of their
    /// errors below that.
    package static let lineByteLimit = 1_024
    /// Elements of an array: the ranges of that map.
    private static let elementLimit = 4_096
    /// Arrays within each other. 5: ranges, their parts, nodes, their facts, and one to spare.
    private static let depthLimit = 5

    /// The node of a cluster that answers; nil for another server, whose redirections are errors.
    private let node: RedisNode?
    private var bytes: [UInt8] = []
    /// The index in `bytes` of the first byte that was not taken yet.
    private var position = 0

    package init(from node: RedisNode? = nil) { self.node = node }

    /// The number of bytes received but not taken yet.
    package var waitingCount: Int { bytes.count - position }

    /// Adds the first `count` bytes of `buffer`.
    package mutating func feed(_ buffer: [UInt8], count: Int) {
        bytes.removeFirst(position)
        position = 0
        bytes.append(contentsOf: buffer.prefix(count))
    }

    /// The next whole answer; nil if it needs more bytes.
    package mutating func next() throws(RedisFailure) -> RedisReply? {
        var end = position
        guard let reply = try value(&end, depth: 0) else {
            guard waitingCount < Self.byteLimit else { throw .answerTooLong }
            return nil
        }
        position = end
        return reply
    }

    /// The value at a place, which moves to its end; nil if more bytes are needed.
    private func value(_ place: inout Int, depth: Int) throws(RedisFailure) -> RedisReply? {
        guard place < bytes.count else { return nil }
        let kind = bytes[place]
        guard "+-:$*".utf8.contains(kind) else { throw .malformedAnswer }
        guard let line = try line(from: place + 1) else { return nil }
        place = line.endIndex + 2
        guard place - position <= Self.byteLimit else { throw .answerTooLong }
        switch kind {
        case UInt8(ascii: "+"): return .status(String(decoding: line, as: UTF8.self))
        case UInt8(ascii: "-"): return node.flatMap { .redirect(line, from: $0) } ?? .error(code: Self.code(line))
        case UInt8(ascii: ":"): return .integer(try Self.number(line))
        default: break
        }
        let length = try Self.number(line)
        guard length >= -1 else { throw .malformedAnswer }
        guard length <= Self.byteLimit else { throw .answerTooLong }
        if length == -1 { return .null }
        guard kind == UInt8(ascii: "*") else {
            let (start, end) = (place, place + Int(length))
            guard end + 2 - position <= Self.byteLimit else { throw .answerTooLong }
            guard end + 2 <= bytes.count else { return nil }
            guard bytes[end] == 0x0D, bytes[end + 1] == 0x0A else { throw .malformedAnswer }
            place = end + 2
            return .string(Array(bytes[start..<end]))
        }
        guard depth < Self.depthLimit, length <= Self.elementLimit else { throw .malformedAnswer }
        var elements: [RedisReply] = []
        while elements.count < length {
            guard let element = try value(&place, depth: depth + 1) else { return nil }
            elements.append(element)
        }
        return .array(elements)
    }

    /// The bytes up to CR LF; nil if the end has not arrived yet. CR or LF alone is an error.
    private func line(from start: Int) throws(RedisFailure) -> ArraySlice<UInt8>? {
        guard let end = bytes[start...].prefix(Self.lineByteLimit + 1).firstIndex(where: { $0 == 0x0D || $0 == 0x0A })
        else {
            guard bytes.count - start <= Self.lineByteLimit else { throw .malformedAnswer }
            return nil
        }
        guard bytes[end] == 0x0D else { throw .malformedAnswer }
        guard end + 1 < bytes.count else { return nil }
        guard bytes[end + 1] == 0x0A else { throw .malformedAnswer }
        return bytes[start..<end]
    }

    /// A decimal number without a plus sign or unnecessary zeros, as servers write it.
    private static func number(_ line: ArraySlice<UInt8>) throws(RedisFailure) -> Int64 {
        let digits = line.first == UInt8(ascii: "-") ? line.dropFirst() : line
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }), digits.first != 0x30 || line.count == 1,
            let number = Int64(String(decoding: line, as: UTF8.self))
        else { throw .malformedAnswer }
        return number
    }

    /// The code of an error: its leading upper-case letters. No other text of the server is repeated. A command that the
    /// server does not know has the code `UNKNOWN`.
    private static func code(_ line: ArraySlice<UInt8>) -> String {
        if line.starts(with: "ERR unknown command".utf8) { return "UNKNOWN" }
        let word = line.prefix { $0 != UInt8(ascii: " ") }.prefix(32)
        let isCode = !word.isEmpty && word.allSatisfy { (0x41...0x5A).contains($0) }
        return isCode ? String(decoding: word, as: UTF8.self) : "ERR"
    }
}

/// Writes commands in RESP2, each as an array of strings.
package enum RESPCommand {
    /// Appends one command: its name and its arguments. Each may hold any bytes.
    package static func append(_ words: [some Collection<UInt8>], to output: inout [UInt8]) {
        output.append(contentsOf: "*\(words.count)\r\n".utf8)
        for word in words {
            output.append(contentsOf: "$\(word.count)\r\n".utf8)
            output.append(contentsOf: word)
            output.append(contentsOf: "\r\n".utf8)
        }
    }
}

/// The reason why the store cannot be used, in words that state the remedy and quote no secret.
package struct RedisFailure: Error, Hashable, Sendable, CustomStringConvertible, ExpressibleByStringInterpolation {
    package let description: String
    /// The node to which the slot of the keys is on its way.
    private(set) var target: RedisNode?

    package init(stringLiteral text: String) { description = text }
}

extension RedisFailure {
    static let timedOut: Self = "the server does not answer in time"
    static let malformedAnswer: Self = "what answers does not speak the Redis protocol, or speaks it through TLS"
    static let answerTooLong: Self =
        "an answer of the server is longer than \(DecimalNumber.grouped(RESPReader.byteLimit)) bytes"
    static let unauthenticated: Self =
        "the password or user is refused: check LIMITED_LOGIN_REPLAY_STORE_PASSWORD_FILE and the user in the URL"
    static let needsNoPassword: Self =
        "the server has no password, but one is given: take it out of the URL and the settings, or set requirepass"
    static let perhapsTLS: Self =
        "the server ended the connection before its first answer: if it speaks TLS, begin the URL with rediss"
    static let perhapsPlain: Self =
        "the server does not answer in TLS: if it speaks none, begin the URL with redis instead of rediss"
    static let certificateNeeded: Self = "the server demands a client's certificate"
    static let tooFewReplicas: Self = "the server has too few replicas to write (min-replicas-to-write)"
    static let readOnly: Self =
        "the server is a read-only replica: name the primary; in a cluster or with Sentinel wait for the end of the failover"
    static let outOfMemory: Self = "the server has no memory left: raise its maxmemory"
    static let loading: Self = "the server is busy or still reading its data"
    static let cannotPersist: Self = "the server refuses writes because it cannot save to its disk"
    static let isCluster: Self = "the server runs in cluster mode: begin the URL with redis+cluster://"
    static let isSentinel: Self =
        "the server is a sentinel: begin the URL with redis+sentinel:// and end it with the name of the master"
    static let isNoCluster: Self = "the server does not run in cluster support mode: begin the URL with redis://"
    static let moved: Self = "the keys went to another node of the cluster"
    static let clusterDown: Self = "the cluster is down, or has no node for the keys"
    static let clusterDisagrees: Self = "the nodes of the cluster do not agree which of them holds the keys"
    static let unknownMaster: Self = "the sentinels watch no master of the name in the URL, or are no sentinels"
    static let sentinelOutdated: Self =
        "a sentinel tells an older primary than another one before: it has missed a failover, or was set up anew"
    static let sentinelUnauthenticated: Self =
        "a sentinel refuses the password: check LIMITED_LOGIN_REPLAY_STORE_SENTINEL_PASSWORD_FILE"
    static let newPrimary: Self =
        "the sentinels name a new primary: it is used once every replica of this service has left the former one, in a few seconds"
    static let anonymous: Self = "the server's INFO has no run_id, so a loss of its data would not be seen"
    static let memoryLost: Self = "the server's data were replaced"
    static let clockChanged: Self = "the server's clock was set, or this machine stood still: run NTP"
    static let tooManyRevocations: Self =
        "the set limited-login:revocations has more members than the service writes: find out what else writes there"

    static func noDatabase(_ number: Int) -> Self {
        "the server has no database \(number): raise its setting databases; a cluster has database 0 alone"
    }

    static func notPermitted(command: String) -> Self {
        """
        the user may not run \(command), or not with its keys; needed are INFO, TIME, GET, SET, ZADD, ZRANGEBYSCORE, ZREM and \
        ZREMRANGEBYSCORE, in a cluster CLUSTER, and with Sentinel ROLE: grant them
        """
    }

    static func unknownCommand(_ command: String) -> Self {
        "the server does not know \(command): take its rename-command out of the server's configuration"
    }

    static func evicting(policy: String) -> Self {
        "the server forgets keys when its memory is full (maxmemory-policy \(policy)): set noeviction"
    }

    static func slotMoves(to node: RedisNode) -> Self {
        var failure: Self = "the slot of the keys is on its way to \(node): wait until it has arrived"
        failure.target = node
        return failure
    }

    static func refused(code: String) -> Self { "the server refuses with \(code)" }

    /// A refusal of a command, from the first word of the server's error.
    init(code: String, of command: String) {
        self =
            switch code {
            case "NOAUTH", "WRONGPASS": .unauthenticated
            case "NOPERM": .notPermitted(command: command)
            case "UNKNOWN": .unknownCommand(command)
            case "READONLY": .readOnly
            case "NOREPLICAS": .tooFewReplicas
            case "OOM": .outOfMemory
            case "LOADING", "MASTERDOWN", "BUSY", "TRYAGAIN": .loading
            case "MISCONF": .cannotPersist
            case "CLUSTERDOWN": .clusterDown
            case "MOVED", "ASK", "CROSSSLOT": .isCluster
            default: .refused(code: code)
            }
    }

    init(_ error: ClientError, at node: RedisNode? = nil) {
        switch error {
        case .timedOut(.handshaking): self = .perhapsPlain
        case .timedOut: self = .timedOut
        case .tls(let reason) where reason.contains("wrong version") || reason.contains("packet length"):
            self = .perhapsPlain
        case .tls(let reason) where reason.contains("certificate required"): self = .certificateNeeded
        default: self = node.map { "\($0): \(error)" } ?? "\(error)"
        }
    }
}
