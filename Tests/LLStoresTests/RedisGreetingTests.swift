import LLSockets
import LLTestSupport
import Testing

@testable import LLStores

/// One server, and greetings that report the beginning of its memory.
private struct Greeter {
    let server: RedisServer
    let configuration: RedisReplayStore.Configuration
    let end = MonotonicClock.now() + patienceOfTests
    /// The identity of the server's run.
    let identity: String
    var node: RedisNode { configuration.url.places[0] }

    init() throws {
        server = try RedisServer()
        configuration = RedisReplayStore.Configuration(
            url: try ReplayStoreURL(parsing: "redis://127.0.0.1:\(server.port)")
        )
        identity = try RedisServerFacts(info: try Self.channel(configuration.url, end).info(until: end)).identity
    }

    private static func channel(_ url: ReplayStoreURL, _ end: MonotonicInstant) throws -> RedisChannel {
        let stream = try ClientStream.open(url.host, port: url.port, names: NameResolver(), until: end)
        return RedisChannel(stream, WakeSignal(), url.places[0])
    }

    func greet(_ context: RedisGreeting.Context) throws -> RedisGreeting {
        try RedisGreeting(over: Self.channel(configuration.url, end), configuration, context, until: end)
    }

    /// - Parameter last: The replica's last greeting of this server.
    func greet(after last: RedisGreeting? = nil) throws -> RedisGreeting {
        try greet(RedisGreeting.Context(last: last.map(past)))
    }

    func past(_ greeting: RedisGreeting) -> RedisPast {
        RedisPast(node: node, greeting: greeting, seenAt: greeting.clock.at)
    }

    func set(_ key: String, _ value: String) throws {
        #expect(try server.send("SET \(key) \"\(value)\"").hasPrefix("+OK"))
    }

    func forgetAll() throws { #expect(try server.send("FLUSHALL").hasPrefix("+OK")) }
}

@Suite(
    "The beginning of a server's memory",
    .live,
    .needsRedis
)
struct RedisGreetingTests {
    private static let hour: UInt64 = 3_600_000
    private static let keys = RedisKeys.usual

    /// The same greeting with a clock that was an hour behind.
    private static func late(_ greeting: RedisGreeting) -> RedisGreeting {
        var late = greeting
        late.clock = ServerClock(milliseconds: greeting.clock.milliseconds - hour, at: greeting.clock.at)
        return late
    }

    /// Two servers. The second has the keys of the first.
    private static func pair() throws -> (first: Greeter, greeting: RedisGreeting, second: Greeter) {
        let (first, second) = (try Greeter(), try Greeter())
        let greeting = try first.greet()
        try second.set(keys.data, greeting.life.written.text)
        try second.set(keys.life(of: first.identity), greeting.life.written.text)
        return (first, greeting, second)
    }

    @Test(
        "A slot that moves to a node with another clock causes no jump; a jump of that node's own clock does",
        arguments: [-3_600_000, 3_600_000]
    )
    func movedBetweenClocks(lead: Int64) throws {
        for jumps in [false, true] {
            let (first, greeting, second) = try Self.pair()
            var old = greeting
            old.clock = ServerClock(
                milliseconds: UInt64(Int64(greeting.clock.milliseconds) + lead),
                at: greeting.clock.at
            )
            if lead < 0 { old.lateness = Self.hour }
            let trail = RedisTrail()
            try trail.note(second.identity, of: second.node)
            if jumps {
                let before = ServerClock(milliseconds: greeting.clock.milliseconds - Self.hour, at: greeting.clock.at)
                try trail.note(before, of: second.node, ReplayLimits())
            }
            let context = RedisGreeting.Context(last: first.past(old), handedOverBy: "f00", trail: trail)
            let life = try second.greet(context).life
            #expect(life.isAfterLoss == jumps)
            // The old node's clock was behind, so by the new node's clock the memory began later.
            let shift = lead < 0 ? Self.hour - ReplayLimits.clockMargin : 0
            let moved = greeting.life.written.moment + shift
            #expect(jumps ? life.written.moment >= greeting.clock.milliseconds : life.written.moment == moved)
            #expect(trail.isEmpty)
            #expect(try second.greet().life.written == life.written)
        }
    }

