import Testing

@testable import LLStores

@Suite("The Redis protocol")
struct RedisProtocolTests {
    @Test(
        "Every kind of answer is parsed, whole or byte by byte",
        arguments: [
            ("+OK\r\n", RedisReply.status("OK")), ("$-1\r\n", .null), (":1700000000\r\n", .integer(1_700_000_000)),
            ("$5\r\nab\r\nc\r\n", .string(Array("ab\r\nc".utf8))), ("$0\r\n\r\n", .string([])),
            ("-OOM command not allowed\r\n", .error(code: "OOM")), ("-ERR secret\r\n", .error(code: "ERR")),
            ("-hunter2 is wrong\r\n", .error(code: "ERR")), ("-\r\n", .error(code: "ERR")),
            ("*2\r\n$1\r\na\r\n:2\r\n", .array([.string([97]), .integer(2)])), ("*0\r\n", .array([])),
            ("*3\r\n$-1\r\n-NOPERM no\r\n+\r\n", .array([.null, .error(code: "NOPERM"), .status("")])),
            ("*-1\r\n", .null), (":0\r\n", .integer(0)), (":-9223372036854775808\r\n", .integer(.min)),
            ("+\u{FFFD}\r\n", .status("\u{FFFD}")),
        ]
    )
    func replies(text: String, reply: RedisReply) throws {
        let bytes = Array(text.utf8)
        var whole = RESPReader()
        whole.feed(bytes + bytes, count: bytes.count * 2)
        #expect(try whole.next() == reply)
        #expect(try whole.next() == reply)
        #expect(try whole.next() == nil)
        var pieces = RESPReader()
        for (index, byte) in bytes.enumerated() {
            #expect(try pieces.next() == nil, "after \(index) bytes")
            pieces.feed([byte], count: 1)
        }
        #expect(try pieces.next() == reply)
        #expect(pieces.waitingCount == 0)
    }

