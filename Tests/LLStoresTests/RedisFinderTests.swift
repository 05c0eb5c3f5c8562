import LLHTTP
import LLTestSupport
import Testing

@testable import LLStores

@Suite("The search for the server with the keys")
struct RedisFinderTests {
    private static func finder(_ url: String) throws -> RedisFinder {
        var configuration = RedisReplayStore.Configuration(url: try ReplayStoreURL(parsing: url))
        configuration.limits = .patient
        return RedisFinder(configuration, WakeSignal())
    }

    private static var end: MonotonicInstant { MonotonicClock.now() + patienceOfTests }

    /// The answer of a sentinel about its master.
    private static func sentinel(_ host: String, _ port: UInt16, epoch: Int64) -> ScriptedRedis.Script {
        let words = ["ip", host, "port", "\(port)", "config-epoch", "\(epoch)"]
        return { $0[0] == "SENTINEL" ? ScriptedRedis.array(words.map(ScriptedRedis.string)) : nil }
    }

    /// The answers of a cluster node that names the owner of all slots, and other nodes.
    private static func node(_ owner: UInt16, _ others: [UInt16] = []) -> ScriptedRedis.Script {
        let nodes = ([owner] + others).map { ScriptedRedis.array([ScriptedRedis.string("127.0.0.1"), ":\($0)\r\n"]) }
        let map = ScriptedRedis.array([ScriptedRedis.array([":0\r\n", ":16383\r\n"] + nodes)])
        return { $0 == ["CLUSTER", "SLOTS"] ? map : nil }
    }

    private static func places(_ servers: [ScriptedRedis]) -> String {
        servers.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
    }

    @Test(
        "A sentinel that missed a failover is skipped; if all give an older configuration, they were set up anew",
        arguments: [[5, 5, 5] as [Int64], [1 << 52, 5, 5], [5, 1 << 52, 1 << 52]]
    )
    func epochs(first: [Int64]) throws {
        let primary = try ScriptedRedis()
        let sentinels = try first.map { epoch in
            try ScriptedRedis(script: Self.sentinel("127.0.0.1", primary.port, epoch: epoch))
        }
        defer { for server in sentinels + [primary] { server.stop() } }
        let finder = try Self.finder("redis+sentinel://\(Self.places(sentinels))/main")
        #expect(try finder.find(after: nil, until: Self.end).channel.node.port == primary.port)
        // The sentinel that is asked first is behind the others.
        sentinels[0].setScript(Self.sentinel("127.0.0.1", 1, epoch: 4))
        if first[0] == 5 { #expect(try finder.find(after: nil, until: Self.end).channel.node.port == primary.port) }
        for sentinel in sentinels { sentinel.setScript(Self.sentinel("127.0.0.1", primary.port, epoch: 0)) }
        #expect(throws: RedisFailure.sentinelOutdated) { try finder.find(after: nil, until: Self.end) }
        #expect(try finder.find(after: nil, until: Self.end).channel.node.port == primary.port)
    }

    @Test("One search starts at four places at most, and the next search continues with the others")
    func starts() throws {
        let sentinels = try (0..<6).map { _ in
            try ScriptedRedis { $0[0] == "SENTINEL" ? "-CLUSTERDOWN no\r\n" : nil }
        }
        defer { for server in sentinels { server.stop() } }
        let finder = try Self.finder("redis+sentinel://\(Self.places(sentinels))/main")
        #expect(throws: RedisFailure.clusterDown) { try finder.find(after: nil, until: Self.end) }
        #expect(sentinels.map(\.connectionCount) == [1, 1, 1, 1, 0, 0])
        #expect(throws: RedisFailure.clusterDown) { try finder.find(after: nil, until: Self.end) }
        #expect(sentinels.map(\.connectionCount) == [2, 2, 1, 1, 1, 1])
    }

    @Test("A place that leads to no owner moves to the end of the list, whatever its map names first")
    func rotation() throws {
        let nodes = try (0..<6).map { _ in try ScriptedRedis() }
        defer { for server in nodes { server.stop() } }
        // Every node names the first one as owner, and the first one refuses.
        for node in nodes { node.setScript(Self.node(nodes[0].port, nodes.dropFirst().map(\.port))) }
        nodes[0].setScript { $0[0] == "CLUSTER" ? "-LOADING busy\r\n" : nil }
        let finder = try Self.finder("redis+cluster://\(Self.places([nodes[1]]))")
        for _ in 0..<3 { #expect(throws: RedisFailure.loading) { try finder.find(after: nil, until: Self.end) } }
        #expect(nodes.dropFirst().allSatisfy { $0.connectionCount > 0 })
        // The searches start at one place, then four, then four.
        #expect(nodes.dropFirst().map(\.connectionCount).reduce(0, +) <= 9)
        nodes[0].setScript(Self.node(nodes[0].port))
        #expect(try finder.find(after: nil, until: Self.end).channel.node.port == nodes[0].port)
    }

    @Test("A search ends after six steps from each of its places if every node names another")
    func circle() throws {
        let nodes = try (0..<3).map { _ in try ScriptedRedis() }
        defer { for server in nodes { server.stop() } }
        for index in 0..<3 { nodes[index].setScript(Self.node(nodes[(index + 1) % 3].port)) }
        let finder = try Self.finder("redis+cluster://\(Self.places(nodes))")
        #expect(throws: RedisFailure.clusterDisagrees) { try finder.find(after: nil, until: Self.end) }
        #expect(nodes.map(\.connectionCount) == [6, 6, 6])
    }

    @Test("Only an answer of the last owner itself proves that it handed the keys over")
    func proof() throws {
        let nodes = try (0..<3).map { _ in try ScriptedRedis() }
        defer { for server in nodes { server.stop() } }
        let finder = try Self.finder("redis+cluster://\(Self.places([nodes[2], nodes[0]]))")
        let owner = nodes[0]
        owner.setScript(Self.node(owner.port))
        let found = try finder.find(after: nil, until: Self.end)
        var memory = RedisMemory(.cluster, .patient)
        _ = try RedisSession(over: found, &memory, limits: .patient, until: Self.end)
        let last = try #require(memory.last)
        #expect(memory.recent(at: last.answeredAt + .milliseconds(9_999)) == last)
        #expect(memory.recent(at: last.answeredAt + .seconds(10)) == nil)
        for node in nodes { node.setScript(Self.node(nodes[2].port)) }
        #expect(try finder.find(after: last, until: Self.end).handedOverBy == "\(owner.port)a")
        // The search starts at the last owner, although the new owner is the preferred place now.
        #expect(try finder.find(after: last, until: Self.end).handedOverBy == "\(owner.port)a")
        #expect(try finder.find(after: nil, until: Self.end).handedOverBy == nil)
        // The last owner names a node that names another node.
        owner.setScript(Self.node(nodes[1].port))
        #expect(try finder.find(after: last, until: Self.end).handedOverBy == nil)
    }
}
