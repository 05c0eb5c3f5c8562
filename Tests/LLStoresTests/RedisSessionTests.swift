import Glibc
import LLSockets
import LLTestSupport
import Testing

@testable import LLStores

@Suite(
    "One connection to a real server",
    .live,
    .enabled(if: RedisServer.isInstalled, "redis-server is not installed")
)
struct RedisSessionTests {
    @Test("A question has an answer when its own time is over, though the server may take longer")
    func ownTime() throws {
        let server = try RedisServer()
        let store = try StoreUnderTest("redis://127.0.0.1:\(server.port)") { limits in
            limits.questionTimeout = .milliseconds(100)
            limits.revocationPause = .seconds(600)
        }
        #expect(store.wait { $0.store.revocations.isKnown })
        server.suspend()
        // The nonce's answer and the token's would each have a minute.
        let both = ReplayQuestion([StoreUnderTest.entry(.nonce, 1), StoreUnderTest.entry(.token, 2)])
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
        // The connection is the same, and what the server heard of is used.
        #expect(store.failures.isEmpty)
        #expect(store.wait { $0.use(1) == .nonceUsed })
    }

    @Test("A token whose nonce was answered while this machine stood still is asked about with time of its own")
    func stoodStill() throws {
        let server = try RedisServer()
        var configuration = RedisReplayStore.Configuration(
            url: try ReplayStoreURL(parsing: "redis://127.0.0.1:\(server.port)")
        )
        // Long, for the machine that runs this may stand still in earnest.
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
        let question = WaitingQuestion(
            question: ReplayQuestion([StoreUnderTest.entry(.nonce, 1), StoreUnderTest.entry(.token, 2)]),
            askedAt: start,
            deadline: .never,
            observe: { _ in },
            completion: { given in verdict.withLock { $0 = given } }
        )
        // What the loop knows as the present is as long ago as a question may take.
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

    @Test("A server whose clock jumped ahead may have forgotten what was used: it remembers from the jump on")
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

        // No jump at all is let pass, so that the time that goes by is one.
        configuration.limits.clockJump = .zero
        let session = RedisSession(channel, first, limits: configuration.limits, now: first.clock.at)
        let verdict = Locked<ReplayVerdict?>(nil)
        let question = WaitingQuestion(
            question: ReplayQuestion([StoreUnderTest.entry(.nonce, 1)]),
            askedAt: first.clock.at,
            deadline: .never,
            observe: { _ in },
            completion: { given in verdict.withLock { $0 = given } }
        )
        usleep(50_000)
        try session.send([question], unixMilliseconds: WallClock.unixMilliseconds(), now: first.clock.at)
        #expect(throws: RedisFailure.clockChanged) {
            while true { try session.receive(now: first.clock.at) }
        }
        session.abandon(now: first.clock.at)
        #expect(verdict.withLock { $0 } == .unavailable)

        configuration.limits = ReplayLimits()
        let hour: UInt64 = 3_600_000
        var late = first
        late.clock = ServerClock(milliseconds: first.clock.milliseconds - hour, at: first.clock.at)
        let second = try greet(after: late).1
        #expect(second.life.isAfterLoss)
        // The time without the jump.
        #expect(second.life.written.moment < first.clock.milliseconds - hour / 2)
        #expect(second.vouchesForTokensSince == second.vouchesSince)
        // Another replica that saw the jump learns that it is written already.
        #expect(try greet(after: late).1.life.written == second.life.written)
        #expect(try greet(after: second).1.life.written == second.life.written)
    }
}
