import LLSockets
import LLTestSupport
import Testing

@testable import LLStores

/// A store in memory with the two clocks that it is told.
private final class SteppedStore {
    let store: MemoryReplayStore
    /// Milliseconds since 1970, and of the monotonic clock.
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

    /// A nonce that is issued now for ten minutes.
    func issue() -> ReplayEntry {
        number += 1
        return MemoryReplayStoreTests.entry(
            .nonce,
            number,
            bornAt: store.nonceDate(now: wall),
            keepUntil: wall + 660_000
        )
    }

    /// A token that Facebook issues at this moment, for an hour, by a clock that is right.
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
        "Set by so much and set right after a while: no nonce is good twice, and none is refused that is new",
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
        // Logins that began before the clock was set, and have not expired.
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

    @Test("A used token is not good again, nor is a new one refused")
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

    @Test("A clock that was ahead for longer than it is doubted: 503 and one line, and still nothing good twice")
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
        // It passes by itself, too.
        world.pass((end - world.wall) / 1_000 + 1)
        #expect(world.use(world.issue()) == .accepted)
        for nonce in used { #expect(world.use(nonce) != .accepted) }
        #expect(world.events.count == 1)
    }

    @Test("A process that started with a clock ahead accepts new logins once it is set right")
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

    @Test("A nonce of a process whose clock was ahead is 503 after the restart that set it right, and not good again")
    func restarted() {
        let before = SteppedStore(wall: SteppedStore.start + 3_600_000)
        let used = before.issue()
        #expect(before.use(used) == .accepted)
        let after = SteppedStore()
        #expect(after.use(used) == .unavailable)
        #expect(after.events.count == 1)
        #expect(after.use(after.issue()) == .accepted)
    }

    @Test("A clock that was far behind and is set right never fills the store with what is long over")
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
