import Sockets
import TestSupport
import Testing

@testable import KeySets

@Suite("An answer that is older than the key")
struct OldAnswerTests {
    @Test("A key that left the set is asked for again after two seconds, and refused for five if it really left")
    func keyThatLeftIsAskedForAgain() {
        var driver = StateDriver.settled()
        driver.source = { _ in .replaced(.init()) }
        _ = driver.ask(1)
        driver.advance(by: .milliseconds(100))
        driver.state.keyHasLeft(hash: 4)
        driver.source = { _ in .unchanged(.init()) }
        driver.advance(by: .milliseconds(1_999))
        #expect(driver.ask(4) == .unknown)
        driver.advance(by: .milliseconds(1))
        #expect(driver.ask(4) == .wait(until: driver.now + .seconds(2)))
        driver.advance(by: .milliseconds(100))
        driver.advance(by: .milliseconds(4_999))
        #expect(driver.ask(4) == .unknown)
        #expect(driver.fetches.count == 3)
        driver.advance(by: .milliseconds(1))
        #expect(driver.ask(4) == .wait(until: driver.now + .seconds(2)))
    }

    @Test("A key that left the set causes no fetch beyond the budget, however many tokens name it")
    func keyThatLeftInFlood() {
        var driver = StateDriver.settled()
        driver.source = { _ in .replaced(.init()) }
        let began = driver.now
        for number in 0..<6_000 {
            // Each made-up key ID finds an edge that has one key or the other.
            _ = driver.ask(UInt64(number) + 10)
            driver.state.keyHasLeft(hash: UInt64(number % 2))
            _ = driver.ask(UInt64(number % 2))
            driver.advance(by: .milliseconds(100))
        }
        let elapsed = driver.now.duration(since: began) / .seconds(5)
        #expect(Double(driver.fetches.count) <= elapsed + 4)
    }

    @Test("A hundred tokens that joined a fetch under way cause one more, and each is answered by that")
    func burstDuringFetch() {
        var driver = StateDriver.settled()
        _ = driver.ask(1)
        driver.advance(by: .milliseconds(50))
        let since = driver.now
        for hash: UInt64 in 2...100 { _ = driver.ask(hash) }
        driver.advance(by: .milliseconds(50))
        for hash: UInt64 in 2...100 {
            #expect(driver.ask(hash, since: since) == .wait(until: since + .seconds(2)))
        }
        driver.advance(by: .milliseconds(100))
        for hash: UInt64 in 2...100 { #expect(driver.ask(hash, since: since) == .unknown) }
        #expect(driver.fetches.count == 3)
    }

    @Test("A key ID that joined a fetch is unavailable while the budget is spent, and known after the next fetch")
    func joinedWithoutBudget() {
        var driver = StateDriver.settled()
        _ = driver.ask(1)
        driver.advance(by: .seconds(1))
        _ = driver.ask(2)
        driver.advance(by: .milliseconds(50))
        let since = driver.now
        _ = driver.ask(3)
        driver.advance(by: .milliseconds(50))
        #expect(driver.ask(3, since: since) == .unavailable(retryAfterSeconds: 4))
        #expect(driver.ask(3) == .unavailable(retryAfterSeconds: 4))
        // Another key ID's fetch has begun since and answers for this one too.
        driver.advance(by: .seconds(4))
        _ = driver.ask(4)
        driver.advance(by: .milliseconds(100))
        #expect(driver.ask(3) == .unknown)
        #expect(driver.fetches.count == 4)
    }

    @Test("A key ID that joined a fetch which failed is answered by the retry")
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
        "A key published during a fetch is never refused, and one retry finds it, whatever forgers do",
        arguments: 1...200
    )
    func publishedDuringFetch(seed: UInt64) {
        var random = RepeatableGenerator(seed: seed)
        var driver = StateDriver.settled()
        let latency = Duration.milliseconds(Int.random(in: 50...1_900, using: &random))
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
        // The source gives what stood there when it was asked.
        driver.source = { now in
            guard now >= rotatedAt + latency, !isPublished else { return .unchanged(.init()) }
            isPublished = true
            return .replaced(.init())
        }
        /// Answers the seconds until the retry; nil once the key is there.
        func request() -> Int? {
            let since = driver.now
            while !isPublished {
                switch driver.ask(0xFACE, since: since) {
                case .wait: flood(for: 50)
                case .unavailable(let seconds): return seconds
                case .unknown, .lookAgain:
                    Issue.record("a genuine key is refused")
                    return nil
                }
            }
            return nil
        }
        if let seconds = request() {
            #expect((1...5).contains(seconds))
            flood(for: seconds * 1_000)
            #expect(request() == nil)
        }
    }
}
