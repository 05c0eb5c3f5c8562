import LLHTTP
import LLTestSupport
import Testing

@testable import LLStores

@Suite("Reconnections to a real server", .live, .needsRedis, .serialized)
struct RedisReconnectionTests {
    @Test("A server that greets but refuses questions is tried again after growing pauses, and reported once")
    func refusing() throws {
        // The user may write all keys except those of nonces.
        let keys = ["~limited-login:life*", "~limited-login:probe", "~limited-login:revocations"]
        let server = try RedisServer(["--user", "svc", "on", ">p", "+@all"] + keys)
        let store = try StoreUnderTest("redis://svc:p@127.0.0.1:\(server.port)")
        #expect(store.waitUntilUp())
        let connections = try server.connectionCount()
        let start = MonotonicClock.now()
        let end = start + .seconds(2)
        while MonotonicClock.now() < end {
            #expect(store.waitUntilUp())
            #expect(store.use(1) == .unavailable)
        }
        let made = try server.connectionCount() - connections
        // There is one connection at once. Then come pauses of at least 25, 50, 100, 200 and 400 ms, and later of 500
        // ms. The count itself needs another connection.
        #expect(made <= 8 + Int(MonotonicClock.now().nanoseconds(since: start) / 500_000_000))
        #expect(store.failures == [.notPermitted(command: "SET")])
        #expect(store.changes.count <= 3)
    }

    @Test("A connection that lasted for a while is replaced at once, as often as it ends")
    func again() throws {
        let server = try RedisServer()
        let store = try StoreUnderTest("redis://127.0.0.1:\(server.port)") { limits in
            // A pause would outlast the test.
            limits.firstPause = .seconds(600)
            limits.greatestPause = .milliseconds(10)
        }
        for number: UInt64 in 1...5 {
            #expect(store.wait { $0.use(number) == .accepted })
            let isOldAt = MonotonicClock.now() + .milliseconds(10)
            #expect(store.wait { _ in MonotonicClock.now() > isOldAt })
            #expect(try server.send("FLUSHALL").hasPrefix("+OK"))
            _ = store.use(100)
        }
        #expect(store.failures == [.memoryLost])
    }

    @Test("A primary has lost nothing if it renames its history because it had no replica for long")
    func renamedHistory() throws {
        let (server, other) = (try RedisServer(), try RedisServer(["--repl-backlog-ttl", "1"]))
        try other.follow(server)
        server.kill()
        #expect(try other.send("REPLICAOF NO ONE").hasPrefix("+OK"))
        let store = try StoreUnderTest.up(at: other.port)
        let issuedAt = try #require(store.store.completeSince)
        #expect(store.use(1, issuedAt: issuedAt) == .accepted)
        #expect(store.wait { _ in (try? other.send("INFO replication"))?.contains("second_repl_offset:-1") == true })
        #expect(store.wait { $0.use(1, issuedAt: issuedAt) == .nonceUsed })
        #expect(store.store.completeSince == issuedAt)
    }

    @Test("A primary that became a replica is left when it refuses a revocation; the revocation is written afterwards")
    func failover() throws {
        let (server, other) = (try RedisServer(), try RedisServer())
        // Nothing is read from now on.
        let store = try StoreUnderTest("redis://127.0.0.1:\(server.port)") { $0.revocationPause = .seconds(600) }
        #expect(store.wait { $0.store.revocations.isKnown })
        for number: UInt64 in [1_000, 1_001] { #expect(store.use(number) == .accepted) }
        try other.follow(server)
        #expect(try other.send("REPLICAOF NO ONE").hasPrefix("+OK"))
        // The server has the same data as before, and keeps its connections.
        try server.follow(other)
        #expect(store.store.isUp)
        store.store.revocations.revoke(app: "42".utf8.span, user: "7".utf8.span, at: .max) { _ in }
        #expect(store.wait { !$0.store.isUp })
        #expect(store.failures == [.readOnly])
        #expect(try server.send("REPLICAOF NO ONE").hasPrefix("+OK"))
        #expect(store.wait { _ in (try? server.send("ZCARD limited-login:revocations"))?.hasPrefix(":1") == true })
        #expect(store.store.isUp)
    }
}
