import Dispatch
import LLHTTP
import LLTestSupport
import Testing

@testable import LLStores

@Suite("The memory of one replica")
struct MemoryReplayStoreTests {
    static let start: UInt64 = 1_700_000_000_000
    static let now = start + 60_000

    static func entry(
        _ kind: ReplayKey.Kind,
        _ number: UInt64,
        issuedAt: UInt64 = now,
        keepUntil: UInt64 = now + 600_000
    ) -> ReplayEntry {
        ReplayEntry(kind: kind, key: ReplayKey(high: number, low: 0), issuedAt: issuedAt, keepUntil: keepUntil)
    }

    static func nonce(_ number: UInt64) -> ReplayLookup { ReplayLookup([entry(.nonce, number)]) }

    @Test("The first use is accepted, and every later use is refused")
    func once() {
        let store = MemoryReplayStore(now: Self.start, steady: Self.start)
        #expect(store.remember(Self.nonce(1), at: Self.now) == .accepted)
        #expect(store.remember(Self.nonce(1), at: Self.now) == .nonceUsed)
        #expect(store.remember(Self.nonce(2), at: Self.now) == .accepted)
        let token = ReplayLookup([Self.entry(.token, 3)])
        #expect(store.remember(token, at: Self.now) == .accepted)
        #expect(store.remember(token, at: Self.now) == .tokenReplayed)
        #expect(store.count(at: Self.now) == 3)
        // An entry is remembered to its last millisecond.
        #expect(store.remember(Self.nonce(1), at: Self.now + 599_999) == .nonceUsed)
        #expect(store.count(at: Self.now + 700_000) == 0)
    }

    @Test("A question about two entries is accepted or refused as a whole: a refusal uses up nothing")
    func both() {
        let store = MemoryReplayStore(now: Self.start, steady: Self.start)
        for (nonce, token, verdict) in [
            (1, 2, .accepted), (3, 2, .tokenReplayed), (1, 4, .nonceUsed), (3, 4, .accepted),
        ] as [(UInt64, UInt64, ReplayVerdict)] {
            let question = ReplayLookup([Self.entry(.nonce, nonce), Self.entry(.token, token)])
            #expect(store.remember(question, at: Self.now) == verdict)
        }
    }

    @Test("Proofs, which any client can make, leave a quarter of the places to others; each is accepted once")
    func proofs() {
        let store = MemoryReplayStore(capacity: 8, now: Self.start, steady: Self.start)
        func proof(_ number: UInt64) -> ReplayVerdict {
            // The proof is from before the start. A start must not refuse proofs from devices with a slow clock.
            let entry = Self.entry(.proof, number, issuedAt: Self.start - 30_000)
            return store.remember(ReplayLookup([entry]), at: Self.now)
        }
        #expect((0..<6).allSatisfy { proof($0) == .accepted })
        #expect(proof(6) == .unavailable && proof(5) == .proofReplayed)
        #expect(store.remember(Self.nonce(100), at: Self.now) == .accepted)
        #expect(store.remember(ReplayLookup([Self.entry(.token, 101)]), at: Self.now) == .accepted)
        #expect(store.remember(Self.nonce(102), at: Self.now) == .unavailable)
    }

    @Test("A full store accepts nothing until an entry expires, and forgets nothing early")
    func full() {
        let store = MemoryReplayStore(capacity: 2, now: Self.start, steady: Self.start)
        #expect(store.remember(Self.nonce(1), at: Self.now) == .accepted)
        let both = ReplayLookup([Self.entry(.nonce, 2), Self.entry(.token, 3)])
        #expect(store.remember(both, at: Self.now) == .unavailable)
        #expect(store.remember(Self.nonce(2), at: Self.now) == .accepted)
        #expect(store.remember(Self.nonce(3), at: Self.now) == .unavailable)
        #expect(store.remember(Self.nonce(1), at: Self.now) == .nonceUsed)
        let later = Self.now + 700_000
        let fresh = ReplayLookup([Self.entry(.nonce, 9, issuedAt: later, keepUntil: later + 600_000)])
        #expect(store.remember(fresh, at: later) == .accepted)
        #expect(store.count(at: later) == 1)
    }

