import LLHTTP
import LLTestSupport
import Testing

@testable import LLStores

/// Cluster nodes with one set of keys, between which the slot of the keys moves.
private final class MovingCluster: Sendable {
    private struct Slot {
        var owner = 0
        /// The node to which the slot is moving. All keys but those of the memory's start are there already.
        var importer: Int?
        var keys: [String: String] = [:]
        /// True if the second node took over from another once.
        var tookOver = false
    }

    let nodes: [ScriptedRedis]
    private let slot = Locked(Slot())

    init() throws {
        nodes = try (0..<3).map { _ in try ScriptedRedis() }
        let (slot, ports) = (slot, nodes.map(\.port))
        for (index, node) in nodes.enumerated() {
            node.setScript { words in slot.withLock { Self.answer(words, at: index, ports, &$0) } }
        }
    }

    deinit { for node in nodes { node.stop() } }

    func begin(to target: Int) { slot.withLock { $0.importer = target } }
    func move(to target: Int) { slot.withLock { ($0.owner, $0.importer) = (target, nil) } }
    func promote() { slot.withLock { $0.tookOver = true } }

    private static func answer(_ words: [String], at node: Int, _ ports: [UInt16], _ slot: inout Slot) -> String? {
        switch words[0] {
        case "CLUSTER":
            let place = ScriptedRedis.array([ScriptedRedis.string("127.0.0.1"), ":\(ports[slot.owner])\r\n"])
            return ScriptedRedis.array([ScriptedRedis.array([":0\r\n", ":16383\r\n", place])])
        case "INFO":
            let info = ScriptedRedis.info(name: "\(ports[node])", uptime: 1_000_000)
            return slot.tookOver && node == 1 ? info.replacing("offset:-1", with: "offset:77") : info
        case "GET", "SET", "ZADD", "ZREM", "ZRANGEBYSCORE", "ZREMRANGEBYSCORE": break
        default: return nil
        }
        if node != slot.owner {
            return "-MOVED \(RedisKeys.clusterSlot) 127.0.0.1:\(ports[slot.owner])\r\n"
        }
        if let importer = slot.importer, !words[1].contains("life") {
            return "-ASK \(RedisKeys.clusterSlot) 127.0.0.1:\(ports[importer])\r\n"
        }
        switch words[0] {
        case "GET": return slot.keys[words[1]].map(ScriptedRedis.string) ?? "$-1\r\n"
        case "SET":
            if words.contains("NX"), slot.keys[words[1]] != nil { return "$-1\r\n" }
            slot.keys[words[1]] = words[2]
            return "+OK\r\n"
        case "ZRANGEBYSCORE": return "*0\r\n"
        default: return ":0\r\n"
        }
    }
}

@Suite("A slot that moves", .live)
struct RedisMovesTests {
    @Test(
        "While a slot is on its way nothing is accepted; after its arrival nothing is forgotten",
        arguments: [false, true]
    )
    func onItsWay(tookOver: Bool) throws {
        let cluster = try MovingCluster()
        let store = try StoreUnderTest("redis+cluster://127.0.0.1:\(cluster.nodes[0].port)") { limits in
            limits.questionTimeout = .seconds(120)
            limits.revocationPause = .milliseconds(20)
            limits.handOverTime = .seconds(120)
        }
        #expect(store.waitUntilUp())
        if tookOver { cluster.promote() }
        let born = try #require(store.store.completeSince)
        #expect(store.use(1, issuedAt: born) == .accepted)
        cluster.begin(to: 1)
        for number: UInt64 in 1...3 { #expect(store.use(number, issuedAt: born) == .unavailable) }
        let target = RedisNode(host: "127.0.0.1", port: cluster.nodes[1].port)
        #expect(store.wait { $0.failures == [.slotMoves(to: target)] })
        cluster.move(to: 1)
        #expect(store.wait { $0.use(1, issuedAt: born) == .nonceUsed })
        #expect(store.use(4, issuedAt: born) == .accepted)
        #expect(store.store.completeSince == born)
    }
}
