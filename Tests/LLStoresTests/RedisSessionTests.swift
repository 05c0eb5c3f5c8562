import Glibc
import LLHTTP
import LLTestSupport
import Testing

@testable import LLStores

@Suite(
    "One connection to a real server",
    .live,
    .needsRedis
)
struct RedisSessionTests {
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
        let handshake = try RedisHandshake(over: channel, configuration, until: end)
        let session = RedisSession(channel, handshake, limits: limits, now: start)

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

    /// A session with a server, as if it had begun a moment ago.
    private static func session(
        _ server: RedisServer,
        _ adjust: (inout ReplayLimits) -> Void = { _ in }
    ) throws -> RedisSession {
        let configuration = RedisReplayStore.Configuration(
            url: try ReplayStoreURL(parsing: "redis://127.0.0.1:\(server.port)")
        )
        var limits = ReplayLimits()
        adjust(&limits)
        let end = MonotonicClock.now() + patienceOfTests
        let stream = try ClientStream.open("127.0.0.1", port: server.port, names: NameResolver(), until: end)
        let channel = RedisChannel(stream, WakeSignal(), configuration.url.places[0])
        let handshake = try RedisHandshake(over: channel, configuration, until: end)
        return RedisSession(channel, handshake, limits: limits, now: handshake.clock.at)
    }

    @Test("A jump of the server's clock ends the session, and its questions are answered as unavailable")
    func jumpedClock() throws {
        let server = try RedisServer()
        // Even the smallest jump counts, so the time that passes is one.
        let session = try Self.session(server) { $0.clockJump = .zero }
        let (verdict, now) = (Locked<ReplayVerdict?>(nil), session.openedAt)
        usleep(50_000)
        try session.send(
            [StoreUnderTest.waiting(StoreUnderTest.question(1), verdict: verdict)],
            unixMilliseconds: WallClock.unixMilliseconds(),
            now: now
        )
        let end = MonotonicClock.now() + patienceOfTests
        #expect(throws: RedisFailure.clockChanged) {
            while MonotonicClock.now() < end { try session.receive(now: now) }
        }
        session.abandon(now: now)
        #expect(verdict.withLock { $0 } == .unavailable)
    }

    @Test("A session ends at the server's time limit; a question whose own time is over is not asked")
    func deadlines() throws {
        let server = try RedisServer()
        let session = try Self.session(server)
        server.suspend()
        defer { server.resume() }
        let (now, verdict, late) = (MonotonicClock.now(), Locked<ReplayVerdict?>(nil), Locked<ReplayVerdict?>(nil))
        try session.send(
            [
                StoreUnderTest.waiting(StoreUnderTest.question(1), verdict: verdict),
                StoreUnderTest.waiting(StoreUnderTest.question(2), until: now, verdict: late),
            ],
            unixMilliseconds: WallClock.unixMilliseconds(),
            now: now
        )
        #expect(late.withLock { $0 } == .unavailable)
        try session.requireInTime(now + .milliseconds(499))
        #expect(throws: RedisFailure.timedOut) { try session.requireInTime(now + .milliseconds(500)) }
        #expect(verdict.withLock { $0 } == nil)
        session.abandon(now: now)
        #expect(verdict.withLock { $0 } == .unavailable)
    }
}
