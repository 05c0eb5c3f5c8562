import LLSockets
import LLTestSupport
import Testing

@testable import LLStores

/// Two nodes of a cluster and a replica's session with the first, which owns the slot.
private struct Moving {
    let owner: ScriptedRedis
    let target: ScriptedRedis
    let finder: RedisFinder
    let trail = RedisTrail()
    let session: RedisSession
    private static var end: MonotonicInstant { MonotonicClock.now() + patienceOfTests }
    /// The owner's answer about a missing key while the slot is moving.
    var ask: String { "-ASK \(RedisKeys.clusterSlot) 127.0.0.1:\(target.port)\r\n" }

    /// - Parameter lead: Milliseconds by which the owner's clock is ahead.
    init(lead: Locked<Int64> = Locked(0)) throws {
        let (owner, target) = (try ScriptedRedis(), try ScriptedRedis())
        (self.owner, self.target) = (owner, target)
        let nodes = [owner, target].map {
            ScriptedRedis.array([ScriptedRedis.string("127.0.0.1"), ":\($0.port)\r\n"])
        }
        let map = ScriptedRedis.array([ScriptedRedis.array([":0\r\n", ":16383\r\n"] + nodes)])
        owner.setScript { words in
            switch words[0] {
            case "CLUSTER": return map
            case "TIME": return ScriptedRedis.time(lead.withLock { $0 })
            default: return nil
            }
        }
        var configuration = RedisReplayStore.Configuration(
            url: try ReplayStoreURL(parsing: "redis+cluster://127.0.0.1:\(owner.port)")
        )
        configuration.limits = .patient
        finder = RedisFinder(configuration, NameResolver(), WakeSignal())
        let found = try finder.find(after: nil, until: Self.end)
        let greeting = try RedisGreeting(over: found.channel, configuration, until: Self.end)
        let detour = RedisDetour(finder, from: found.channel.node, trail)
        session = RedisSession(found.channel, greeting, detour, limits: .patient, now: MonotonicClock.now())
    }

    func stop() { for server in [owner, target] { server.stop() } }

    /// Reads the revocations once, as each replica does every second.
    func read() throws {
        try session.send([["ZRANGEBYSCORE", "x"].map { Array($0.utf8) }], now: MonotonicClock.now())
        while !session.isIdle {
            try session.wait(until: .never)
            try session.receive(now: MonotonicClock.now())
        }
        #expect(session.takeFinished()?.count == 1)
    }

    func use(_ number: UInt64) throws -> ReplayVerdict? {
        let verdict = Locked<ReplayVerdict?>(nil)
        let question = StoreUnderTest.waiting(StoreUnderTest.question(number), verdict: verdict)
        try session.send([question], unixMilliseconds: WallClock.unixMilliseconds(), now: MonotonicClock.now())
        while verdict.withLock({ $0 }) == nil {
            try session.wait(until: .never)
            try session.receive(now: MonotonicClock.now())
        }
        return verdict.withLock { $0 }
    }
}

@Suite("A moving slot, and a clock that is set", .live)
struct RedisMovingSlotTests {
    @Test("A replica without questions notices that the slot is moving, and that the move is cancelled")
    func cancelled() throws {
        let moving = try Moving()
        defer { moving.stop() }
        try moving.read()
        #expect(moving.trail.isEmpty)
        let ask = moving.ask
        moving.owner.setScript { $0 == ["GET", RedisKeys.cluster.absent] ? ask : nil }
        try moving.read()
        #expect(!moving.trail.isEmpty && !moving.trail.hasLost)
        // The entries of another replica went to the other node.
        moving.owner.setScript { _ in nil }
        #expect(throws: RedisFailure.memoryLost) { try moving.read() }
        #expect(moving.trail.hasLost)
    }

    @Test("If the target of a moving slot restarts, its entries are lost, even if this replica sent it none")
    func restarted() throws {
        let moving = try Moving()
        defer { moving.stop() }
        let (ask, node) = (moving.ask, RedisNode(host: "127.0.0.1", port: moving.target.port))
        moving.owner.setScript { $0 == ["GET", RedisKeys.cluster.absent] ? ask : nil }
        try moving.read()
        moving.target.setScript { words in
            guard words[0] == "INFO" else { return nil }
            return ScriptedRedis.string(
                "run_id:f00\r\nredis_mode:cluster\r\nmaxmemory:0\r\nrole:master\r\nsecond_repl_offset:-1\r\n"
            )
        }
        let owner = RedisNode(host: "127.0.0.1", port: moving.owner.port)
        let detour = RedisDetour(moving.finder, from: owner, moving.trail)
        let command = [["GET", "x"].map { Array($0.utf8) }]
        #expect(throws: RedisFailure.memoryLost) {
            try detour.call(command, at: node, until: MonotonicClock.now() + patienceOfTests)
        }
        #expect(moving.trail.hasLost)
    }

    @Test("If a clock is set back for a while, entries of that time are forgotten early", arguments: [false, true])
    func clockSetBack(isLooked: Bool) throws {
        let lead = Locked<Int64>(0)
        let moving = try Moving(lead: lead)
        defer { moving.stop() }
        let before = moving.session.clock.milliseconds
        #expect(try moving.use(1) == .accepted)
        lead.withLock { $0 = -3_600_000 }
        if isLooked { #expect(try moving.use(2) == .accepted) } else { try moving.read() }
        #expect(moving.session.clock.milliseconds < before)
        lead.withLock { $0 = 0 }
        #expect(throws: RedisFailure.clockChanged) { try moving.use(3) }
        moving.session.abandon(now: MonotonicClock.now())
    }

    @Test(
        "A memory begins by this machine's clock if the server's is a little behind, as it may be set right any time",
        arguments: [0, -20_000, -3_600_000] as [Int64]
    )
    func behind(lead: Int64) throws {
        let before = WallClock.unixMilliseconds()
        let moving = try Moving(lead: Locked(lead))
        defer { moving.stop() }
        let greeting = moving.session.greeting
        #expect(greeting.completeSince >= before)
        let isSmall = lead > -30_000
        #expect(isSmall ? greeting.life.since >= before : greeting.life.since == greeting.clock.milliseconds)
    }
}
