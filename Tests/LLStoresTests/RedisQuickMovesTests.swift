import LLSockets
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
        /// The slot moves to `target` before this node gets a command with this word.
        var surprise: (node: Int, word: String, target: Int)?
        /// True if each node names the next one as the owner.
        var isLoop = false
        /// True if each node names itself as the owner and redirects all commands.
        var isTrap = false
    }

    let nodes: [ScriptedRedis]
    private let slot: Locked<Slot>

    init(_ count: Int = 3) throws {
        nodes = try (0..<count).map { _ in try ScriptedRedis() }
        slot = Locked(Slot(keys: Array(repeating: [:], count: count)))
        let (slot, ports) = (slot, nodes.map(\.port))
        for (index, node) in nodes.enumerated() {
            node.setScript { words in slot.withLock { Self.answer(words, at: index, ports, &$0) } }
        }
    }

    deinit { for node in nodes { node.stop() } }

    var connectionCount: Int { nodes.map(\.connectionCount).reduce(0, +) }

    /// The slot starts to move to a node, without any key.
    func begin(to target: Int) { slot.withLock { $0.importer = target } }

    /// The slot moves to a node with all its keys.
    func move(to target: Int) { slot.withLock { Self.move(to: target, &$0) } }

    func surprise(at node: Int, _ word: String, target: Int) { slot.withLock { $0.surprise = (node, word, target) } }

    func loop(_ isLoop: Bool) { slot.withLock { $0.isLoop = isLoop } }

    func trap(_ isTrap: Bool) { slot.withLock { $0.isTrap = isTrap } }

    /// A store connected to the cluster through its first node.
    /// - Parameter adjust: Changes the default limits.
    func store(_ adjust: (inout ReplayLimits) -> Void = { _ in }) throws -> StoreUnderTest {
        let store = try StoreUnderTest("redis+cluster://127.0.0.1:\(nodes[0].port)") { limits in
            limits.questionTimeout = .seconds(120)
            adjust(&limits)
        }
        #expect(store.waitUntilUp())
        return store
    }

    private static func move(to target: Int, _ slot: inout Slot) {
        for index in slot.keys.indices where index != target {
            slot.keys[target].merge(slot.keys[index]) { _, moved in moved }
            slot.keys[index] = [:]
        }
        (slot.owner, slot.importer) = (target, nil)
    }

    private static func answer(_ words: [String], at node: Int, _ ports: [UInt16], _ slot: inout Slot) -> String? {
        let all = ports.map { ScriptedRedis.array([ScriptedRedis.string("127.0.0.1"), ":\($0)\r\n"]) }
        switch words[0] {
        case "CLUSTER":
            let owner = slot.isTrap ? node : slot.isLoop ? (node + 1) % ports.count : slot.owner
            guard words[1] == "SHARDS" else {
                return ScriptedRedis.array([ScriptedRedis.array([":0\r\n", ":16383\r\n", all[owner]])])
            }
            let fields = ports.map { port in
                ScriptedRedis.array(["port", "\(port)", "ip", "127.0.0.1"].map(ScriptedRedis.string))
            }
            let shard = [ScriptedRedis.string("nodes"), ScriptedRedis.array(fields)]
            return ScriptedRedis.array([ScriptedRedis.array(shard)])
        case "GET", "SET", "ZADD", "ZREM", "ZRANGEBYSCORE", "ZREMRANGEBYSCORE": break
        default: return nil
        }
        if let surprise = slot.surprise, surprise.node == node, words.contains(surprise.word) {
            slot.surprise = nil
            move(to: surprise.target, &slot)
        }
        let isThere = slot.keys[node][words[1]] != nil
        if slot.isTrap || slot.isLoop || node != slot.owner && node != slot.importer {
            return "-MOVED \(RedisKeys.clusterSlot) 127.0.0.1:\(ports[slot.owner])\r\n"
        }
        if let importer = slot.importer, node != importer, !isThere {
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

@Suite("A slot that moves again at once", .live)
struct RedisQuickMovesTests {
    private let cluster: MovingCluster
    private let store: StoreUnderTest
    /// The time from which the store's memory is complete.
    private let born: UInt64

    init() throws {
        cluster = try MovingCluster()
        store = try cluster.store()
        born = try #require(store.store.completeSince)
    }

    @Test("Four quick moves are followed without a refusal, and nothing is forgotten")
    func moves() {
        for (number, target) in [1, 2, 0, 1].enumerated() {
            #expect(store.use(UInt64(number), bornAt: born) == .accepted)
            cluster.move(to: target)
            #expect(store.use(UInt64(number), bornAt: born) == .nonceUsed)
        }
        #expect(store.store.completeSince == born)
        #expect(store.failures.isEmpty)
    }

    @Test("A slot that has moved and is moving again accepts logins at its third node, which no map names")
    func onItsWay() {
        #expect(store.use(1, bornAt: born) == .accepted)
        cluster.move(to: 1)
        cluster.begin(to: 2)
        for (number, verdict) in [(1, .nonceUsed), (2, .accepted), (2, .nonceUsed)] as [(UInt64, ReplayVerdict)] {
            #expect(store.use(number, bornAt: born) == verdict)
        }
        cluster.move(to: 2)
        #expect(store.use(2, bornAt: born) == .nonceUsed)
        #expect(store.use(3, bornAt: born) == .accepted)
        #expect(store.failures.isEmpty)
    }

    @Test(
        "A second move before the new node's memory is read is followed; one before the probe write is a loss",
        arguments: [true, false]
    )
    func again(isTried: Bool) {
        #expect(store.use(1, bornAt: born) == .accepted)
        cluster.surprise(at: 1, isTried ? RedisKeys.cluster.data : RedisKeys.cluster.probe, target: 2)
        cluster.move(to: 1)
        if isTried {
            #expect(store.use(1, bornAt: born) == .nonceUsed)
            #expect(store.use(2, bornAt: born) == .accepted)
        } else {
            #expect(store.use(1, bornAt: born) != .accepted)
            #expect(store.use(1, bornAt: born) == .nonceBeyondMemory)
            #expect(store.use(2) == .accepted)
        }
        #expect(store.failures.isEmpty)
    }

    @Test(
        "Nodes that redirect without end are asked again after growing pauses, until one keeps the slot",
        arguments: [false, true]
    )
    func loop(isTrap: Bool) throws {
        let cluster = try MovingCluster()
        let store = try cluster.store { $0.questionTimeout = .seconds(61) }
        #expect(store.use(1) == .accepted)
        if isTrap { cluster.trap(true) } else { cluster.loop(true) }
        let (connections, start) = (cluster.connectionCount, MonotonicClock.now())
        while MonotonicClock.now() < start + .seconds(2) {
            #expect(store.use(2) == .unavailable)
            #expect(store.wait { $0.store.isUp || !$0.failures.isEmpty })
        }
        let seconds = Int(MonotonicClock.now().nanoseconds(since: start) / 1_000_000_000)
        // There is one search at once, seven more in two seconds, and two in each further second. Each search starts at
        // four places at most and takes at most six steps from each.
        #expect(cluster.connectionCount - connections <= (8 + 2 * seconds) * (isTrap ? 1 : 24))
        #expect(store.failures == [isTrap ? .moved : .clusterDisagrees])
        if isTrap { cluster.trap(false) } else { cluster.loop(false) }
        #expect(store.wait { $0.use(3) == .accepted })
    }
}
