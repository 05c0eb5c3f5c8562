import LLHTTP
import LLTestSupport
import Testing

@testable import LLStores

/// One server, and connections that report the start of its memory.
private struct Greeter {
    let server: RedisServer
    private static let keys = RedisKeys.usual
    private var node: RedisNode { RedisNode(host: "127.0.0.1", port: server.port) }

    init() throws { server = try RedisServer() }

    /// - Parameters:
    ///   - last: the replica's last knowledge, of any server.
    ///   - name: the name of the last owner's history if that handed the keys over.
    /// - Returns: the replica's knowledge afterwards.
    func shake(after last: RedisMemory? = nil, handedOverBy name: String? = nil) throws -> RedisMemory {
        let end = MonotonicClock.now() + patienceOfTests
        let stream = try ClientStream.open(node.host, port: node.port, names: NameResolver(), until: end)
        let found = RedisFinder.Found(channel: RedisChannel(stream, WakeSignal(), node), handedOverBy: name)
        var memory = last ?? RedisMemory(.single, ReplayLimits())
        _ = try RedisSession(over: found, &memory, limits: ReplayLimits(), until: end)
        return memory
    }

    func set(_ key: String, _ value: String) throws {
        #expect(try server.send("SET \(key) \"\(value)\"").hasPrefix("+OK"))
    }

    func forgetAll() throws { #expect(try server.send("FLUSHALL").hasPrefix("+OK")) }

    /// A second server that has the keys of this one.
    func successor(of memory: RedisMemory) throws -> Greeter {
        let other = try Greeter()
        try other.set(Self.keys.data, memory.start.text)
        try other.set(Self.keys.run(memory.identity), memory.start.text)
        return other
    }

    func run(_ memory: RedisMemory) throws -> String {
        try server.send("GET \(Self.keys.run(memory.identity))")
    }
}

extension RedisMemory {
    fileprivate var start: MemoryStart { last?.known.start ?? MemoryStart(completeSince: 0, isAfterLoss: false) }
    fileprivate var identity: String { last?.known.identity ?? "" }
}

/// The judgement itself has a table of tests. These tests prove that it is asked with true facts, and written.
@Suite("The start of a server's memory", .live, .needsRedis)
struct RedisHandshakeTests {
    @Test("Emptied data are lost, whichever replica comes first, and all replicas agree", arguments: [false, true])
    func emptied(isNewReplicaFirst: Bool) throws {
        let greeter = try Greeter()
        let first = try greeter.shake()
        #expect(!first.start.isAfterLoss)
        #expect(try greeter.shake(after: first).start == first.start)
        try greeter.forgetAll()
        let fresh = isNewReplicaFirst ? try greeter.shake() : nil
        #expect(fresh?.start.isAfterLoss != true)
        let second = try greeter.shake(after: first)
        #expect(second.start.isAfterLoss && second.start.completeSince > first.start.completeSince)
        for last in [nil, first, fresh, second] {
            #expect(try greeter.shake(after: last).start == second.start)
        }
    }

    @Test("Keys that were handed over are taken once, and marked; without a proof the memory begins anew")
    func handedOver() throws {
        let first = try Greeter()
        let old = try first.shake()
        let second = try first.successor(of: old)
        let moved = try second.shake(after: old, handedOverBy: "f00")
        #expect(moved.start == old.start)
        #expect(try second.run(old).contains("moved"))
        // A replica without a proof relies on the mark.
        #expect(try second.shake(after: old).start == old.start)
        let third = try first.successor(of: old)
        let lost = try third.shake(after: old)
        #expect(lost.start.isAfterLoss && lost.start.completeSince > old.start.completeSince)
        #expect(try third.shake().start == lost.start)
    }

    @Test("The data's key is written with each new start")
    func data() throws {
        let greeter = try Greeter()
        let first = try greeter.shake()
        #expect(try greeter.server.send("GET \(RedisKeys.usual.data)").contains(first.start.text))
        try greeter.set(RedisKeys.usual.data, "1")
        #expect(try greeter.shake().start == first.start)
        #expect(try greeter.server.send("GET \(RedisKeys.usual.data)").contains(first.start.text))
    }
}
