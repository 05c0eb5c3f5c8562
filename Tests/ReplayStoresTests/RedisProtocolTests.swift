import ReplayStores
import Testing

@Suite("The Redis protocol")
struct RedisProtocolTests {
    @Test(
        "Every kind of answer is read, whole or byte by byte",
        arguments: [
            ("+OK\r\n", RedisReply.status("OK")), ("$-1\r\n", .null), (":1700000000\r\n", .integer(1_700_000_000)),
            ("$5\r\nab\r\nc\r\n", .string(Array("ab\r\nc".utf8))), ("$0\r\n\r\n", .string([])),
            ("-OOM command not allowed\r\n", .error(code: "OOM")), ("-ERR secret\r\n", .error(code: "ERR")),
            ("-hunter2 is wrong\r\n", .error(code: "ERR")), ("-\r\n", .error(code: "ERR")),
            ("*2\r\n$1\r\na\r\n:2\r\n", .array([.string([97]), .integer(2)])), ("*0\r\n", .array([])),
            ("*-1\r\n", .null),
        ]
    )
    func replies(text: String, reply: RedisReply) throws {
        let bytes = Array(text.utf8)
        let whole = try RedisReplyReader(limit: 65_536)
        try whole.feed(bytes + bytes, count: bytes.count * 2)
        #expect(try whole.next() == reply)
        #expect(try whole.next() == reply)
        #expect(try whole.next() == nil)
        let pieces = try RedisReplyReader(limit: 65_536)
        for (index, byte) in bytes.enumerated() {
            #expect(try pieces.next() == nil, "after \(index) bytes")
            try pieces.feed([byte], count: 1)
        }
        #expect(try pieces.next() == reply)
    }

    @Test(
        "What is no answer, or announces more than is ever asked for, ends the connection",
        arguments: [
            "HTTP/1.1 400 Bad Request\r\n\r\n", "\u{15}\u{3}\u{1}\u{0}\u{2}\u{2}\r\n", "*17\r\n", "*2147483647\r\n",
            "*4294967295\r\n", "*-2\r\n", "$-2\r\n", "$99999999999999999999\r\n", ":x\r\n", ":\r\n",
            "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "$1\r\nab\r\n+OK\r\nx",
        ]
    )
    func malformed(text: String) throws {
        let reader = try RedisReplyReader(limit: 65_536)
        let bytes = Array(text.utf8)
        try reader.feed(bytes, count: bytes.count)
        #expect(throws: RedisProtocolError.self) {
            while try reader.next() != nil {}
        }
    }

    @Test("An answer that does not end is given up at the limit")
    func endless() throws {
        let reader = try RedisReplyReader(limit: 1_000)
        let bytes = Array("$500000000\r\n".utf8)
        try reader.feed(bytes, count: bytes.count)
        #expect(try reader.next() == nil)
        let more = [UInt8](repeating: 97, count: 1_000)
        try reader.feed(more, count: more.count)
        #expect(throws: RedisProtocolError.tooLong) { try reader.next() }
    }

    @Test("Commands carry any bytes")
    func commands() {
        var output: [UInt8] = []
        #expect(RedisCommand.append([Array("SET".utf8), [0, 13, 10, 255], []], to: &output))
        #expect(output == Array("*3\r\n$3\r\nSET\r\n$4\r\n".utf8) + [0, 13, 10, 255] + Array("\r\n$0\r\n\r\n".utf8))
        output = []
        #expect(RedisCommand.append(["GET", "ä"], to: &output))
        #expect(String(decoding: output, as: UTF8.self) == "*2\r\n$3\r\nGET\r\n$2\r\nä\r\n")
    }

    private static let info = """
        # Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:0123456789abcdef0123456789abcdef01234567\r\n\
        # Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n# Persistence\r\nloading:0\r\naof_enabled:1\r\n\
        # Replication\r\nrole:master\r\nsecond_repl_offset:-1\r\n
        """

    @Test(
        "A server that cannot be relied on is refused, with what to do",
        arguments: [
            ("redis_mode:standalone", "redis_mode:cluster", RedisFailure.unsupportedMode("cluster")),
            ("redis_mode:standalone", "redis_mode:sentinel", .unsupportedMode("sentinel")),
            ("role:master", "role:slave", .readOnly), ("loading:0", "loading:1", .loading),
            ("run_id:0", "run_id:g", .malformedAnswer), ("run_id:", "x:", .malformedAnswer),
            ("second_repl_offset:-1", "second_repl_offset:5", .malformedAnswer),
            (
                "maxmemory:0\r\nmaxmemory_policy:noeviction", "maxmemory:9\r\nmaxmemory_policy:allkeys-lru",
                .evicting(policy: "allkeys-lru")
            ),
            (
                "maxmemory:0\r\nmaxmemory_policy:noeviction", "maxmemory:9\r\nmaxmemory_policy:volatile-ttl",
                .evicting(policy: "volatile-ttl")
            ),
            (
                "maxmemory:0\r\nmaxmemory_policy:noeviction", "maxmemory:9\r\nmaxmemory_policy:\u{1B}[31m",
                .evicting(policy: "unknown")
            ),
            ("maxmemory:0\r\nmaxmemory_policy:noeviction", "x:1", .evicting(policy: "unknown")),
        ]
    )
    func servers(part: String, other: String, failure: RedisFailure) throws {
        #expect(throws: Never.self) { try RedisServerFacts(info: Self.info) }
        let bad = Self.info.split(separator: part, omittingEmptySubsequences: false).joined(separator: other)
        #expect(bad != Self.info)
        #expect(throws: failure) { try RedisServerFacts(info: bad) }
    }

    @Test("A server has another identity after a start and after it took over")
    func identities() throws {
        let plain = try RedisServerFacts(info: Self.info)
        let promoted = Self.info.split(separator: "second_repl_offset:-1").joined(
            separator: "second_repl_offset:7\r\nmaster_replid:abc"
        )
        #expect(try RedisServerFacts(info: promoted).identity == "\(plain.identity):abc")
    }

    @Test("Every failure has a sentence of its own")
    func sentences() {
        let all: [RedisFailure] = [
            .connection("x"), .timedOut, .malformedAnswer, .unauthenticated, .notPermitted, .readOnly, .outOfMemory,
            .evicting(policy: "allkeys-lru"), .loading, .cannotPersist, .unsupportedMode("cluster"), .memoryLost,
            .refused(code: "X"),
        ]
        #expect(Set(all.map(\.description)).count == all.count)
    }
}
