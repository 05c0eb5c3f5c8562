import LLHTTP
import LLTestSupport
import Testing

@testable import LLStores

@Suite("Reconnections to a real server", .live, .needsRedis, .serialized)
struct RedisReconnectionTests {
    /// A server, a second server that took over its data as a primary, and a quiet store at the first.
    private static func promoted() throws -> (server: RedisServer, other: RedisServer, store: StoreUnderTest) {
        let (server, other) = (try RedisServer(), try RedisServer())
        let store = try StoreUnderTest.quiet(at: server.port)
        try other.takeOver(from: server)
        return (server, other, store)
    }

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

    @Test("After a failover and back, with one connection throughout, no used nonce looks new")
    func failoverAndBack() throws {
        let (server, other, store) = try Self.promoted()
        // The nonce is just young enough for the present memory.
        let issuedAt = try #require(store.store.completeSince)
        // The other server never receives this nonce.
        #expect(store.use(1, issuedAt: issuedAt) == .accepted)
        try server.takeOver(from: other)
        #expect(store.use(1, issuedAt: issuedAt) == .unavailable)
        #expect(store.wait { $0.use(1, issuedAt: issuedAt) != .unavailable })
        #expect(store.use(1, issuedAt: issuedAt) == .nonceBeyondMemory)
        #expect(store.failures == [.memoryLost])
    }

    @Test("A primary has lost nothing if it renames its history because it had no replica for long")
    func renamedHistory() throws {
        let (server, other) = (try RedisServer(), try RedisServer(["--repl-backlog-ttl", "1"]))
        try other.follow(server)
        server.kill()
        #expect(try other.send("REPLICAOF NO ONE").hasPrefix("+OK"))
        let store = try StoreUnderTest.up(at: other.port)
        let (issuedAt, starts) = (try #require(store.store.completeSince), store.starts)
        #expect(store.use(1, issuedAt: issuedAt) == .accepted)
        #expect(store.wait { _ in (try? other.send("INFO replication"))?.contains("second_repl_offset:-1") == true })
        #expect(store.wait { $0.use(1, issuedAt: issuedAt) == .nonceUsed })
        #expect(store.store.completeSince == issuedAt && store.useToken(2, issuedAt: 0) == .accepted)
        #expect(Set(store.starts.map(\.completeSince)) == Set(starts.map(\.completeSince)))
    }

    @Test("A primary that became a replica is left when it refuses a revocation; the revocation is written afterwards")
    func failover() throws {
        let (server, other, store) = try Self.promoted()
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

extension RedisServer {
    /// Copies all data of another server and becomes a primary itself.
    fileprivate func takeOver(from other: RedisServer) throws {
        try follow(other)
        #expect(try send("REPLICAOF NO ONE").hasPrefix("+OK"))
    }
}
