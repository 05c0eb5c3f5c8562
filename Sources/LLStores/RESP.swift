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

    /// Adds the first `count` bytes of `buffer`, which were received.
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
        guard kind == UInt8(ascii: "*") else { return try string(&place, Int(length)) }
        guard depth < Self.depthLimit, length <= Self.elementLimit else { throw .malformedAnswer }
        var elements: [RedisReply] = []
        while elements.count < length {
            guard let element = try value(&place, depth: depth + 1) else { return nil }
            elements.append(element)
        }
        return .array(elements)
    }

    private func string(_ place: inout Int, _ length: Int) throws(RedisFailure) -> RedisReply? {
        let (start, end) = (place, place + length)
        guard end + 2 - position <= Self.byteLimit else { throw .answerTooLong }
        guard end + 2 <= bytes.count else { return nil }
        guard bytes[end] == 0x0D, bytes[end + 1] == 0x0A else { throw .malformedAnswer }
        place = end + 2
        return .string(Array(bytes[start..<end]))
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
    package static func append(_ words: [[UInt8]], to output: inout [UInt8]) {
        output.append(contentsOf: "*\(words.count)\r\n".utf8)
        for word in words {
            output.append(contentsOf: "$\(word.count)\r\n".utf8)
            output.append(contentsOf: word)
            output.append(contentsOf: "\r\n".utf8)
        }
    }
}
