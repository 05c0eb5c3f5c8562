import Dispatch
import LLHTTP
import LLTestSupport
import Testing

@testable import LLStores

@Suite("Revoked logins, in a real server", .live, .needsRedis, .serialized)
struct RedisRevocationsTests {
    /// A connected store at a server with the user `svc`.
    private static func store(_ server: RedisServer) throws -> StoreUnderTest {
        let store = try StoreUnderTest("redis://svc:p@127.0.0.1:\(server.port)") { limits in
            // These pauses save time; the tests wait for events, not for a time.
            limits.revocationPause = .milliseconds(20)
            limits.greatestPause = .milliseconds(200)
        }
        #expect(store.waitUntilUp())
        return store
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

    private static func isRevoked(_ store: StoreUnderTest, _ user: Int) -> Bool {
        store.store.revocations.isRevoked(app: "42".utf8.span, user: "\(user)".utf8.span, issuedAt: 1)
    }

    @Test("A login revoked by one replica is refused by all, also a later one; the documented commands are enough")
    func replicas() throws {
        let commands = ["+info", "+time", "+get", "+set", "+zadd", "+zrangebyscore", "+zrem", "+zremrangebyscore"]
        let server = try RedisServer(["--user", "svc", "on", ">p", "~limited-login:*"] + commands)
        let stores = try (0..<2).map { _ in try Self.store(server) }
        // The later of two revocations of one login replaces the earlier.
        for moment in [WallClock.unixSeconds() - 5, WallClock.unixSeconds()] {
            for user in 1...50 { #expect(Self.revoke(stores[user % 2], user, at: moment) == true) }
        }
        #expect(stores.allSatisfy { $0.wait { store in (1...50).allSatisfy { Self.isRevoked(store, $0) } } })
        #expect(!Self.isRevoked(stores[0], 51))
        let late = try Self.store(server)
        #expect(late.wait { $0.store.revocations.isKnown })
        #expect((1...50).allSatisfy { Self.isRevoked(late, $0) })
        #expect(stores[0].use(1) == .accepted && stores.allSatisfy { $0.failures.isEmpty })
    }

    @Test(
        "A refused command about revocations costs no login its answer and no connection; it is reported once",
        arguments: ["zadd", "zrangebyscore", "zrem", "zremrangebyscore"]
    )
    func refused(command: String) throws {
        let user = ["--user", "svc", "on", ">p", "~limited-login:*", "+@all", "-\(command)"]
        let server = try RedisServer(user)
        let store = try Self.store(server)
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
        #expect(store.wait { _ in (try? server.send("ZCARD limited-login:revocations"))?.hasPrefix(":2") == true })
    }
}
