import LLHTTP
import Testing

@testable import LimitedLoginKeys

@Suite("The key cache's state")
struct JWKSetCacheStateTests {
    private static func state(jitter: Double = 0.5) -> JWKSetCacheState {
        var limits = JWKSetCacheLimits()
        limits.jitter = jitter
        return JWKSetCacheState(limits: limits)
    }

    @Test("The state goes from empty to fresh, to refreshing and back to fresh without a request")
    func ordinaryLife() {
        var driver = StateDriver()
        driver.source = { _ in .replaced(.init(remaining: .seconds(1000))) }
        #expect(driver.phase() == .empty)
        driver.start()
        #expect(driver.phase() == .empty)
        // With a jitter of 0.5 the refresh begins a tenth of the time to live before the expiry.
        let phases: [(Int64, JWKSetCachePhase)] = [
            (100, .fresh), (899_000, .fresh), (1_050, .refreshing), (100, .fresh),
        ]
        for (milliseconds, phase) in phases {
            driver.advance(by: .milliseconds(milliseconds))
            #expect(driver.phase() == phase)
        }
        #expect(driver.fetches.map(\.reason) == [.start, .refresh])
    }

    @Test("In an outage the state backs off, turns stale and expires; the source's return makes it fresh")
    func outage() {
        var limits = JWKSetCacheLimits()
        limits.maximumStaleness = .seconds(7200)
        var driver = StateDriver.settled(limits: limits)
        driver.source = { _ in .failed(retryAfterSeconds: nil) }
        for (seconds, phase) in [(3300, .backingOff), (400, .stale), (7200, .expired)] as [(Int64, JWKSetCachePhase)] {
            driver.advance(by: .seconds(seconds))
            #expect(driver.phase() == phase)
        }
        driver.source = { _ in .unchanged(.init()) }
        driver.advance(by: .seconds(61))
        #expect(driver.phase() == .fresh)
    }

