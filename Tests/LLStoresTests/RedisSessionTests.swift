import Glibc
import LLSockets
import LLTestSupport
import Testing

@testable import LLStores

@Suite(
    "One connection to a real server",
    .live,
    .needsRedis
)
struct RedisSessionTests {
    @Test("A question is answered when its own time is over, even if the server may take longer")
    func ownTime() throws {
        let server = try RedisServer()
        let store = try StoreUnderTest("redis://127.0.0.1:\(server.port)") { limits in
            limits.questionTimeout = .milliseconds(100)
            limits.revocationPause = .seconds(600)
        }
        #expect(store.wait { $0.store.revocations.isKnown })
        server.suspend()
        // The nonce's answer and the token's answer could each take a minute.
        let both = ReplayLookup([StoreUnderTest.entry(.nonce, 1), StoreUnderTest.entry(.token, 2)])
        let (verdict, took) = store.ask(both)
        #expect(verdict == .unavailable)
        #expect(took < .seconds(30))
        server.resume()
        var number: UInt64 = 10
        #expect(
            store.wait { store in
                number += 1
                return store.use(number) == .accepted
            }
        )
        // The connection is the same, and entries that the server received are used.
        #expect(store.failures.isEmpty)
        #expect(store.wait { $0.use(1) == .nonceUsed })
    }

    @Test("If the machine stood still, a token is asked about with time of its own after its nonce's answer")
    func stoodStill() throws {
        let server = try RedisServer()
        var configuration = RedisReplayStore.Configuration(
            url: try ReplayStoreURL(parsing: "redis://127.0.0.1:\(server.port)")
        )
        // The timeout is long, because the machine of this test may really stand still.
        configuration.limits.answerTimeout = .seconds(600)
        let limits = configuration.limits
        let start = MonotonicClock.now()
        let end = start + .seconds(600)
        let stream = try ClientStream.open("127.0.0.1", port: server.port, names: NameResolver(), until: end)
        let signal = WakeSignal()
        let channel = RedisChannel(stream, signal, configuration.url.places[0])
        let greeting = try RedisGreeting(over: channel, configuration, until: end)
        let session = RedisSession(channel, greeting, limits: limits, now: start)

        let verdict = Locked<ReplayVerdict?>(nil)
        let question = StoreUnderTest.waiting(
            ReplayLookup([StoreUnderTest.entry(.nonce, 1), StoreUnderTest.entry(.token, 2)]),
            verdict: verdict
        )
        // By the session's clock, the question is sent as long ago as an answer may take.
        let before = MonotonicInstant(nanoseconds: start.nanoseconds - limits.answerTimeout.wholeNanoseconds)
        try session.send([question], unixMilliseconds: WallClock.unixMilliseconds(), now: before)
        #expect(stream.wait(or: signal, until: end) == .ready(0))
        try session.wait(until: .never)
        while verdict.withLock({ $0 }) == nil {
            try session.wait(until: .never)
            try session.receive(now: MonotonicClock.now())
        }
        #expect(verdict.withLock { $0 } == .accepted)
    }

    @Test("After a jump of a server's clock its memory begins anew, because entries may be forgotten")
    func jumpedClock() throws {
        let server = try RedisServer()
        var configuration = RedisReplayStore.Configuration(
            url: try ReplayStoreURL(parsing: "redis://127.0.0.1:\(server.port)")
        )
        let end = MonotonicClock.now() + .seconds(600)
        let node = configuration.url.places[0]
        func greet(after last: RedisGreeting?) throws -> (RedisChannel, RedisGreeting) {
            let stream = try ClientStream.open("127.0.0.1", port: server.port, names: NameResolver(), until: end)
            let channel = RedisChannel(stream, WakeSignal(), node)
            let past = last.map { RedisPast(node: node, greeting: $0, seenAt: $0.clock.at) }
            let context = RedisGreeting.Context(last: past)
            return (channel, try RedisGreeting(over: channel, configuration, context, until: end))
        }
        let (channel, first) = try greet(after: nil)
        #expect(try greet(after: first).1.life == first.life)

        // Even the smallest jump counts, so the time that passes is one.
        configuration.limits.clockJump = .zero
        let session = RedisSession(channel, first, limits: configuration.limits, now: first.clock.at)
        let verdict = Locked<ReplayVerdict?>(nil)
        let question = StoreUnderTest.waiting(StoreUnderTest.question(1), verdict: verdict)
        usleep(50_000)
        try session.send([question], unixMilliseconds: WallClock.unixMilliseconds(), now: first.clock.at)
        #expect(throws: RedisFailure.clockChanged) {
            while MonotonicClock.now() < end { try session.receive(now: first.clock.at) }
        }
        session.abandon(now: first.clock.at)
        #expect(verdict.withLock { $0 } == .unavailable)

        configuration.limits = ReplayLimits()
        let hour: UInt64 = 3_600_000
        var late = first
        late.clock = ServerClock(milliseconds: first.clock.milliseconds - hour, at: first.clock.at)
        let second = try greet(after: late).1
        #expect(second.life.isAfterLoss)
        // The earlier clock was behind, so the time without the jump is too early. Entries are dated by this machine's
        // clock.
        #expect(second.life.written.moment >= first.clock.milliseconds)
        #expect(second.tokensCompleteSince == second.completeSince)
        // Another replica that saw the jump finds it written already.
        #expect(try greet(after: late).1.life.written == second.life.written)
        #expect(try greet(after: second).1.life.written == second.life.written)
    }

    /// A session with a server, with an optional detour.
    private static func session(
        _ server: RedisServer,
        _ limits: ReplayLimits = ReplayLimits(),
        detour: RedisDetour? = nil
    ) throws -> RedisSession {
        let configuration = RedisReplayStore.Configuration(
            url: try ReplayStoreURL(parsing: "redis://127.0.0.1:\(server.port)")
        )
        let end = MonotonicClock.now() + patienceOfTests
        let stream = try ClientStream.open("127.0.0.1", port: server.port, names: NameResolver(), until: end)
        let channel = RedisChannel(stream, WakeSignal(), configuration.url.places[0])
        let greeting = try RedisGreeting(over: channel, configuration, until: end)
        return RedisSession(channel, greeting, detour, limits: limits, now: MonotonicClock.now())
    }

    @Test("A question ends at its own time limit and the session at the server's, however slow the machine is")
    func deadlines() throws {
        let server = try RedisServer()
        let session = try Self.session(server)
        server.suspend()
        defer { server.resume() }
        let (now, verdict) = (MonotonicClock.now(), Locked<ReplayVerdict?>(nil))
        let question = StoreUnderTest.waiting(
            StoreUnderTest.question(1),
            until: now + .milliseconds(100),
            verdict: verdict
        )
        try session.send([question], unixMilliseconds: WallClock.unixMilliseconds(), now: now)
        try session.look(now: now + .milliseconds(99))
        #expect(verdict.withLock { $0 } == nil)
        try session.look(now: now + .milliseconds(100))
        #expect(verdict.withLock { $0 } == .unavailable)
        try session.look(now: now + .milliseconds(499))
        #expect(throws: RedisFailure.timedOut) { try session.look(now: now + .milliseconds(500)) }
    }

    @Test("If an owner remembers a new entry, its slot's move was cancelled, and the other node's entries are lost")
    func cancelledMove() throws {
        let server = try RedisServer()
        let url = try ReplayStoreURL(parsing: "redis+cluster://127.0.0.1:\(server.port)")
        let finder = RedisFinder(RedisReplayStore.Configuration(url: url), NameResolver(), WakeSignal())
        for hasTaken in [false, true] {
            let trail = RedisTrail()
            if hasTaken { try trail.note("f00", of: RedisNode(host: "a", port: 1)) }
            let session = try Self.session(server, .patient, detour: RedisDetour(finder, from: url.places[0], trail))
            let (now, verdict) = (MonotonicClock.now(), Locked<ReplayVerdict?>(nil))
            func ask(_ number: UInt64) throws {
                let question = StoreUnderTest.waiting(StoreUnderTest.question(number), verdict: verdict)
                try session.send([question], unixMilliseconds: WallClock.unixMilliseconds(), now: now)
                while verdict.withLock({ $0 }) == nil {
                    try session.wait(until: .never)
                    try session.receive(now: MonotonicClock.now())
                }
            }
            if hasTaken {
                // The owner still has this entry, so it proves nothing.
                try ask(1)
                #expect(verdict.withLock { $0.take() } == .nonceUsed)
                #expect(throws: RedisFailure.memoryLost) { try ask(2) }
                session.abandon(now: now)
                #expect(verdict.withLock { $0 } == .unavailable)
            } else {
                try ask(1)
                #expect(verdict.withLock { $0 } == .accepted)
            }
            #expect(trail.hasLost == hasTaken)
        }
    }
}
