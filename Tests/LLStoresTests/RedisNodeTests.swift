import LLHTTP
import Testing

@testable import LLStores

@Suite("Nodes named by a cluster or a sentinel")
struct RedisNodeTests {
    private static let teller = RedisNode(host: "10.0.0.9", port: 6379)

    /// Parses an answer of a cluster's node.
    private static func reply(_ text: String) throws -> RedisReply? {
        var reader = RESPReader(from: teller)
        let bytes = Array(text.utf8)
        reader.feed(bytes, count: bytes.count)
        return try reader.next()
    }

    @Test(
        "A redirection is parsed, and any other error keeps its code",
        arguments: [
            ("MOVED 3999 127.0.0.1:6381", RedisReply.redirect(nil)), ("MOVED 3999 :6381", .redirect(nil)),
            ("ASK 12182 127.0.0.1:17101", .redirect(RedisNode(host: "127.0.0.1", port: 17_101))),
            ("ASK 1 Node-1.example:7000", .redirect(RedisNode(host: "node-1.example", port: 7_000))),
            ("ASK 1 ::1:7000", .redirect(RedisNode(host: "::1", port: 7_000))),
            ("ASK 1 :7000", .redirect(RedisNode(host: "10.0.0.9", port: 7_000))),
            ("ASK 16384 a:7000", .error(code: "ASK")), ("ASK -1 a:7000", .error(code: "ASK")),
            ("ASK x a:7000", .error(code: "ASK")), ("ASK 1 a:0", .error(code: "ASK")),
            ("ASK 1 a:65536", .error(code: "ASK")), ("ASK 1 a", .error(code: "ASK")),
            ("ASK 1 ?:1", .error(code: "ASK")), ("ASK 1 a b:7000", .error(code: "ASK")),
            ("ASK 1 a:7000 x", .error(code: "ASK")), ("MOVED", .error(code: "MOVED")),
            ("MOVED 1 a:", .error(code: "MOVED")), ("ASKING 1 a:1", .error(code: "ASKING")),
            ("ask 1 a:7000", .error(code: "ERR")), ("CLUSTERDOWN The cluster is down", .error(code: "CLUSTERDOWN")),
            ("TRYAGAIN Multiple keys", .error(code: "TRYAGAIN")),
        ]
    )
    func redirections(text: String, reply: RedisReply) throws {
        #expect(try Self.reply("-\(text)\r\n") == reply)
    }

