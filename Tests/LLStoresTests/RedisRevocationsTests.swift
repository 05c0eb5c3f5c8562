import Dispatch
import LLHTTP
import LLTestSupport
import Testing

@testable import LLStores

@Suite(
    "Revoked logins, in a real server",
    .live,
    .needsRedis,
    .serialized
)
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
        -> RevocationAnswer?
    {
        let answer = Locked<RevocationAnswer?>(nil)
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
            #expect(Self.revoke(stores[user % 2], user) == .remembered)
            #expect(Self.isRevoked(stores[user % 2], user))
        }
        #expect(stores.allSatisfy { $0.wait { store in (1...50).allSatisfy { Self.isRevoked(store, $0) } } })
        #expect(!Self.isRevoked(stores[0], 51))
        let late = try Self.store(server)
        #expect(late.wait { $0.store.revocations.isKnown })
        #expect((1...50).allSatisfy { Self.isRevoked(late, $0) })
    }

    @Test(
        "While the server is away the copy applies; new revocations apply here, and are written when it is back"
    )
    func away() throws {
        let server = try RedisServer()
        let stores = try Self.replicas(server)
        #expect(Self.revoke(stores[0], 1) == .remembered)
        #expect(stores[1].wait { Self.isRevoked($0, 1) })
        server.kill()
        #expect(stores.allSatisfy { $0.wait { !$0.store.isUp } })
        #expect(Self.revoke(stores[0], 2) == .rememberedHereOnly)
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
            #expect(Self.revoke(stores[0], user) == .rememberedHereOnly)
            #expect(MonotonicClock.now().duration(since: began) < timeBound(.seconds(2)))
            #expect(Self.isRevoked(stores[0], user))
        }
        server.resume()
        #expect(stores[1].wait { store in (1...3).allSatisfy { Self.isRevoked(store, $0) } })
        #expect(Self.wait(stores[0], forCount: 3, in: server))
    }

    @Test("A later revocation replaces an earlier one, and expired ones are removed")
    func superseded() throws {
        let server = try RedisServer()
        let now = WallClock.unixSeconds()
        let old = now - Revocations.lifetimeSeconds - 100
        #expect(try server.send("ZADD \(Self.key) \(old * 1_000_000) 42:9:\(old)") == ":1\r\n")
        let stores = try Self.replicas(server)
        #expect(try Self.count(server) == 0)
        for moment in [now - 100, now - 50, now - 10] { #expect(Self.revoke(stores[0], 1, at: moment) == .remembered) }
        #expect(Self.wait(stores[0], forCount: 1, in: server))
        #expect(try server.send("ZRANGE \(Self.key) 0 -1").contains("42:1:\(now - 10)"))
        // The second replica has learned of the revocation and revokes again.
        #expect(stores[1].wait { Self.isRevoked($0, 1, issuedAt: now - 10) })
        #expect(Self.revoke(stores[1], 1, at: now) == .remembered)
        #expect(Self.wait(stores[1], forCount: 1, in: server))
        #expect(stores[0].wait { Self.isRevoked($0, 1, issuedAt: now) })
        // An older revocation changes nothing.
        #expect(Self.revoke(stores[0], 1, at: now - 70) == .remembered)
        #expect(try Self.count(server) == 1)
    }

    @Test("The documented commands are enough; if those for sorted sets are missing, the failure says so")
    func commands() throws {
        let used = ["+info", "+time", "+get", "+set"]
        let sets = ["+zadd", "+zrangebyscore", "+zrem", "+zremrangebyscore"]
        let server = try RedisServer(["--user", "svc", "on", ">p", "~limited-login:*"] + used + sets)
        let store = try StoreUnderTest("redis://svc:p@127.0.0.1:\(server.port)")
        #expect(store.wait { $0.store.revocations.isKnown })
        let now = WallClock.unixSeconds()
        for moment in [now - 5, now] { #expect(Self.revoke(store, 1, at: moment) == .remembered) }
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
        #expect(store.wait { Self.revoke($0, 2) == .remembered })
        #expect(store.wait { $0.changes.count == 3 })
        #expect(Self.wait(store, forCount: 2, in: server))
    }

    @Test("Kills, hangs and losses during revocations: no replica forgets, and in the end every replica knows all")
    func disturbed() throws {
        let server = try RedisServer()
        // The overlap must exceed a hang, which takes a second. It is short, because all of it is read at each look.
        let stores = try Self.replicas(server) { limits in
            limits = ReplayLimits()
            (limits.revocationPause, limits.revocationOverlap) = (.milliseconds(20), .seconds(3))
        }
        /// The last person that each replica revoked. One replica may be far ahead of the other.
        let revoked = Locked([0, 0])
        let forgotten = Locked(0)
        let isOver = Locked(false)
        let group = DispatchGroup()
        for index in 0..<2 {
            DispatchQueue(label: "load").async(group: group) {
                var user = index
                while !isOver.withLock({ $0 }) {
                    user += 2
                    if Self.revoke(stores[index], user) == .rememberedHereOnly {
                        // While the server is away answers come at once; a hundred thousand of them would prove no more
                        // than a few.
                        _ = stores[index].wait(.milliseconds(20)) { $0.store.isUp }
                    }
                    revoked.withLock { $0[index] = user }
                    for known in stride(from: user, to: 1, by: -97 * 2) where !Self.isRevoked(stores[index], known) {
                        forgotten.withLock { $0 += 1 }
                    }
                }
            }
        }
        for round in 0..<4 {
            let before = revoked.withLock { $0[0] }
            #expect(stores[0].wait { _ in revoked.withLock { $0[0] } > before + 100 })
            switch round {
            case 0, 1:
                server.kill()
                try server.start()
            case 2: #expect(try server.send("FLUSHALL").hasPrefix("+OK"))
            default:
                server.suspend()
                #expect(stores[0].wait { !$0.store.isUp })
                server.resume()
            }
            #expect(stores.allSatisfy { $0.waitUntilUp() })
        }
        isOver.withLock { $0 = true }
        group.wait()
        #expect(forgotten.withLock { $0 } == 0)
        let last = revoked.withLock { $0 }
        let all = [0, 1].flatMap { Array(stride(from: $0 + 2, through: last[$0], by: 2)) }
        #expect(stores.allSatisfy { $0.wait { store in all.allSatisfy { Self.isRevoked(store, $0) } } })
        #expect(stores[0].wait { _ in (try? Self.count(server)) ?? 0 >= all.count })
    }
}
