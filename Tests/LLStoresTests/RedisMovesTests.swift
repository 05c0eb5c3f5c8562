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
        /// True if each node names the next one as the owner.
        var isLoop = false
        /// True if each node names itself as the owner and redirects all commands.
        var isTrap = false
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

    var connectionCount: Int { nodes.map(\.connectionCount).reduce(0, +) }

    func begin(to target: Int) { slot.withLock { $0.importer = target } }
    func move(to target: Int) { slot.withLock { ($0.owner, $0.importer) = (target, nil) } }
    func promote() { slot.withLock { $0.tookOver = true } }
    func loop(_ isLoop: Bool) { slot.withLock { $0.isLoop = isLoop } }
    func trap(_ isTrap: Bool) { slot.withLock { $0.isTrap = isTrap } }

    private static func answer(_ words: [String], at node: Int, _ ports: [UInt16], _ slot: inout Slot) -> String? {
        switch words[0] {
        case "CLUSTER":
            let owner = slot.isTrap ? node : slot.isLoop ? (node + 1) % ports.count : slot.owner
            let place = ScriptedRedis.array([ScriptedRedis.string("127.0.0.1"), ":\(ports[owner])\r\n"])
            return ScriptedRedis.array([ScriptedRedis.array([":0\r\n", ":16383\r\n", place])])
        case "INFO":
            let info = ScriptedRedis.info(name: "\(ports[node])", uptime: 1_000_000)
            return slot.tookOver && node == 1 ? info.replacing("offset:-1", with: "offset:77") : info
        case "GET", "SET", "ZADD", "ZREM", "ZRANGEBYSCORE", "ZREMRANGEBYSCORE": break
        default: return nil
        }
        if slot.isTrap || slot.isLoop || node != slot.owner {
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
    private let cluster: MovingCluster
    private let store: StoreUnderTest

    init() throws {
        cluster = try MovingCluster()
        store = try StoreUnderTest("redis+cluster://127.0.0.1:\(cluster.nodes[0].port)") { limits in
            limits.questionTimeout = .seconds(120)
            limits.revocationPause = .milliseconds(20)
            limits.handOverTime = .seconds(120)
        }
        #expect(store.waitUntilUp())
    }

    @Test(
        "While a slot is on its way nothing is accepted; after its arrival nothing is forgotten",
        arguments: [false, true]
    )
    func onItsWay(tookOver: Bool) throws {
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

    @Test(
        "Nodes that redirect without end are asked again after growing pauses, until one keeps the slot",
        arguments: [false, true]
    )
    func loop(isTrap: Bool) throws {
        #expect(store.use(1) == .accepted)
        if isTrap { cluster.trap(true) } else { cluster.loop(true) }
        let (connections, start) = (cluster.connectionCount, MonotonicClock.now())
        while MonotonicClock.now() < start + .seconds(2) { #expect(store.use(2) == .unavailable) }
        let seconds = Int(MonotonicClock.now().nanoseconds(since: start) / 1_000_000_000)
        // There is one search at once, seven more in two seconds, and two in each further second. Each search starts at
        // four places at most and takes at most six steps from each.
        #expect(cluster.connectionCount - connections <= (8 + 2 * seconds) * (isTrap ? 1 : 24))
        #expect(store.failures == [isTrap ? .moved : .clusterDisagrees])
        if isTrap { cluster.trap(false) } else { cluster.loop(false) }
        #expect(store.wait { $0.use(3) == .accepted })
    }
}