    @Test(
        "A node's refusal gives its reason",
        arguments: [
            ("CLUSTERDOWN", RedisFailure.clusterDown), ("TRYAGAIN", .loading), ("READONLY", .readOnly),
            ("MASTERDOWN", .loading), ("CROSSSLOT", .isCluster),
        ]
    )
    func refusals(code: String, failure: RedisFailure) {
        #expect(throws: failure) { try RedisReply.error(code: code).orFailure(of: "GET") }
        #expect(throws: RedisFailure.notPermitted(command: "GET")) {
            try RedisReply.error(code: "NOPERM").orFailure(of: "GET")
        }
        #expect(throws: RedisFailure.moved) { try RedisReply.redirect(nil).orFailure(of: "GET") }
        #expect(throws: RedisFailure.slotMoves(to: Self.teller)) {
            try RedisReply.redirect(Self.teller).orFailure(of: "GET")
        }
    }

    @Test("The cluster map gives the owner of the keys first, and every node once")
    func map() throws {
        let text =
            "*2\r\n*4\r\n:0\r\n:8191\r\n*3\r\n$1\r\na\r\n:7000\r\n$2\r\nid\r\n*4\r\n$1\r\nb\r\n:7001\r\n$2\r\nid\r\n*2\r\n$2\r\nip\r\n$1\r\nx\r\n"
            + "*5\r\n:8192\r\n:16383\r\n*3\r\n$0\r\n\r\n:7002\r\n$2\r\nid\r\n*2\r\n$-1\r\n:7003\r\n*2\r\n$1\r\n?\r\n:7004\r\n"
        let reply = try #require(try Self.reply(text))
        let map = try reply.clusterMap(toldBy: Self.teller)
        #expect(map.owner == RedisNode(host: "10.0.0.9", port: 7_002))
        #expect(map.nodes.map(\.description) == ["10.0.0.9:7002", "a:7000", "b:7001", "10.0.0.9:7003"])
        #expect(try RedisReply.array([]).clusterMap(toldBy: Self.teller).owner == nil)
    }

    @Test(
        "An answer that is not a map is refused",
        arguments: [
            "+OK", "$-1", "*1\r\n:1", "*1\r\n*2\r\n:1\r\n:2", "*1\r\n*3\r\n:0\r\n:16383\r\n:7",
            "*1\r\n*3\r\n+a\r\n:1\r\n*0",
        ]
    )
    func noMap(text: String) throws {
        let reply = try #require(try Self.reply(text + "\r\n"))
        #expect(throws: RedisFailure.malformedAnswer) { try reply.clusterMap(toldBy: Self.teller) }
    }

    @Test("A range that ends before it begins, or beyond the slots, owns nothing")
    func oddRanges() throws {
        for (first, last) in [("16383", "0"), ("-5", "16138"), ("16140", "9223372036854775807")] {
            let reply = try #require(try Self.reply("*1\r\n*3\r\n:\(first)\r\n:\(last)\r\n*2\r\n$1\r\na\r\n:7000\r\n"))
            #expect(try reply.clusterMap(toldBy: Self.teller).owner == nil)
        }
    }

    @Test("A sentinel's answer gives the primary and the number of the configuration")
    func sentinels() throws {
        let words = ["name", "main", "ip", "10.0.0.1", "port", "6380", "flags", "master", "config-epoch", "3"]
        let answer = try RedisReply.array(words.map { .string(Array($0.utf8)) }).primary(toldBy: Self.teller)
        #expect(answer == (RedisNode(host: "10.0.0.1", port: 6_380), 3))
        let failures: [(RedisReply, RedisFailure)] = [
            (.error(code: "ERR"), .unknownMaster), (.error(code: "NOAUTH"), .sentinelUnauthenticated),
            (.error(code: "NOPERM"), .notPermitted(command: "SENTINEL")), (.null, .malformedAnswer),
            (.array(words.dropLast(2).map { .string(Array($0.utf8)) }), .malformedAnswer),
            (.array(words.map { .string(Array(($0 == "6380" ? "0" : $0).utf8)) }), .malformedAnswer),
        ]
        for (reply, failure) in failures { #expect(throws: failure) { _ = try reply.primary(toldBy: Self.teller) } }
    }

    @Test(
        "A node named by address needs a certificate for the sentinel's name, or for itself if that has none",
        arguments: [
            ("::1", "localhost", "localhost"), ("::1", "s.example", "s.example"), ("::1", "127.0.0.1", "::1"),
            ("::1", nil, "::1"), ("n.example", "localhost", "n.example"),
        ] as [(String, String?, String)]
    )
    func certificateNames(host: String, start: String?, name: String) {
        let start = start.map { RedisNode(host: $0, port: 1) }
        #expect(RedisNode(host: host, port: 2).certificateName(through: start) == name)
    }

    @Test("The slot of the keys is the slot of their hash tag")
    func slot() {
        var crc: UInt16 = 0
        for byte in "limited-login".utf8 {
            crc ^= UInt16(byte) << 8
            for _ in 0..<8 { crc = crc & 0x8000 != 0 ? crc << 1 ^ 0x1021 : crc << 1 }
        }
        #expect(Int64(crc % 16_384) == RedisKeys.clusterSlot)
        #expect(RedisKeys(.cluster).prefix.hasPrefix("{limited-login}"))
        // The keys of a single server keep their names, so that an update forgets nothing.
        #expect(RedisKeys(.single).data == "limited-login:life")
        #expect(RedisKeys(.single).revocations == "limited-login:revocations")
    }

    @Test("Nested arrays are parsed to a bounded depth")
    func depth() throws {
        func nested(_ depth: Int) -> String { String(repeating: "*1\r\n", count: depth) + ":1\r\n" }
        #expect(try Self.reply(nested(5)) != nil)
        #expect(throws: RedisFailure.malformedAnswer) { try Self.reply(nested(6)) }
        #expect(try Self.reply("*2\r\n*0\r\n*1\r\n*0\r\n") == .array([.array([]), .array([.array([])])]))
    }
}
