import Dispatch
import LLHTTP
import LLTestSupport
import Testing

@testable import LLStores

@Suite("Revoked logins, in a real server", .live, .needsRedis, .serialized)
struct RedisRevocationsTests {
    private static let key = "limited-login:revocations"

    private static func store(_ server: RedisServer, _ adjust: (inout ReplayLimits) -> Void = { _ in }) throws
        -> StoreUnderTest
    {
        try StoreUnderTest("redis://127.0.0.1:\(server.port)") { limits in
            // The pause is shorter than the default to save time; the tests wait for events, not for a time.
            limits.revocationPause = .milliseconds(20)
            adjust(&limits)
        }
    }

    /// Two replicas that know all revocations of their server.
    private static func replicas(_ server: RedisServer, _ adjust: (inout ReplayLimits) -> Void = { _ in }) throws
        -> [StoreUnderTest]
    {
        let stores = try (0..<2).map { _ in try store(server, adjust) }
        #expect(stores.allSatisfy { $0.wait { $0.store.revocations.isKnown } })
        return stores
    }

    /// Revokes a login and waits for the answer.
    private static func revoke(_ store: StoreUnderTest, _ user: Int, at moment: Int64 = WallClock.unixSeconds())
        -> Bool?
    {
        let answer = Locked<Bool?>(nil)
        let semaphore = DispatchSemaphore(value: 0)
        store.store.revocations.revoke(app: "42".utf8.span, user: "\(user)".utf8.span, at: moment) { given in
            answer.withLock { $0 = given }
            semaphore.signal()
        }
        semaphore.wait()
        return answer.withLock { $0 }
    }

    private static func isRevoked(_ store: StoreUnderTest, _ user: Int, issuedAt: Int64 = 1) -> Bool {
        let user = "\(user)"
        return store.store.revocations.isRevoked(app: "42".utf8.span, user: user.utf8.span, issuedAt: issuedAt)
    }

    private static func count(_ server: RedisServer) throws -> Int {
        // The answer ends with CR LF, a single `Character`.
        Int(try server.send("ZCARD \(key)").dropFirst().dropLast()) ?? -1
    }

    private static func wait(_ store: StoreUnderTest, forCount count: Int, in server: RedisServer) -> Bool {
        store.wait { _ in (try? Self.count(server)) == count }
    }

    @Test("A login revoked by one replica is refused by another, and by a later one before it judges anything")
    func replicas() throws {
        let server = try RedisServer()
        let stores = try Self.replicas(server)
        for user in 1...50 {
            #expect(Self.revoke(stores[user % 2], user) == true)
            #expect(Self.isRevoked(stores[user % 2], user))
        }
        #expect(stores.allSatisfy { $0.wait { store in (1...50).allSatisfy { Self.isRevoked(store, $0) } } })
        #expect(!Self.isRevoked(stores[0], 51))
        let late = try Self.store(server)
        #expect(late.wait { $0.store.revocations.isKnown })
        #expect((1...50).allSatisfy { Self.isRevoked(late, $0) })
    }

    @Test("While the server is away the copy applies; new revocations apply here, and are written when it is back")
    func away() throws {
        let server = try RedisServer()
        let stores = try Self.replicas(server)
        #expect(Self.revoke(stores[0], 1) == true)
        #expect(stores[1].wait { Self.isRevoked($0, 1) })
        server.kill()
        #expect(stores.allSatisfy { $0.wait { !$0.store.isUp } })
        #expect(Self.revoke(stores[0], 2) == false)
        #expect(stores.allSatisfy { Self.isRevoked($0, 1) })
        #expect(Self.isRevoked(stores[0], 2))
        #expect(!Self.isRevoked(stores[1], 2))
        let age = try #require(stores[0].store.revocations.age(at: MonotonicClock.now()))
        #expect(stores[0].wait { ($0.store.revocations.age(at: MonotonicClock.now()) ?? .zero) > age })
        // The server comes back empty.
        try server.start()
        #expect(stores[1].wait { Self.isRevoked($0, 2) })
        #expect(Self.wait(stores[0], forCount: 2, in: server))
        let late = try Self.store(server)
        #expect(late.wait { $0.store.revocations.isKnown })
        #expect(Self.isRevoked(late, 1))
        #expect(Self.isRevoked(late, 2))
    }

    @Test("While a server hangs, every answer comes within a second and none is a yes; all is written later")
    func hung() throws {
        let server = try RedisServer()
        let stores = try Self.replicas(server) { limits in
            limits = ReplayLimits()
            limits.revocationPause = .milliseconds(20)
        }
        server.suspend()
        for user in 1...3 {
            let began = MonotonicClock.now()
            #expect(Self.revoke(stores[0], user) == false)
            #expect(MonotonicClock.now().duration(since: began) < timeBound(.seconds(2)))
            #expect(Self.isRevoked(stores[0], user))
        }
        server.resume()
        #expect(stores[1].wait { store in (1...3).allSatisfy { Self.isRevoked(store, $0) } })
        #expect(Self.wait(stores[0], forCount: 3, in: server))
    }

    @Test("The documented commands are enough; if those for sorted sets are missing, the failure says so")
    func commands() throws {
        let used = ["+info", "+time", "+get", "+set"]
        let sets = ["+zadd", "+zrangebyscore", "+zrem", "+zremrangebyscore"]
        let server = try RedisServer(["--user", "svc", "on", ">p", "~limited-login:*"] + used + sets)
        let store = try StoreUnderTest("redis://svc:p@127.0.0.1:\(server.port)")
        #expect(store.wait { $0.store.revocations.isKnown })
        let now = WallClock.unixSeconds()
        for moment in [now - 5, now] { #expect(Self.revoke(store, 1, at: moment) == true) }
        #expect(store.use(1) == .accepted)
        #expect(store.failures.isEmpty)
        let poor = try RedisServer(["--user", "svc", "on", ">p", "~*"] + used)
        let refused = try StoreUnderTest("redis://svc:p@127.0.0.1:\(poor.port)")
        #expect(refused.wait { $0.failures.contains(.notPermitted(command: "ZREMRANGEBYSCORE")) })
        #expect(!refused.store.revocations.isKnown)
    }

    @Test(
        "A refused command about revocations costs no login its answer and no connection; it is reported once",
        arguments: ["zadd", "zrangebyscore", "zrem", "zremrangebyscore"]
    )
    func refused(command: String) throws {
        let user = ["--user", "svc", "on", ">p", "~limited-login:*", "+@all", "-\(command)"]
        let server = try RedisServer(user)
        let store = try StoreUnderTest("redis://svc:p@127.0.0.1:\(server.port)") { limits in
            limits.revocationPause = .milliseconds(20)
            limits.greatestPause = .milliseconds(200)
        }
        #expect(store.waitUntilUp())
        let connections = try server.connectionCount()
        // Two revocations of one login, so that one of them is removed.
        let now = WallClock.unixSeconds()
        for moment in [now - 5, now] { _ = Self.revoke(store, 1, at: moment) }
        #expect(store.wait { $0.failures == [.notPermitted(command: command.uppercased())] })
        #expect((1...200).allSatisfy { store.use($0) == .accepted })
        #expect(store.store.isUp)
        #expect(store.failures.count == 1)
        // The additional connection is the one that asks for the count.
        #expect(try server.connectionCount() == connections + 1)
        #expect(try server.send("ACL SETUSER svc +\(command)").hasPrefix("+OK"))
        #expect(store.wait { Self.revoke($0, 2) == true })
        #expect(store.wait { $0.changes.count == 3 })
        #expect(Self.wait(store, forCount: 2, in: server))
    }
}
