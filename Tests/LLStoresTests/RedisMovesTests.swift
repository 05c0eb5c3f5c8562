import LLHTTP
import LLTestSupport
import Testing

@testable import LLStores

/// Cluster nodes between which the slot of the keys moves.
private final class MovingCluster: Sendable {
    private struct Slot {
        var owner = 0
        /// The node to which the slot is moving.
        var importer: Int?
        /// The keys of each node.
        var keys: [[String: String]]
        /// Seconds since each node's start.
        var uptimes: [Int]
        /// True if each node names the next one as the owner.
        var isLoop = false
        /// True if each node names itself as the owner and redirects all commands.
        var isTrap = false
    }

    let nodes: [ScriptedRedis]
    private let slot: Locked<Slot>

    init(_ count: Int = 3) throws {
        nodes = try (0..<count).map { _ in try ScriptedRedis() }
        let (zeros, long) = (
            Array(repeating: [String: String](), count: count), Array(repeating: 1_000_000, count: count)
        )
        slot = Locked(Slot(keys: zeros, uptimes: long))
        let (slot, ports) = (slot, nodes.map(\.port))
        for (index, node) in nodes.enumerated() {
            node.setScript { words in slot.withLock { Self.answer(words, at: index, ports, &$0) } }
        }
    }

    deinit { for node in nodes { node.stop() } }

    var connectionCount: Int { nodes.map(\.connectionCount).reduce(0, +) }

    /// The slot starts to move to a node, with its keys of entries.
    func begin(to target: Int) {
        slot.withLock { slot in
            slot.importer = target
            for key in slot.keys[slot.owner].keys where !key.contains("life") {
                slot.keys[target][key] = slot.keys[slot.owner].removeValue(forKey: key)
            }
        }
    }

    /// The slot stays with its owner, without the keys that have left.
    func cancel() { slot.withLock { $0.importer = nil } }

    /// A node is started anew.
    func restart(_ node: Int) { slot.withLock { ($0.keys[node], $0.uptimes[node]) = ([:], 0) } }

    /// The slot moves to a node with all its keys.
    func move(to target: Int) {
        slot.withLock { slot in
            for index in slot.keys.indices where index != target {
                slot.keys[target].merge(slot.keys[index]) { _, moved in moved }
                slot.keys[index] = [:]
            }
            (slot.owner, slot.importer) = (target, nil)
        }
    }

    func loop(_ isLoop: Bool) { slot.withLock { $0.isLoop = isLoop } }

    func trap(_ isTrap: Bool) { slot.withLock { $0.isTrap = isTrap } }

    /// A store connected to the cluster through its first node.
    func store() throws -> StoreUnderTest {
        let store = try StoreUnderTest("redis+cluster://127.0.0.1:\(nodes[0].port)") { limits in
            limits.questionTimeout = .seconds(120)
            limits.revocationPause = .milliseconds(20)
            limits.handOverTime = .seconds(120)
        }
        #expect(store.waitUntilUp())
        return store
    }

    private static func answer(_ words: [String], at node: Int, _ ports: [UInt16], _ slot: inout Slot) -> String? {
        switch words[0] {
        case "CLUSTER":
            let owner = slot.isTrap ? node : slot.isLoop ? (node + 1) % ports.count : slot.owner
            let place = ScriptedRedis.array([ScriptedRedis.string("127.0.0.1"), ":\(ports[owner])\r\n"])
            return ScriptedRedis.array([ScriptedRedis.array([":0\r\n", ":16383\r\n", place])])
        case "INFO": return ScriptedRedis.info(name: "\(ports[node])", uptime: slot.uptimes[node])
        case "GET", "SET", "ZADD", "ZREM", "ZRANGEBYSCORE", "ZREMRANGEBYSCORE": break
        default: return nil
        }
        if slot.isTrap || slot.isLoop || node != slot.owner {
            return "-MOVED \(RedisKeys.clusterSlot) 127.0.0.1:\(ports[slot.owner])\r\n"
        }
        let isThere = slot.keys[node][words[1]] != nil
        if let importer = slot.importer, !isThere {
            return "-ASK \(RedisKeys.clusterSlot) 127.0.0.1:\(ports[importer])\r\n"
        }
        switch words[0] {
        case "GET": return slot.keys[node][words[1]].map(ScriptedRedis.string) ?? "$-1\r\n"
        case "SET":
            if words.contains("NX"), isThere { return "$-1\r\n" }
            slot.keys[node][words[1]] = words[2]
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
    /// The time from which the store's memory is complete.
    private let born: UInt64

    init() throws {
        cluster = try MovingCluster()
        store = try cluster.store()
        born = try #require(store.store.completeSince)
    }

    /// Waits until a question gets another answer than 503.
    private func verdict(_ number: UInt64) -> ReplayVerdict {
        var verdict = ReplayVerdict.unavailable
        #expect(
            store.wait { store in
                verdict = store.use(number, issuedAt: born)
                return verdict != .unavailable
            }
        )
        return verdict
    }

    @Test("While a slot is on its way nothing is accepted; after its arrival nothing is forgotten")
    func onItsWay() {
        #expect(verdict(1) == .accepted)
        cluster.begin(to: 1)
        for number: UInt64 in 1...3 { #expect(store.use(number, issuedAt: born) == .unavailable) }
        let target = RedisNode(host: "127.0.0.1", port: cluster.nodes[1].port)
        #expect(store.wait { $0.failures == [.slotMoves(to: target)] })
        cluster.move(to: 1)
        #expect(verdict(1) == .nonceUsed)
        #expect(verdict(4) == .accepted)
        #expect(store.store.completeSince == born)
    }

    @Test(
        "Entries that may be lost on the way are refused, also if this replica asked nothing meanwhile",
        arguments: ["cancelled", "restarted", "elsewhere", "another target"]
    )
    func lost(way: String) {
        #expect(verdict(1) == .accepted)
        cluster.begin(to: 1)
        #expect(store.wait { !$0.failures.isEmpty })
        switch way {
        case "cancelled": cluster.cancel()
        case "restarted":
            cluster.restart(1)
            cluster.move(to: 1)
        case "elsewhere": cluster.move(to: 2)
        default:
            cluster.begin(to: 2)
            #expect(store.wait { _ in self.cluster.nodes[0].connectionCount > 4 })
            cluster.move(to: 1)
        }
        #expect(store.wait { ($0.store.completeSince ?? 0) > born })
        #expect(verdict(1) == .nonceBeyondMemory)
        #expect(store.use(5) == .accepted)
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
