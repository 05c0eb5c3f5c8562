import Sockets
import TestSupport
import Testing

@testable import KeySets

@Suite("An unknown key ID")
struct UnknownKeyIDStateTests {
    func check(
        _ answer: MissingKeyAnswer,
        _ expected: MissingKeyAnswer,
        at location: SourceLocation = #_sourceLocation
    ) {
        #expect(answer == expected, sourceLocation: location)
    }

    @Test("A key that leaves the set is unknown at once, also when the budget is spent")
    func keyThatLeft() {
        var driver = StateDriver.settled()
        driver.source = { _ in .replaced(.init()) }
        for hash: UInt64 in [1, 2] {
            _ = driver.ask(hash)
            driver.advance(by: .seconds(1))
        }
        // The budget is spent: of any other key ID nobody can tell.
        guard case .unavailable = driver.ask(3) else {
            Issue.record("the budget is not spent")
            return
        }
        driver.state.keyHasLeft(hash: 4)
        #expect(driver.ask(4) == .unknown)
    }

    @Test("One second after a fetch still causes one, and the request waits for it")
    func rotationAfterFetch() {
        var driver = StateDriver.settled()
        let asked = driver.now
        check(driver.ask(1), .wait(until: asked + .seconds(2)))
        #expect(driver.fetches.map(\.reason) == [.start, .unknownKeyID])
    }

    @Test("Is refused at once for five seconds after its own fetch did not bring it, then asked for again")
    func negativeMemory() {
        var driver = StateDriver.settled()
        _ = driver.ask(1)
        driver.advance(by: .milliseconds(100))
        check(driver.ask(1), .unknown)
        driver.advance(by: .milliseconds(4_999))
        check(driver.ask(1), .unknown)
        #expect(driver.fetches.count == 2)
        driver.advance(by: .milliseconds(1))
        check(driver.ask(1), .wait(until: driver.now + .seconds(2)))
        #expect(driver.fetches.count == 3)
    }

    @Test("A new key that an edge with the previous set denies is found within six seconds, without a retry of its own")
    func oldEdge() {
        var driver = StateDriver.settled()
        let began = driver.now
        driver.source = { $0 < began + .seconds(1) ? .unchanged(.init()) : .replaced(.init()) }
        var changed: MonotonicInstant?
        while changed == nil, driver.now < began + .seconds(100) {
            _ = driver.ask(1)
            driver.advance(by: .milliseconds(100))
            if driver.state.setChangedByFetch > 1 { changed = driver.now }
        }
        #expect(changed.map { $0.duration(since: began) <= .seconds(6) } == true)
    }

    @Test("Any number that keep coming, each known to no source, are refused throughout, at one fetch in five seconds")
    func deadKeyIDs() {
        var driver = StateDriver.settled()
        let keyIDs: ClosedRange<UInt64> = 1...50
        // Each has its first question answered, within the budget.
        while !keyIDs.allSatisfy({ driver.ask($0) == .unknown }), driver.fetches.count < 100 {
            driver.advance(by: .milliseconds(100))
        }
        let (began, fetches) = (driver.now, driver.fetches.count)
        var answers: Set<String> = []
        while driver.now < began + .seconds(60) {
            for keyID in keyIDs {
                let since = driver.now
                var answer = driver.ask(keyID)
                if case .wait = answer {
                    driver.advance(by: driver.latency)
                    answer = driver.ask(keyID, since: since)
                }
                answers.insert("\(answer)")
            }
            driver.advance(by: .milliseconds(50))
        }
        #expect(answers == ["unknown"])
        #expect(driver.fetches.count - fetches <= 13)
    }

    @Test("A burst of ten thousand causes exactly one fetch, and each is refused when it ends")
    func burst() {
        var driver = StateDriver.settled()
        let since = driver.now
        for hash in 1...10_000 {
            check(driver.ask(UInt64(hash)), .wait(until: since + .seconds(2)))
        }
        driver.advance(by: .milliseconds(100))
        for hash in 1...10_000 {
            check(driver.ask(UInt64(hash), since: since), .unknown)
        }
        #expect(driver.fetches.count == 2)
    }

    @Test("One that joined a fetch under way causes another when it ends, for that answer may be older than the key")
    func joined() {
        var driver = StateDriver.settled()
        _ = driver.ask(1)
        driver.advance(by: .milliseconds(50))
        let since = driver.now
        _ = driver.ask(2)
        driver.advance(by: .milliseconds(50))
        check(driver.ask(2, since: since), .wait(until: since + .seconds(2)))
        driver.advance(by: .milliseconds(100))
        check(driver.ask(2, since: since), .unknown)
        check(driver.ask(2), .unknown)
        #expect(driver.fetches.count == 3)
        driver.advance(by: .seconds(4))
        check(driver.ask(2), .unknown)
    }

    @Test("A changed set forgets what was unknown before it")
    func changedSet() {
        var driver = StateDriver.settled()
        _ = driver.ask(1)
        driver.advance(by: .milliseconds(100))
        check(driver.ask(1), .unknown)
        driver.source = { _ in .replaced(.init()) }
        // 3 fetches: the start, its own, and now another's that changes the set.
        _ = driver.ask(2)
        driver.advance(by: .milliseconds(100))
        #expect(driver.fetches.count == 3)
        driver.advance(by: .seconds(30))
        check(driver.ask(1), .wait(until: driver.now + .seconds(2)))
        // And what that very fetch did not bring stays unknown.
        #expect(driver.fetches.count == 4)
    }

