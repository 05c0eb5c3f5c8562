import LLSockets
import LLTestSupport
import Testing

@testable import LLStores

/// A store in memory with two clocks that a test sets.
private final class SteppedStore {
    let store: MemoryReplayStore
    /// The wall clock in milliseconds since 1970; `steady` is the monotonic clock in milliseconds.
    private(set) var wall: UInt64
    private var steady: UInt64 = 5_000_000
    private let log = Locked<[ReplayStoreEvent]>([])
    private var number: UInt64 = 0

    static let start: UInt64 = 1_700_000_000_000

    init(capacity: Int = 100_000, wall: UInt64 = start) {
        self.wall = wall
        let log = log
        store = MemoryReplayStore(capacity: capacity, now: wall, steady: steady) { event in
            log.withLock { $0.append(event) }
        }
        pass(10)
    }

    var events: [ReplayStoreEvent] { log.withLock { $0 } }

    func pass(_ seconds: UInt64) {
        wall += seconds * 1_000
        steady += seconds * 1_000
    }

    func step(_ seconds: Int64) { wall = UInt64(Int64(wall) + seconds * 1_000) }

    /// A nonce issued now for ten minutes.
    func issue() -> ReplayEntry {
        number += 1
        return MemoryReplayStoreTests.entry(
            .nonce,
            number,
            bornAt: store.nonceDate(now: wall),
            keepUntil: wall + 660_000
        )
    }

    /// A token that Facebook, with a correct clock, issues at this moment for one hour.
    func token(at moment: UInt64) -> ReplayEntry {
        number += 1
        return MemoryReplayStoreTests.entry(.token, number, bornAt: moment, keepUntil: moment + 3_960_000)
    }

    func use(_ entry: ReplayEntry) -> ReplayVerdict {
        store.remember(ReplayLookup([entry]), now: wall, steady: steady)
    }

    var count: Int { store.count(now: wall, steady: steady) }
}

@Suite("A clock that is set while the store in memory runs")
struct ForgettingClockTests {
    private static let steps: [Int64] = [3_600, -3_600, 86_400, -86_400, 2, -2, 120, -120]

    @Test(
        "The clock is set and set right later: no nonce is accepted twice, and no new nonce is refused",
        arguments: steps,
        [1, 60, 3_600]
    )
    func setRight(step: Int64, seconds: UInt64) {
        let world = SteppedStore()
        var used: [ReplayEntry] = []
        func logIn() {
            let nonce = world.issue()
            #expect(world.use(nonce) == .accepted)
            used.append(nonce)
        }
        func replayAll() { for nonce in used { #expect(world.use(nonce) != .accepted) } }
        logIn()
        let begun = world.issue()
        world.step(step)
        for _ in 0..<4 {
            logIn()
            replayAll()
            world.pass(seconds / 4)
        }
        let begunMeanwhile = world.issue()
        world.step(-step)
        logIn()
        // These nonces were issued before the clock was set right, and have not expired.
        for nonce in [begun, begunMeanwhile] where nonce.keepUntil > world.wall + 60_000 {
            #expect(world.use(nonce) == .accepted)
            used.append(nonce)
        }
        for _ in 0..<30 {
            logIn()
            replayAll()
            world.pass(300)
        }
        #expect(world.events.isEmpty)
    }

    @Test("A used token is not accepted again, and a new token is not refused")
    func tokens() {
        let world = SteppedStore()
        let token = world.token(at: world.wall)
        #expect(world.use(token) == .accepted)
        world.step(86_400)
        _ = world.use(world.issue())
        world.pass(60)
        world.step(-86_400)
        #expect(world.use(token) == .tokenReplayed)
        #expect(world.use(world.token(at: world.wall)) == .accepted)
    }

    @Test("A clock was ahead for longer than it is doubted: logins are 503 with one event, and none is accepted twice")
    func believed() throws {
        let world = SteppedStore()
        world.step(3_600)
        var used: [ReplayEntry] = []
        for _ in 0..<600 {
            used.append(world.issue())
            #expect(used.last.map(world.use) == .accepted)
            world.pass(30)
        }
        let last = used.suffix(4)
        world.step(-3_600)
        #expect(world.events.isEmpty)
        for nonce in used { #expect(world.use(nonce) != .accepted) }
        for nonce in last { #expect(world.use(nonce) == .nonceUsed) }
        #expect(world.use(world.issue()) == .unavailable)
        #expect(world.events.count == 1)
        guard case .clockSetBack(let end)? = world.events.first else { throw TestSupportError("another event") }
        // The outage ends without an action.
        world.pass((end - world.wall) / 1_000 + 1)
        #expect(world.use(world.issue()) == .accepted)
        for nonce in used { #expect(world.use(nonce) != .accepted) }
        #expect(world.events.count == 1)
    }

    @Test("A process that started with a clock ahead accepts new logins once the clock is set right")
    func startedAhead() {
        let world = SteppedStore(wall: SteppedStore.start + 3_600_000)
        let first = world.issue()
        #expect(world.use(first) == .accepted)
        world.pass(60)
        world.step(-3_600)
        #expect(world.use(first) == .nonceUsed)
        let next = world.issue()
        #expect(world.use(next) == .accepted)
        #expect(world.use(next) == .nonceUsed)
        #expect(world.events.isEmpty)
    }

    @Test("A used nonce from a clock that was ahead is 503 after a restart with the right clock, not accepted again")
    func restarted() {
        let before = SteppedStore(wall: SteppedStore.start + 3_600_000)
        let used = before.issue()
        #expect(before.use(used) == .accepted)
        let after = SteppedStore()
        #expect(after.use(used) == .unavailable)
        #expect(after.events.count == 1)
        #expect(after.use(after.issue()) == .accepted)
    }

    @Test("A clock that was far behind and is set right does not fill the store with expired entries")
    func behind() {
        let world = SteppedStore(capacity: 100, wall: 1_000_000)
        world.step(1_700_000_000)
        for _ in 0..<1_000 {
            #expect(world.use(world.issue()) == .accepted)
            world.pass(10)
        }
        #expect(world.count <= 100)
    }
}
