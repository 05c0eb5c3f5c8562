import LLHTTP
import LLTestSupport
import Testing

@testable import LLStores

@Suite("One connection to a real server", .live, .needsRedis)
struct RedisSessionTests {
    private static func session(
        _ server: RedisServer,
        _ adjust: (inout ReplayLimits) -> Void = { _ in }
    ) throws -> (session: RedisSession, stream: ClientStream, signal: WakeSignal) {
        let signal = WakeSignal()
        var limits = ReplayLimits()
        adjust(&limits)
        let end = MonotonicClock.now() + patienceOfTests
        let stream = try ClientStream.open("127.0.0.1", port: server.port, names: NameResolver(), until: end)
        let url = try ReplayStoreURL(parsing: "redis://127.0.0.1:\(server.port)")
        let channel = RedisChannel(stream, signal, url.places[0], RedisReplayStore.Configuration(url: url))
        var memory = RedisMemory(.single, limits)
        let session = try RedisSession(over: (channel, handedOverBy: nil), &memory, limits: limits, until: end)
        return (session, stream, signal)
    }

    @Test("If the machine stood still, a token is asked about with time of its own after its nonce's answer")
    func stoodStill() throws {
        let server = try RedisServer()
        // The timeout is as long as the machine has run, because the machine of this test may really stand still.
        let boot = MonotonicInstant(nanoseconds: 0)
        let timeout = MonotonicClock.now().duration(since: boot)
        let (session, stream, signal) = try Self.session(server) { $0.answerTimeout = timeout }
        let end = session.openedAt + timeout

        let verdict = Locked<ReplayVerdict?>(nil)
        let question = StoreUnderTest.waiting(
            ReplayLookup([StoreUnderTest.entry(.nonce, 1), StoreUnderTest.entry(.token, 2)]),
            verdict: verdict
        )
        // By the session's clock, the question is sent as long ago as an answer may take.
        try session.send([question], now: boot)
        #expect(stream.wait(or: signal, until: end) == .ready(0))
        try session.wait(until: .never)
        while verdict.withLock({ $0 }) == nil {
            try session.wait(until: .never)
            try session.receive(now: MonotonicClock.now())
        }
        #expect(verdict.withLock { $0 } == .accepted)
    }

    @Test("A session ends at the server's time limit; a question whose own time is over is not asked")
    func deadlines() throws {
        let server = try RedisServer()
        let session = try Self.session(server).session
        server.suspend()
        defer { server.resume() }
        let (now, verdict, late) = (MonotonicClock.now(), Locked<ReplayVerdict?>(nil), Locked<ReplayVerdict?>(nil))
        try session.send(
            [
                StoreUnderTest.waiting(StoreUnderTest.question(1), verdict: verdict),
                StoreUnderTest.waiting(StoreUnderTest.question(2), until: now, verdict: late),
            ],
            now: now
        )
        #expect(late.withLock { $0 } == .unavailable)
        try session.requireInTime(now + .milliseconds(499))
        #expect(throws: RedisFailure.timedOut) { try session.requireInTime(now + .milliseconds(500)) }
        #expect(verdict.withLock { $0 } == nil)
        session.abandon()
        #expect(verdict.withLock { $0 } == .unavailable)
    }
}