    @Test("What the fetch that changed the set did not bring is unknown all the same")
    func changedSetCovers() {
        var driver = StateDriver.settled()
        driver.source = { _ in .replaced(.init()) }
        _ = driver.ask(1)
        driver.advance(by: .milliseconds(100))
        check(driver.ask(1), .unknown)
        #expect(driver.fetches.count == 2)
    }

    @Test("While the source fails nobody can tell: unavailable, never unknown, and no fetch beyond the back-off's")
    func sourceFails() {
        var driver = StateDriver.settled()
        driver.source = { _ in .failed(retryAfterSeconds: nil) }
        let since = driver.now
        check(driver.ask(1), .wait(until: since + .seconds(2)))
        driver.advance(by: .milliseconds(100))
        check(driver.ask(1, since: since), .unavailable(retryAfterSeconds: 1))
        check(driver.ask(2), .unavailable(retryAfterSeconds: 1))
        driver.advance(by: .seconds(600))
        for hash in 3...10_000 {
            let answer = driver.ask(UInt64(hash))
            #expect(answer != .unknown)
        }
        #expect(driver.fetches.filter { $0.reason == .unknownKeyID }.count == 1)
        // Once the source answers again, the question is open again and is asked.
        driver.source = { _ in .unchanged(.init()) }
        driver.advance(by: .seconds(61))
        check(driver.ask(20_000), .wait(until: driver.now + .seconds(2)))
    }

    @Test("A request that has waited its time is told that nobody can tell, whatever else happens")
    func deadline() {
        var driver = StateDriver.settled()
        driver.latency = .seconds(9)
        let since = driver.now
        _ = driver.ask(1)
        driver.advance(by: .seconds(2))
        check(driver.ask(1, since: since), .unavailable(retryAfterSeconds: 1))
        driver.advance(by: .seconds(7))
        check(driver.ask(1, since: since), .unknown)
    }

    @Test("With the budget spent one that nobody has asked about is unavailable, with the time until it can be asked")
    func budgetSpent() {
        var driver = StateDriver.settled()
        for hash in 1...2 {
            check(driver.ask(UInt64(hash)), .wait(until: driver.now + .seconds(2)))
            driver.advance(by: .milliseconds(100))
        }
        check(driver.ask(3), .unavailable(retryAfterSeconds: 5))
        driver.advance(by: .milliseconds(2_801))
        check(driver.ask(3), .unavailable(retryAfterSeconds: 2))
        // What was asked about is still unknown.
        check(driver.ask(1), .unknown)
        driver.advance(by: .seconds(2))
        check(driver.ask(3), .wait(until: driver.now + .seconds(2)))
        driver.advance(by: .milliseconds(100))
        check(driver.ask(3), .unknown)
    }

    @Test("A hundred thousand in ten seconds cause at most four fetches, and none is refused that nobody asked about")
    func flood() {
        var driver = StateDriver.settled()
        var generator = SystemRandomNumberGenerator()
        var refused = 0
        for _ in 0..<100_000 {
            let hash = UInt64.random(in: 1 ... .max, using: &generator)
            if driver.ask(hash) == .unknown { refused += 1 }
            driver.advance(by: .microseconds(100))
        }
        #expect(driver.fetches.count - 1 <= 4)
        #expect(refused == 0)
    }

    @Test(
        "An hour of flood costs a fetch in five seconds and the burst, however often its IDs are repeated",
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
        // The first fetch was the start's; each good one puts the ordinary refresh off.
        #expect(Double(driver.fetches.count) <= elapsed + 4)
    }

    @Test(
        "Whatever forgers do, a genuine new key is told to wait once, for five seconds at most, and is never refused",
        arguments: 1...200
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
        // Some IDs come once, some again and again.
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
        let genuine: UInt64 = 0xFACE
        var answer = driver.ask(genuine)
        if published == nil, case .unavailable(let seconds) = answer {
            #expect((1...5).contains(seconds))
            flood(for: seconds * 1_000)
            answer = driver.ask(genuine)
        }
        if published == nil {
            check(answer, .wait(until: driver.now + .seconds(2)))
            driver.advance(by: .seconds(2))
        }
        #expect(published != nil)
        let elapsed = driver.now.duration(since: began) / .seconds(5)
        #expect(Double(driver.fetches.count) <= elapsed + 4)
    }

    @Test("The memory of a flood never exceeds its capacity")
    func memoryIsBounded() {
        var memory = UnknownKeyIDMemory(capacity: 1024)
        for number in 1...100_000 {
            memory.store(
                .init(
                    hash: UInt64(number) &* 0x9E37_79B9_7F4A_7C15,
                    fetch: UInt64(number)
                )
            )
        }
        #expect(memory.entries.count { $0.fetch != 0 } <= 1024)
        #expect(memory.entries.count { $0.fetch != 0 } > 1000)
        let last: UInt64 = 100_000 &* 0x9E37_79B9_7F4A_7C15
        #expect(memory.entry(for: last) != nil)
    }

    @Test("The budget allows a burst, then one per interval, and gathers no more than the burst in idle time")
    func budget() {
        var budget = RefetchBudget(burst: 2, interval: .seconds(30))
        func taken(after seconds: Double) -> [Bool] {
            let now = MonotonicInstant(nanoseconds: 0) + .seconds(seconds)
            return [budget.take(at: now), budget.take(at: now), budget.take(at: now)]
        }
        #expect(taken(after: 0) == [true, true, false])
        #expect(taken(after: 29.999) == [false, false, false])
        #expect(taken(after: 30) == [true, false, false])
        #expect(taken(after: 86_400) == [true, true, false])
    }
}