    @Test(
        "After a jump together with FLUSHALL the memory begins now, whichever replica comes first",
        arguments: [false, true]
    )
    func jumpedAndEmptied(isSecond: Bool) throws {
        let greeter = try Greeter()
        let first = try greeter.greet()
        let late = Self.late(first)
        try greeter.forgetAll()
        if isSecond { #expect(try !greeter.greet().life.isAfterLoss) }
        let second = try greeter.greet(after: late)
        #expect(second.life.isAfterLoss)
        #expect(second.life.written.moment >= first.clock.milliseconds)
        func isKnown(_ born: UInt64) -> [Bool] {
            StoreUnderTest.question(1, bornAt: born).areIssuedSince(
                nonceSince: second.completeSince,
                tokenSince: second.tokensCompleteSince
            )
        }
        #expect(isKnown(first.completeSince) == [false])
        #expect(isKnown(second.completeSince) == [true])
        for last in [nil, late, second] {
            let other = try greeter.greet(after: last).life
            #expect(other.written == second.life.written && other.isAfterLoss)
        }
    }

    @Test("Data that are emptied in the same run are lost, even if a replica that never saw them comes first")
    func emptied() throws {
        let greeter = try Greeter()
        let first = try greeter.greet()
        try greeter.forgetAll()
        let fresh = try greeter.greet()
        #expect(!fresh.life.isAfterLoss)
        let second = try greeter.greet(after: first).life
        #expect(second.isAfterLoss && second.since > first.life.since)
        for last in [nil, first, fresh] {
            let other = try greeter.greet(after: last).life
            #expect(other.written == second.written && other.isAfterLoss)
        }
    }

    @Test("Entries dated ahead in one memory count as older than the next memory")
    func datedAhead() throws {
        let greeter = try Greeter()
        let ahead = WallClock.unixMilliseconds() + Self.hour
        try greeter.set(Self.keys.data, "\(ahead)")
        try greeter.set(Self.keys.life(of: greeter.identity), "\(ahead)")
        let first = try greeter.greet()
        // This is the latest date of a nonce in that memory.
        #expect(first.completeSince == ahead + ReplayLimits.clockMargin)
        try greeter.forgetAll()
        #expect(try greeter.greet(after: first).completeSince > first.completeSince)
        // Only the key with the data's beginning shows the date.
        try greeter.forgetAll()
        try greeter.set(Self.keys.data, "\(ahead)")
        #expect(try greeter.greet().completeSince > first.completeSince)
        // Another replica did not know the date, and noted the loss.
        try greeter.forgetAll()
        try greeter.set(Self.keys.life(of: greeter.identity), "\(ahead - Self.hour) after loss")
        let second = try greeter.greet(after: first)
        #expect(second.completeSince > first.completeSince)
        #expect(try greeter.greet(after: first).life.written == second.life.written)
    }

    @Test("A loss during a slot's move counts, even if another replica greets the new owner first", arguments: 0..<4)
    func lostOnTheWay(kind: Int) throws {
        let (first, greeting, second) = try Self.pair()
        // Another replica found no loss.
        try second.set(Self.keys.life(of: second.identity), greeting.life.written.text)
        let trail = RedisTrail()
        switch kind {
        case 0: try trail.note(second.identity, of: second.node)
        case 1: try trail.note("f00", of: second.node)
        case 2: try trail.note(second.identity, of: RedisNode(host: "a", port: 1))
        default: trail.hasLost = true
        }
        let context = RedisGreeting.Context(last: first.past(greeting), handedOverBy: "f00", trail: trail)
        let life = try second.greet(context).life
        #expect(life.isAfterLoss == (kind > 0))
        #expect(kind > 0 ? life.since > greeting.life.since : life.since == greeting.life.since)
        // The slot has arrived, so the trail begins anew.
        #expect(trail.isEmpty && !trail.hasLost)
        #expect(try second.greet().life.written == life.written)
    }

    @Test("The keys are handed over once: if they are marked as moved already, something is lost")
    func handedOverBefore() throws {
        let (first, greeting, second) = try Self.pair()
        try second.set(Self.keys.life(of: first.identity), "moved")
        let context = RedisGreeting.Context(last: first.past(greeting), handedOverBy: "f00")
        let life = try second.greet(context).life
        #expect(life.isAfterLoss && life.since > greeting.life.since)
    }

    @Test("Another replica's finding that nothing is lost counts only with a proof", arguments: [false, true])
    func foundByAnother(isProven: Bool) throws {
        let (first, greeting, second) = try Self.pair()
        try second.set(Self.keys.life(of: second.identity), greeting.life.written.text)
        if isProven { try second.set(Self.keys.life(of: first.identity), RedisKeys.movedMark) }
        // A replica that never saw the first server changes nothing.
        #expect(try second.greet().life.written == greeting.life.written)
        let life = try second.greet(RedisGreeting.Context(last: first.past(greeting))).life
        #expect(life.isAfterLoss == !isProven && (life.written == greeting.life.written) == isProven)
        #expect(try second.greet().life.written == life.written)
    }

    @Test("After a loss that another replica noted, the memory begins after this replica's last answer elsewhere")
    func lostBefore() throws {
        let (first, greeting, second) = try Self.pair()
        let other = RedisMemoryEpoch.Beginning(moment: greeting.life.since + 1, isAfterLoss: true)
        try second.set(Self.keys.life(of: second.identity), other.text)
        var past = first.past(greeting)
        past.seenAt = past.seenAt + .seconds(3)
        let life = try second.greet(RedisGreeting.Context(last: past)).life
        #expect(life.isAfterLoss && life.since > other.moment)
        #expect(try second.greet().life.written == life.written)
    }

    @Test(
        "After a loss no nonce issued before it is accepted, even if one clock was behind and is set right",
        arguments: [20_000, 1_200_000] as [UInt64],
        [false, true]
    )
    func issuedBefore(lag: UInt64, isWrittenByAnother: Bool) throws {
        let greeter = try Greeter()
        var last = try greeter.greet()
        // The server's clock was behind, or this machine's clock was ahead.
        last.clock = ServerClock(milliseconds: last.clock.milliseconds - lag, at: last.clock.at)
        last.lateness = lag
        last.completeSince = last.life.since + lag
        try greeter.forgetAll()
        if isWrittenByAnother {
            try greeter.set(Self.keys.life(of: greeter.identity), "\(last.life.since + 1) after loss")
        }
        let next = try greeter.greet(after: last)
        #expect(next.life.isAfterLoss && next.completeSince > last.completeSince)
        #expect(try greeter.greet(after: last).life.written == next.life.written)
        // A clock that was a day ahead refuses tokens for at most an hour.
        last.completeSince += 24 * Self.hour
        let bound = WallClock.unixMilliseconds() + Self.hour + 60_000
        #expect(try greeter.greet(after: last).life.since < bound)
    }

    @Test("A memory that continues keeps the latest known beginning", arguments: [false, true])
    func latestBeginning(isInKey: Bool) throws {
        let (first, greeting, second) = try Self.pair()
        let later = RedisMemoryEpoch.Beginning(moment: greeting.life.since + 1_000, isAfterLoss: true)
        var known = greeting
        if isInKey {
            // The replica that wrote the beginning got no further.
            try second.set(Self.keys.life(of: first.identity), later.text)
        } else {
            known = try first.greet(after: Self.late(greeting))
        }
        let life = try second.greet(RedisGreeting.Context(last: first.past(known), handedOverBy: "f00")).life
        #expect(life.isAfterLoss)
        #expect(life.written.moment == (isInKey ? later.moment : known.life.since))
    }
}