    @Test("Back-off doubles from one second to a minute; jitter only shortens it, by a quarter at most")
    func backOff() throws {
        for (jitter, factor) in [(0.0, 0.75), (0.999_999, 1.0)] {
            var state = Self.state(jitter: jitter)
            var now = MonotonicInstant(nanoseconds: 0)
            for expected in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
                let begins = state.begin(at: now)
                #expect(begins)
                state.fail(retryAfter: nil, at: now)
                let until = try #require(state.nextAttempt)
                let wait = until.duration(since: now) / Duration.seconds(1)
                #expect(abs(wait - Double(expected) * factor) < 0.001)
                now = until
            }
        }
    }

    @Test("Ten thousand failures in a row do not overflow the back-off")
    func longBackOff() {
        var state = Self.state()
        var now = MonotonicInstant(nanoseconds: 0)
        for _ in 0..<10_000 {
            _ = state.begin(at: now)
            state.fail(retryAfter: nil, at: now)
            now = now + .seconds(60)
        }
        #expect(state.consecutiveFailures == 10_000)
    }

    @Test(
        "Retry-After lengthens a back-off, within the back-off's own maximum",
        arguments: [(0, 0.875), (1, 1.0), (30, 30), (60, 60), (61, 60), (3600, 60), (Int.max, 60)] as [(Int, Double)]
    )
    func retryAfter(_ seconds: Int, _ expected: Double) throws {
        var state = Self.state()
        let now = MonotonicInstant(nanoseconds: 0)
        _ = state.begin(at: now)
        state.fail(retryAfter: .seconds(seconds), at: now)
        let until = try #require(state.nextAttempt)
        #expect(abs(until.duration(since: now) / .seconds(1) - expected) < 0.001)
    }

    @Test(
        "A time to live is clamped, whatever the source says",
        arguments: [
            (nil, 3600), (0, 300), (1, 300), (299, 300), (300, 300), (4000, 4000), (86_400, 86_400), (86_401, 86_400),
            (315_360_000, 86_400), (Int.max, 86_400),
        ] as [(Int?, Int)]
    )
    func timeToLive(_ seconds: Int?, _ expected: Int) {
        let state = Self.state()
        #expect(state.timeToLive(of: .init(remaining: seconds.map { .seconds($0) })) == .seconds(expected))
    }

    @Test(
        "A refresh begins 5 to 15 % of the time to live before the expiry",
        arguments: [0, 0.25, 0.5, 0.75, 0.999_999]
    )
    func refreshAhead(_ jitter: Double) throws {
        var state = Self.state(jitter: jitter)
        let now = MonotonicInstant(nanoseconds: 0)
        _ = state.begin(at: now)
        state.confirm(.init(), isReplaced: true, at: now)
        let times = try #require(state.times)
        let lead = times.expiresAt.duration(since: times.refreshAt) / .seconds(1)
        #expect(lead >= 180 && lead <= 540)
    }

    @Test("One fetch runs at a time: a start, a refresh and a request add none to it")
    func singleFlight() {
        var state = Self.state()
        let now = MonotonicInstant(nanoseconds: 0)
        let begins = [state.begin(at: now), state.begin(at: now)]
        #expect(begins == [true, false])
        let due = state.wake(at: now + .seconds(100_000))
        #expect(due == nil)
        let asks = state.missingKey(hash: 1, since: now, at: now).begins
        #expect(!asks)
    }

    @Test("After a stop the state begins no fetch and asks for no wake")
    func stopped() {
        var driver = StateDriver()
        driver.source = { _ in .replaced(.init()) }
        driver.start()
        driver.advance(by: .seconds(1))
        driver.state.isStopped = true
        driver.advance(by: .seconds(100_000))
        #expect(driver.fetches.count == 1)
        #expect(driver.state.nextWake(after: driver.now) == nil)
        let answer = driver.ask(1)
        #expect(answer == .unavailable(retryAfterSeconds: 1))
    }

    @Test("A seed's age counts, so its keys expire like any others")
    func seed() throws {
        var state = Self.state()
        let now = MonotonicInstant(nanoseconds: 5)
        state.seed(age: .seconds(80_000), at: now)
        let times = try #require(state.times)
        #expect(state.phase(at: now) == .stale)
        #expect(times.usableUntil == now + .seconds(6_400))
        state.seed(age: .seconds(600), at: now)
        #expect(state.phase(at: now) == .fresh)
        #expect(state.times?.expiresAt == now + .seconds(3_000))
    }

    @Test("A clock that jumps years ahead or back to its start causes no trap and leaves a usable state")
    func jumpingClock() {
        var state = Self.state()
        let moments: [UInt64] = [1 << 40, 5, 1 << 62, 0, .max, 1 << 41, .max - 1, 1 << 40]
        for nanoseconds in moments {
            let now = MonotonicInstant(nanoseconds: nanoseconds)
            _ = state.wake(at: now)
            _ = state.begin(at: now)
            _ = state.missingKey(hash: nanoseconds | 1, since: now, at: now)
            state.fail(retryAfter: .seconds(Int.max), at: now)
            _ = state.begin(at: now)
            state.confirm(.init(remaining: .seconds(Int.max)), isReplaced: false, at: now)
            _ = state.nextWake(after: now)
            _ = state.missingKey(hash: nil, since: .never, at: now)
        }
        #expect(state.phase(at: MonotonicInstant(nanoseconds: 1 << 40)) == .fresh)
    }

    @Test("Without keys a request begins no fetch, and waits for a running one only for its own time")
    func noKeys() {
        var driver = StateDriver()
        #expect(driver.ask(nil) == .unavailable(retryAfterSeconds: 1) && driver.fetches.isEmpty)
        driver.latency = .seconds(9)
        driver.source = { _ in .failed(retryAfterSeconds: 20) }
        let since = driver.now
        driver.start()
        #expect(driver.ask(nil, since: since) == .wait(until: since + .seconds(2)))
        driver.advance(by: .seconds(2))
        #expect(driver.ask(nil, since: since) == .unavailable(retryAfterSeconds: 1))
        driver.advance(by: .seconds(7))
        #expect(driver.ask(nil) == .unavailable(retryAfterSeconds: 20))
    }
}