    @Test(
        "An invalid answer, or one of a type that is never requested, ends the connection, however it is split",
        arguments: [
            "HTTP/1.1 400 Bad Request\r\n\r\n", "\u{15}\u{3}\u{1}\u{0}\u{2}\u{2}\r\n", "\r\n", "%1\r\n", "_\r\n",
            "#t\r\n", "*-2\r\n", "$-2\r\n", "$\r\n", "$+1\r\na\r\n", "$01\r\na\r\n", "$-0\r\n", "$-01\r\n", "$1 \r\n",
            "$99999999999999999999\r\n", ":x\r\n", ":\r\n", ":-\r\n", ":+1\r\n", ":9223372036854775808\r\n", ":1\n",
            "+OK\n", "+O\rK\r\n", "+O\nK\r\n", "-ERR\r\r\n", "$1\r\nab\r\n", "$1\r\na\n\r\n", "$1\r\na\rb+OK\r\n",
            "*1\r\n?\r\n",
        ]
    )
    func malformed(text: String) { #expect(Self.end(of: Array(text.utf8)) == .malformedAnswer) }

    @Test(
        "An answer that is too long is refused before it has arrived",
        arguments: [
            ("*4097\r\n", 0), ("*2147483647\r\n", 0), ("*4294967295\r\n", 0), ("$524289\r\n", 0), ("$500000000\r\n", 0),
            ("$524278\r\n", 0), ("+", 1_025), ("-", 1_025), (":", 1_025), ("*2\r\n$524274\r\n", 0),
        ]
    )
    func tooLong(head: String, more: Int) {
        // A string's length shows at once that the answer is too long. A line or list that is too long is malformed.
        let failure =
            head.contains("$") || head.hasPrefix("*2147") || head.hasPrefix("*4294")
            ? RedisFailure.answerTooLong : .malformedAnswer
        #expect(Self.end(of: Array(head.utf8) + [UInt8](repeating: 97, count: more)) == failure)
        let fewer = Array(head.utf8) + [UInt8](repeating: 97, count: max(0, more - 1))
        #expect(Self.end(of: fewer) == (more > 0 ? nil : failure))
    }

    @Test("The longest possible answers are parsed")
    func longest() throws {
        let text = String(repeating: "a", count: RESPReader.byteLimit - 11)
        #expect(Self.end(of: Array("$\(text.utf8.count)\r\n\(text)\r\n".utf8)) == nil)
        let elements = Array("*1024\r\n".utf8) + [UInt8]((0..<1_024).flatMap { _ in Array(":1\r\n".utf8) })
        #expect(Self.end(of: elements) == nil)
        #expect(Self.end(of: Array("+\(String(repeating: "a", count: RESPReader.lineByteLimit))\r\n".utf8)) == nil)
        // Each element is short enough, but their sum is not.
        let half = Array("$300000\r\n".utf8) + [UInt8](repeating: 97, count: 300_000) + Array("\r\n".utf8)
        #expect(Self.end(of: Array("*2\r\n".utf8) + half + half) == .answerTooLong)
    }

    /// The failure of parsing these bytes; nil if they are whole answers and perhaps the beginning of another. It must
    /// be the same for the bytes at once, byte by byte, and in pieces.
    private static func end(of bytes: [UInt8]) -> RedisFailure? {
        let ends = [bytes.count, bytes.count > 100_000 ? 100 : 1, 7, 1_000].map { size -> RedisFailure? in
            var reader = RESPReader()
            do throws(RedisFailure) {
                for start in stride(from: 0, to: bytes.count, by: size) {
                    let piece = Array(bytes[start..<min(start + size, bytes.count)])
                    reader.feed(piece, count: piece.count)
                    while try reader.next() != nil {}
                }
            } catch {
                return error
            }
            return nil
        }
        #expect(ends.allSatisfy { $0 == ends[0] })
        return ends[0]
    }

    @Test("Commands can carry any bytes")
    func commands() {
        var output: [UInt8] = []
        RESPCommand.append([Array("SET".utf8), [0, 13, 10, 255], []], to: &output)
        #expect(output == Array("*3\r\n$3\r\nSET\r\n$4\r\n".utf8) + [0, 13, 10, 255] + Array("\r\n$0\r\n\r\n".utf8))
        output = []
        RESPCommand.append(["GET", "ä"].map(\.utf8), to: &output)
        #expect(String(decoding: output, as: UTF8.self) == "*2\r\n$3\r\nGET\r\n$2\r\nä\r\n")
    }

    private static let noEviction = "maxmemory:0\r\nmaxmemory_policy:noeviction"
    private static let info = """
        # Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:0123456789abcdef0123456789abcdef01234567\r\n\
        # Memory\r\n\(noEviction)\r\n# Persistence\r\nloading:0\r\naof_enabled:1\r\n\
        # Replication\r\nrole:master\r\nsecond_repl_offset:-1\r\n
        """

    @Test(
        "An unreliable server is refused, with a remedy",
        arguments: [
            ("redis_mode:standalone", "redis_mode:cluster", RedisFailure.isCluster),
            ("redis_mode:standalone", "redis_mode:sentinel", .isSentinel), ("role:master", "role:slave", .readOnly),
            ("loading:0", "loading:1", .loading), ("run_id:0", "run_id:g", .malformedAnswer),
            ("run_id:", "x:", .anonymous), ("second_repl_offset:-1", "second_repl_offset:5", .malformedAnswer),
            (noEviction, "maxmemory:9\r\nmaxmemory_policy:allkeys-lru", .evicting(policy: "allkeys-lru")),
            (noEviction, "maxmemory:9\r\nmaxmemory_policy:volatile-ttl", .evicting(policy: "volatile-ttl")),
            (noEviction, "maxmemory:9\r\nmaxmemory_policy:\u{1B}[31m", .evicting(policy: "unknown")),
            (noEviction, "x:1", .evicting(policy: "unknown")),
        ]
    )
    func servers(part: String, other: String, failure: RedisFailure) throws {
        #expect(throws: Never.self) { try RedisServerFacts(info: Self.info) }
        let bad = Self.info.split(separator: part, omittingEmptySubsequences: false).joined(separator: other)
        #expect(bad != Self.info)
        #expect(throws: failure) { try RedisServerFacts(info: bad) }
    }

    @Test("A cluster node is accepted if a cluster is configured")
    func clusterMode() throws {
        let node = Self.info.split(separator: "redis_mode:standalone").joined(separator: "redis_mode:cluster")
        #expect(throws: Never.self) { try RedisServerFacts(info: node, isInCluster: true) }
        #expect(throws: Never.self) { try RedisServerFacts(info: Self.info, isInCluster: true) }
    }

    @Test("A server gets another identity by a restart and by taking over")
    func identities() throws {
        let plain = try RedisServerFacts(info: Self.info)
        let taken = "second_repl_offset:7\r\nmaster_replid:abc"
        let promoted = Self.info.split(separator: "second_repl_offset:-1").joined(separator: taken)
        #expect(try RedisServerFacts(info: promoted).identity == "\(plain.identity):abc")
    }
}
