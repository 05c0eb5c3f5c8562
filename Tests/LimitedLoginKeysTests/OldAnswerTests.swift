import LLSockets
import LLTestSupport
import Testing

@testable import LimitedLoginKeys

@Suite("An answer that is older than the key")
struct OldAnswerTests {
    @Test(
        "A key that left the set waits for a fetch after 2 s, and is refused for a minute if that lacks it too"
    )
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

    @Test("A key that left the set causes no fetch beyond the budget, however many tokens name it")
    func keyThatLeftInFlood() {
        var driver = StateDriver.settled()
        driver.source = { _ in .replaced(.init()) }
        let began = driver.now
        for number in 0..<6_000 {
            // Each made-up key ID reaches an edge server that lacks one of the two keys.
            _ = driver.ask(UInt64(number) + 10)
            driver.state.keyHasLeft(hash: UInt64(number % 2))
            _ = driver.ask(UInt64(number % 2))
            driver.advance(by: .milliseconds(100))
        }
        let elapsed = driver.now.duration(since: began) / .seconds(5)
        #expect(Double(driver.fetches.count) <= elapsed + 4)
    }

    @Test("A hundred tokens that joined a running fetch are answered by one more after the interval")
    func burstDuringFetch() {
        var driver = StateDriver.settled()
        _ = driver.ask(1)
        driver.advance(by: .milliseconds(50))
        let since = driver.now
        for hash: UInt64 in 2...100 { _ = driver.ask(hash) }
        driver.advance(by: .milliseconds(50))
        for hash: UInt64 in 2...100 {
            #expect(driver.ask(hash, since: since) == .wait(until: since + .seconds(6)))
        }
        driver.advance(by: .seconds(5))
        for hash: UInt64 in 2...100 { #expect(driver.ask(hash, since: since) == .unknown) }
        #expect(driver.fetches.count == 3)
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

    @Test(
        "A key published during a fetch is never refused and is found by the next one in any flood",
        arguments: 1...100
    )
    func publishedDuringFetch(seed: UInt64) {
        var random = RepeatableGenerator(seed: seed)
        var driver = StateDriver.settled()
        let latency = Duration.milliseconds(Int.random(in: 50...950, using: &random))
        driver.latency = latency
        func flood(for milliseconds: Int) {
            for _ in 0..<(milliseconds / 50) {
                for _ in 0..<Int.random(in: 0...20, using: &random) {
                    _ = driver.ask(.random(in: 1...9_999, using: &random))
                }
                driver.advance(by: .milliseconds(50))
            }
        }
        flood(for: Int.random(in: 0...40_000, using: &random))
        _ = driver.ask(10_000)
        driver.advance(by: .milliseconds(10))
        let rotatedAt = driver.now
        var isPublished = false
        // The source answers with the set that it had when it was asked.
        driver.source = { now in
            guard now >= rotatedAt + latency, !isPublished else { return .unchanged(.init()) }
            isPublished = true
            return .replaced(.init())
        }
        let since = driver.now
        while !isPublished, driver.now < since + .seconds(6) {
            guard case .wait = driver.ask(0xFACE, since: since) else {
                Issue.record("a genuine key is refused")
                return
            }
            flood(for: 50)
        }
        #expect(isPublished)
    }
}
