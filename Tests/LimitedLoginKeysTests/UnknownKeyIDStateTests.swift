import LLHTTP
import LLTestSupport
import Testing

@testable import LimitedLoginKeys

@Suite("An unknown key ID")
struct UnknownKeyIDStateTests {
    @Test("An ID that its own fetch did not bring is refused for a minute without a fetch, then fetched again")
    func negativeMemory() {
        var driver = StateDriver.settled()
        let since = driver.now
        _ = driver.ask(1)
        driver.advance(by: .milliseconds(100))
        #expect(driver.ask(1, since: since) == .unknown)
        driver.advance(by: .milliseconds(59_999))
        #expect(driver.fetches.count == 2)
        #expect(driver.ask(1) == .unknown)
        driver.advance(by: .milliseconds(1))
        #expect(driver.ask(1) == .wait(until: driver.now + .seconds(6)))
        #expect(driver.fetches.count == 3)
    }

    @Test("A refused ID that keeps coming causes one more fetch after the interval, and then no more")
    func lookedForOnceMore() {
        var driver = StateDriver.settled()
        let (first, since) = (driver.fetches.count, driver.now)
        _ = driver.ask(1)
        driver.advance(by: .milliseconds(100))
        #expect(driver.ask(1, since: since) == .unknown)
        for _ in 0..<590 {
            driver.advance(by: .milliseconds(100))
            #expect(driver.ask(1) == .unknown)
        }
        #expect(driver.fetches.dropFirst(first).map(\.at) == [since, since + .seconds(5)])
    }

    @Test("A new key that an edge server lacks at first is found within six seconds")
    func oldEdge() {
        var driver = StateDriver.settled()
        let began = driver.now
        driver.source = { $0 < began + .seconds(1) ? .unchanged(.init()) : .replaced(.init()) }
        var changed: MonotonicInstant?
        while changed == nil, driver.now < began + .seconds(100) {
            _ = driver.ask(1)
            driver.advance(by: .milliseconds(100))
            if driver.state.lastGoodFetchEndedAt >= began + .seconds(1) { changed = driver.now }
        }
        #expect(changed.map { $0.duration(since: began) <= .seconds(6) } == true)
    }