    @Test("A full store counts no entries when they have expired, even without a question")
    func fullAndIdle() {
        let memory = MemoryReplayStore(capacity: 2, now: Self.start, steady: Self.start)
        for number: UInt64 in [1, 2] { #expect(memory.remember(Self.nonce(number), at: Self.now) == .accepted) }
        #expect(memory.count(at: Self.now + 600_000) == 2)
        #expect(memory.count(at: Self.now + 700_000) == 0)
        // Counting forgets nothing: the clock may be wrong just for that moment.
        #expect(memory.remember(Self.nonce(2), at: Self.now) == .nonceUsed)
    }

    @Test("Nonces from before the start or its first five seconds are refused; a token of that time is accepted")
    func start() {
        let store = MemoryReplayStore(now: Self.start, steady: Self.start)
        for (issuedAt, verdict) in [
            (Self.start - 1, ReplayVerdict.nonceBeyondMemory), (Self.start + 4_999, .nonceBeyondMemory),
            (Self.start + 5_000, .accepted),
        ] {
            let entry = Self.entry(.nonce, issuedAt, issuedAt: issuedAt)
            #expect(store.remember(ReplayLookup([entry]), at: Self.now) == verdict)
        }
        let token = Self.entry(.token, 5, issuedAt: Self.start)
        #expect(store.remember(ReplayLookup([token]), at: Self.now) == .accepted)
        #expect(store.remember(ReplayLookup([token]), at: Self.now) == .tokenReplayed)
    }

    @Test("Many threads use the same nonce: exactly one is accepted, a hundred times in a row")
    func concurrent() {
        let store = MemoryReplayStore(now: Self.start, steady: Self.start)
        for round in 0..<100 {
            let accepted = Locked(0)
            DispatchQueue.concurrentPerform(iterations: 200) { _ in
                if store.remember(Self.nonce(UInt64(round)), at: Self.now) == .accepted {
                    accepted.withLock { $0 += 1 }
                }
            }
            #expect(accepted.withLock { $0 } == 1)
        }
    }

    @Test("Different kinds, scopes and names give different keys")
    func keys() throws {
        let name = Array("x".utf8)
        let scope = Array("app".utf8)
        let keys = [
            ReplayKey(.nonce, scope: scope.span, name.span), ReplayKey(.token, scope: scope.span, name.span),
            ReplayKey(.token, scope: name.span, scope.span), ReplayKey(.token, scope: [UInt8]().span, name.span),
            ReplayKey(.token, scope: Array("appx".utf8).span, [UInt8]().span),
            ReplayKey(.token, scope: Array("ap".utf8).span, Array("px".utf8).span),
        ].compactMap { $0 }
        #expect(Set(keys).count == 6)
        #expect(try #require(keys.first).hexadecimal.count == 32)
        #expect(ReplayKey(high: 0xAB, low: 1).hexadecimal == "00000000000000ab0000000000000001")
    }
}

extension MemoryReplayStore {
    /// The same with both clocks at this moment.
    fileprivate func remember(_ question: ReplayLookup, at now: UInt64) -> ReplayVerdict {
        remember(question, now: now, steady: now)
    }

    fileprivate func count(at now: UInt64) -> Int { count(now: now, steady: now) }
}

/// A store in memory with two clocks that a test sets.
private final class SteppedStore {
    let store: MemoryReplayStore
    /// The wall clock in milliseconds since 1970; `steady` is the monotonic clock in milliseconds.
    private(set) var wall: UInt64
    private var steady: UInt64 = 5_000_000
    private let log = Locked<[ReplayStoreEvent]>([])
    private var number: UInt64 = 0

