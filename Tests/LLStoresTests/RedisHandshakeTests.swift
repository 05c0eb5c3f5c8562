import LLHTTP
import LLTestSupport
import Testing

@testable import LLStores

/// One server, and handshakes that report the start of its memory.
private struct Greeter {
    let server: RedisServer
    let configuration: RedisReplayStore.Configuration
    let end = MonotonicClock.now() + patienceOfTests
    private static let keys = RedisKeys.usual

    init() throws {
        server = try RedisServer()
        configuration = RedisReplayStore.Configuration(
            url: try ReplayStoreURL(parsing: "redis://127.0.0.1:\(server.port)")
        )
    }

    /// - Parameters:
    ///   - last: the replica's last handshake, with any server.
    ///   - age: milliseconds by which the server's clock was behind in that handshake.
    func shake(
        after last: (Greeter, RedisHandshake)? = nil,
        behind age: UInt64 = 0,
        handedOverBy name: String? = nil
    ) throws -> RedisHandshake {
        let (url, node) = (configuration.url, configuration.url.places[0])
        let stream = try ClientStream.open(url.host, port: url.port, names: NameResolver(), until: end)
        let context = RedisHandshake.Context(
            last: last.map { greeter, handshake in
                RedisLastServer(
                    node: greeter.configuration.url.places[0],
                    known: MemoryJudgement.Known(
                        identity: handshake.identity,
                        start: handshake.start,
                        answeredAt: WallClock.unixMilliseconds()
                    ),
                    clock: ServerClock(
                        milliseconds: handshake.clock.milliseconds - age,
                        at: handshake.clock.at
                    ),
                    answeredAt: handshake.clock.at
                )
            },
            handedOverBy: name
        )
        return try RedisHandshake(over: RedisChannel(stream, WakeSignal(), node), configuration, context, until: end)
    }

    func set(_ key: String, _ value: String) throws {
        #expect(try server.send("SET \(key) \"\(value)\"").hasPrefix("+OK"))
    }

    func forgetAll() throws { #expect(try server.send("FLUSHALL").hasPrefix("+OK")) }

    /// A second server that has the keys of this one.
    func successor(of handshake: RedisHandshake) throws -> Greeter {
        let other = try Greeter()
        try other.set(Self.keys.data, handshake.start.text)
        try other.set(Self.keys.run(handshake.identity), handshake.start.text)
        return other
    }

    func run(_ handshake: RedisHandshake) throws -> String {
        try server.send("GET \(Self.keys.run(handshake.identity))")
    }
}

/// The judgement itself has a table of tests. These tests prove that it is asked with true facts, and written.
@Suite("The start of a server's memory", .live, .needsRedis)
struct RedisHandshakeTests {
    @Test("Emptied data are lost, whichever replica comes first, and all replicas agree", arguments: [false, true])
    func emptied(isNewReplicaFirst: Bool) throws {
        let greeter = try Greeter()
        let first = try greeter.shake()
        #expect(!first.start.isAfterLoss)
        #expect(try greeter.shake(after: (greeter, first)).start == first.start)
        try greeter.forgetAll()
        let fresh = isNewReplicaFirst ? try greeter.shake() : nil
        #expect(fresh?.start.isAfterLoss != true)
        let second = try greeter.shake(after: (greeter, first))
        #expect(second.start.isAfterLoss && second.start.completeSince > first.start.completeSince)
        for last in [nil, first, fresh, second] {
            #expect(try greeter.shake(after: last.map { (greeter, $0) }).start == second.start)
        }
    }

    @Test("After a jump of a server's clock its memory begins anew, at this machine's time")
    func jumped() throws {
        let greeter = try Greeter()
        let first = try greeter.shake()
        let second = try greeter.shake(after: (greeter, first), behind: 3_600_000)
        #expect(second.start.isAfterLoss && second.start.completeSince > first.start.completeSince)
        #expect(second.start.completeSince < WallClock.unixMilliseconds() + 60_000)
        // Another replica that saw the jump finds it written already.
        #expect(try greeter.shake(after: (greeter, first), behind: 3_600_000).start == second.start)
        #expect(try greeter.shake(after: (greeter, second)).start == second.start)
        // The clock of another server may differ.
        let other = try greeter.successor(of: second)
        #expect(try other.shake(after: (greeter, second), behind: 3_600_000, handedOverBy: "f00").start == second.start)
    }

    @Test("Keys that were handed over are taken once, and marked; without a proof the memory begins anew")
    func handedOver() throws {
        let first = try Greeter()
        let old = try first.shake()
        let second = try first.successor(of: old)
        let moved = try second.shake(after: (first, old), handedOverBy: "f00")
        #expect(moved.start == old.start)
        #expect(try second.run(old).contains("moved"))
        // A replica without a proof relies on the mark.
        #expect(try second.shake(after: (first, old)).start == old.start)
        let third = try first.successor(of: old)
        let lost = try third.shake(after: (first, old))
        #expect(lost.start.isAfterLoss && lost.start.completeSince > old.start.completeSince)
        #expect(try third.shake().start == lost.start)
    }

    @Test("The data's key is written with each new start")
    func data() throws {
        let greeter = try Greeter()
        let first = try greeter.shake()
        #expect(try greeter.server.send("GET \(RedisKeys.usual.data)").contains(first.start.text))
        try greeter.set(RedisKeys.usual.data, "1")
        #expect(try greeter.shake().start == first.start)
        #expect(try greeter.server.send("GET \(RedisKeys.usual.data)").contains(first.start.text))
    }
}