    @Test("A burst of 10,000 unknown IDs causes exactly one fetch, and each is refused when it ends")
    func burst() {
        var driver = StateDriver.settled()
        let since = driver.now
        for hash in 1...10_000 { #expect(driver.ask(UInt64(hash)) == .wait(until: since + .seconds(6))) }
        driver.advance(by: .milliseconds(100))
        for hash in 1...10_000 { #expect(driver.ask(UInt64(hash), since: since) == .unknown) }
        #expect(driver.fetches.count == 2)
    }

    @Test("An ID that joined a running fetch waits for the next one too: that answer may be older than the key")
    func joined() {
        var driver = StateDriver.settled()
        let began = driver.now
        _ = driver.ask(1)
        driver.advance(by: .milliseconds(50))
        let since = driver.now
        _ = driver.ask(2)
        driver.advance(by: .milliseconds(50))
        #expect(driver.ask(2, since: since) == .wait(until: since + .seconds(6)))
        driver.advance(by: .seconds(5))
        #expect(driver.ask(2, since: since) == .unknown)
        #expect(driver.ask(2) == .unknown)
        #expect(driver.fetches.dropFirst().map(\.at) == [began, began + .seconds(5)])
    }

    @Test("A changed set clears the memory of unknown IDs")
    func changedSet() {
        var driver = StateDriver.settled()
        _ = driver.ask(1)
        driver.advance(by: .milliseconds(100))
        #expect(driver.ask(1) == .unknown)
        driver.source = { _ in .replaced(.init()) }
        _ = driver.ask(2)
        driver.advance(by: .seconds(6))
        // The fetch of the start, that of the first ID, and the one that changed the set.
        #expect(driver.fetches.count == 3)
        #expect(driver.ask(1) == .wait(until: driver.now + .seconds(6)))
        // An ID that this very fetch did not bring stays unknown.
        #expect(driver.ask(2) == .unknown)
    }

    @Test("While the source fails an ID is unavailable, never unknown, and causes no fetch beyond the back-off's")
    func sourceFails() {
        var driver = StateDriver.settled()
        driver.source = { _ in .failed(retryAfterSeconds: nil) }
        let since = driver.now
        #expect(driver.ask(1) == .wait(until: since + .seconds(6)))
        driver.advance(by: .milliseconds(100))
        #expect(driver.ask(1, since: since) == .unavailable(retryAfterSeconds: 1))
        #expect(driver.ask(2) == .unavailable(retryAfterSeconds: 1))
        driver.advance(by: .seconds(600))
        for hash in 3...10_000 {
            let answer = driver.ask(UInt64(hash))
            #expect(answer != .unknown)
        }
        #expect(driver.fetches.filter { $0.reason == .unknownKeyID }.count == 1)
        // When the source answers again, an unknown ID causes a fetch again.
        driver.source = { _ in .unchanged(.init()) }
        driver.advance(by: .seconds(61))
        #expect(driver.ask(20_000) == .wait(until: driver.now + .seconds(6)))
    }

    @Test("After its wait a request is told to try again if the source is slow, and of the outage if it fails")
    func deadline() {
        var driver = StateDriver.settled()
        driver.latency = .seconds(9)
        let since = driver.now
        _ = driver.ask(1)
        driver.advance(by: .seconds(6))
        #expect(driver.ask(1, since: since) == .exhausted(retryAfterSeconds: 1))
        driver.source = { _ in .failed(retryAfterSeconds: nil) }
        driver.advance(by: .seconds(3))
        #expect(driver.ask(1, since: since) == .unavailable(retryAfterSeconds: 1))
    }

    @Test("IDs within the interval of the last fetch wait, and one fetch after the interval answers them all")
    func waitsForTheInterval() {
        var driver = StateDriver.settled()
        let began = driver.now
        _ = driver.ask(1)
        driver.advance(by: .seconds(1))
        let since = driver.now
        for hash: UInt64 in 2...500 { #expect(driver.ask(hash) == .wait(until: since + .seconds(6))) }
        driver.advance(by: .seconds(3))
        #expect(driver.fetches.count == 2)
        driver.advance(by: .milliseconds(1_100))
        #expect(driver.fetches.dropFirst().map(\.at) == [began, began + .seconds(5)])
        for hash: UInt64 in 2...500 { #expect(driver.ask(hash, since: since) == .unknown) }
        #expect(driver.fetches.count == 3)
    }

    @Test("An ID without a place to wait is told when the next fetch begins, and causes none")
    func noPlace() {
        var driver = StateDriver.settled()
        #expect(driver.ask(1, mayWait: false) == .exhausted(retryAfterSeconds: 1))
        #expect(driver.fetches.count == 1)
        _ = driver.ask(1)
        driver.advance(by: .milliseconds(1_500))
        #expect(driver.ask(2, mayWait: false) == .exhausted(retryAfterSeconds: 4))
        // An ID that was asked about before is still refused.
        #expect(driver.ask(1, mayWait: false) == .unknown)
    }

    @Test("If the interval is longer than the wait, a request that would wait in vain is told so at once")
    func longInterval() {
        var limits = JWKSetCacheLimits()
        limits.unknownKeyIDInterval = .seconds(60)
        var driver = StateDriver.settled(limits: limits)
        driver.source = { _ in .replaced(.init()) }
        _ = driver.ask(1)
        driver.advance(by: .seconds(10))
        #expect(driver.ask(2) == .exhausted(retryAfterSeconds: 50))
        driver.advance(by: .seconds(45))
        #expect(driver.ask(2) == .wait(until: driver.now + .seconds(6)))
    }

    @Test(
        "An hour of flood costs one fetch every five seconds, however often its IDs are repeated",
        arguments: [1, 2, 7, 600]
    )
    func longFlood(repeats: Int) {
        var driver = StateDriver.settled()
        let began = driver.now
        for number in 0..<36_000 {
            _ = driver.ask(UInt64(number / repeats + 1) &* 0x9E37_79B9_7F4A_7C15)
            driver.advance(by: .milliseconds(100))
        }
        let elapsed = driver.now.duration(since: began) / .seconds(5)
        // The first fetch was the start's; each good fetch postpones the ordinary refresh.
        #expect(Double(driver.fetches.count) <= elapsed + 4)
    }

    @Test(
        "In any flood a genuine new key waits for the interval and one fetch at most, and is never refused",
        arguments: 1...100
    )
    func rotationInFlood(seed: UInt64) {
        var random = RepeatableGenerator(seed: seed)
        var driver = StateDriver.settled()
        var rotatedAt = MonotonicInstant.never
        driver.latency = .milliseconds(Int.random(in: 1...1_900, using: &random))
        var published: MonotonicInstant?
        driver.source = { now in
            guard now >= rotatedAt, published == nil else { return .unchanged(.init()) }
            published = now
            return .replaced(.init())
        }
        let began = driver.now
        // Some IDs come once, others repeatedly.
        let pool = UInt64.random(in: 1...10_000, using: &random)
        func flood(for milliseconds: Int) {
            for _ in 0..<(milliseconds / 50) {
                for _ in 0..<Int.random(in: 0...20, using: &random) {
                    _ = driver.ask(UInt64.random(in: 1...pool, using: &random) &* 0x9E37_79B9_7F4A_7C15)
                }
                driver.advance(by: .milliseconds(50))
            }
        }
        flood(for: Int.random(in: 0...40_000, using: &random))
        rotatedAt = driver.now
        flood(for: Int.random(in: 0...7_000, using: &random))
        let (genuine, since): (UInt64, MonotonicInstant) = (0xFACE, driver.now)
        while published == nil, driver.now < since + .seconds(5) + driver.latency * 2 {
            switch driver.ask(genuine, since: since) {
            case .wait: flood(for: 50)
            // With a slow source the running fetch uses up the one second that the wait leaves after the interval.
            case .exhausted where driver.latency > .seconds(1): flood(for: 50)
            case let answer:
                Issue.record("a genuine key is told \(answer)")
                return
            }
        }
        #expect(published != nil)
        let elapsed = driver.now.duration(since: began) / .seconds(5)
        #expect(Double(driver.fetches.count) <= elapsed + 4)
    }

    @Test("A key that left the set waits for a fetch after 2 s, and is refused for a minute if that lacks it too")
    func keyThatLeftIsAskedForAgain() {
        var driver = StateDriver.settled()
        let began = driver.now
        driver.source = { _ in .replaced(.init()) }
        _ = driver.ask(1)
        driver.advance(by: .milliseconds(100))
        driver.state.keyHasLeft(hash: 4)
        driver.source = { _ in .unchanged(.init()) }
        driver.advance(by: .milliseconds(1_999))
        #expect(driver.ask(4) == .unknown)
        driver.advance(by: .milliseconds(1))
        #expect(driver.ask(4) == .wait(until: driver.now + .seconds(6)))
        driver.advance(by: .seconds(3))
        #expect(driver.fetches.dropFirst().map(\.at) == [began, began + .seconds(5)])
        driver.advance(by: .milliseconds(59_999))
        #expect(driver.ask(4) == .unknown)
        driver.advance(by: .milliseconds(1))
        #expect(driver.ask(4) == .wait(until: driver.now + .seconds(6)))
    }

    @Test("A key ID that joined a failed fetch is answered by the retry")
    func joinedFailedFetch() {
        var driver = StateDriver.settled()
        driver.source = { _ in .failed(retryAfterSeconds: nil) }
        _ = driver.ask(1)
        driver.advance(by: .milliseconds(50))
        _ = driver.ask(2)
        driver.advance(by: .milliseconds(50))
        #expect(driver.ask(2) == .unavailable(retryAfterSeconds: 1))
        driver.source = { _ in .unchanged(.init()) }
        driver.advance(by: .milliseconds(900))
        _ = driver.ask(2)
        driver.advance(by: .milliseconds(200))
        #expect(driver.ask(2) == .unknown)
        #expect(driver.fetches.map(\.reason) == [.start, .unknownKeyID, .retry])
    }
}