    init(capacity: Int = 100_000, wall: UInt64 = MemoryReplayStoreTests.start) {
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

    /// An entry for this many seconds, issued now.
    func issue(_ kind: ReplayKey.Kind = .nonce, seconds: UInt64 = 660) -> ReplayEntry {
        number += 1
        let date = kind == .nonce ? store.nonceDate(now: wall) : wall
        return MemoryReplayStoreTests.entry(kind, number, issuedAt: date, keepUntil: wall + seconds * 1_000)
    }

    func use(_ entry: ReplayEntry) -> ReplayVerdict { store.remember(ReplayLookup([entry]), now: wall, steady: steady) }

    /// Uses a new nonce, which must be accepted.
    func logIn() -> ReplayEntry {
        let nonce = issue()
        #expect(use(nonce) == .accepted)
        return nonce
    }

    var count: Int { store.count(now: wall, steady: steady) }
}

@Suite("A clock that is set while the store in memory runs")
struct MemoryClockTests {
    @Test(
        "The clock is set and set right later: no nonce is accepted twice, and no new nonce is refused",
        arguments: [3_600, -3_600, 86_400, -86_400, 2, -2, 120, -120],
        [1, 60, 3_600, 18_000] as [UInt64]
    )
    func setRight(step: Int64, seconds: UInt64) {
        let world = SteppedStore()
        var used = [world.logIn()]
        let begun = world.issue()
        func replayAll() { for nonce in used { #expect(world.use(nonce) != .accepted) } }
        world.step(step)
        for _ in 0..<4 {
            used.append(world.logIn())
            replayAll()
            world.pass(seconds / 4)
        }
        let begunMeanwhile = world.issue()
        world.step(-step)
        used.append(world.logIn())
        // These nonces were issued before the clock was set right, and have not expired.
        for nonce in [begun, begunMeanwhile] where nonce.keepUntil > world.wall + 60_000 {
            #expect(world.use(nonce) == .accepted)
            used.append(nonce)
        }
        for _ in 0..<30 {
            used.append(world.logIn())
            replayAll()
            world.pass(300)
        }
        #expect(world.events.isEmpty)
    }

    @Test("A used token is not accepted again, and a new token is not refused")
    func tokens() {
        let world = SteppedStore()
        let token = world.issue(.token, seconds: 3_960)
        #expect(world.use(token) == .accepted)
        world.step(86_400)
        _ = world.logIn()
        world.pass(60)
        world.step(-86_400)
        #expect(world.use(token) == .tokenReplayed)
        #expect(world.use(world.issue(.token, seconds: 3_960)) == .accepted)
    }

    @Test("A full store goes by the wall clock: if that is set back, what may be forgotten is 503 with one event")
    func full() throws {
        let world = SteppedStore(capacity: 4)
        world.step(3_600)
        var used: [ReplayEntry] = []
        for _ in 0..<10 {
            used.append(world.logIn())
            world.pass(300)
        }
        world.step(-3_600)
        for nonce in used { #expect(world.use(nonce) != .accepted) }
        #expect(world.use(world.issue()) == .unavailable)
        guard case .clockSetBack(let end)? = world.events.first else { throw TestSupportError("another event") }
        // The outage ends without an action.
        world.pass((end - world.wall) / 1_000 + 1)
        _ = world.logIn()
        for nonce in used { #expect(world.use(nonce) != .accepted) }
        #expect(world.events.count == 1)
    }

    @Test("A process that started with a clock ahead accepts new logins once the clock is set right")
    func startedAhead() {
        let world = SteppedStore(wall: MemoryReplayStoreTests.start + 3_600_000)
        let first = world.logIn()
        world.pass(60)
        world.step(-3_600)
        #expect(world.use(first) == .nonceUsed)
        let next = world.logIn()
        #expect(world.use(next) == .nonceUsed)
        #expect(world.events.isEmpty)
    }

    @Test("A used nonce from a clock that was ahead is 503 after a restart with the right clock, not accepted again")
    func restarted() {
        let used = SteppedStore(wall: MemoryReplayStoreTests.start + 3_600_000).logIn()
        let after = SteppedStore()
        #expect(after.use(used) == .unavailable)
        #expect(after.events.count == 1)
        _ = after.logIn()
    }

    @Test("A clock that was far behind and is set right does not fill the store with expired entries")
    func behind() {
        let world = SteppedStore(capacity: 100, wall: 1_000_000)
        world.step(1_700_000_000)
        for _ in 0..<1_000 {
            _ = world.logIn()
            world.pass(10)
        }
        #expect(world.count <= 100)
    }
}
