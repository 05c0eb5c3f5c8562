import Dispatch
import LLSockets
import Testing

@testable import LLStores

@Suite("The memory of one replica")
struct MemoryReplayStoreTests {
    static let start: UInt64 = 1_700_000_000_000
    static let now = start + 60_000

    static func entry(
        _ kind: ReplayKey.Kind,
        _ number: UInt64,
        bornAt: UInt64 = now,
        keepUntil: UInt64 = now + 600_000
    ) -> ReplayEntry {
        ReplayEntry(kind: kind, key: ReplayKey(high: number, low: 0), bornAt: bornAt, keepUntil: keepUntil)
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
    }

    @Test("A question about two entries is accepted or refused as a whole: a refusal uses up nothing")
    func both() {
        let store = MemoryReplayStore(now: Self.start, steady: Self.start)
        #expect(
            store.remember(ReplayLookup([Self.entry(.nonce, 1), Self.entry(.token, 2)]), at: Self.now) == .accepted
        )
        #expect(
            store.remember(ReplayLookup([Self.entry(.nonce, 3), Self.entry(.token, 2)]), at: Self.now)
                == .tokenReplayed
        )
        #expect(
            store.remember(ReplayLookup([Self.entry(.nonce, 1), Self.entry(.token, 4)]), at: Self.now) == .nonceUsed
        )
        #expect(
            store.remember(ReplayLookup([Self.entry(.nonce, 3), Self.entry(.token, 4)]), at: Self.now) == .accepted
        )
    }

    @Test("Proofs, which any client can make, leave a quarter of the places to others; each is accepted once")
    func proofs() {
        let store = MemoryReplayStore(capacity: 8, now: Self.start, steady: Self.start)
        func proof(_ number: UInt64) -> ReplayVerdict {
            // The proof is from before the start. A start must not refuse proofs from devices with a slow clock.
            let entry = Self.entry(.proof, number, bornAt: Self.start - 30_000)
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
        let fresh = ReplayLookup([Self.entry(.nonce, 9, bornAt: later, keepUntil: later + 600_000)])
        #expect(store.remember(fresh, at: later) == .accepted)
        #expect(store.count(at: later) == 1)
    }

    @Test("A full store is up again and counts no entries when they have expired, even without a question")
    func fullAndIdle() {
        let memory = MemoryReplayStore(capacity: 2, now: Self.start, steady: Self.start)
        for number: UInt64 in [1, 2] { #expect(memory.remember(Self.nonce(number), at: Self.now) == .accepted) }
        #expect(memory.count(at: Self.now + 600_000) == 2)
        #expect(memory.count(at: Self.now + 700_000) == 0)
        // Counting forgets nothing: the clock may be wrong just for that moment.
        #expect(memory.remember(Self.nonce(2), at: Self.now) == .nonceUsed)
        // The entry has expired by this machine's clock.
        let present = WallClock.unixMilliseconds()
        let other = MemoryReplayStore(capacity: 1, now: present - 3_600_000)
        let expired = Self.entry(.nonce, 1, bornAt: present - 60_000, keepUntil: present - 3_700_000)
        #expect(other.remember(ReplayLookup([expired]), now: present) == .accepted)
        #expect(ReplayStore.memory(other).isUp)
    }

    @Test("Nonces from before the start or its first five seconds are refused; a token of that time is accepted")
    func start() {
        let store = MemoryReplayStore(now: Self.start, steady: Self.start)
        for (bornAt, verdict) in [
            (Self.start - 1, ReplayVerdict.nonceBeyondMemory), (Self.start + 4_999, .nonceBeyondMemory),
            (Self.start + 5_000, .accepted),
        ] {
            let entry = Self.entry(.nonce, bornAt, bornAt: bornAt)
            #expect(store.remember(ReplayLookup([entry]), at: Self.now) == verdict)
        }
        let token = Self.entry(.token, 5, bornAt: Self.start)
        #expect(store.remember(ReplayLookup([token]), at: Self.now) == .accepted)
        #expect(store.remember(ReplayLookup([token]), at: Self.now) == .tokenReplayed)
    }

    @Test("An entry is kept to its last millisecond, and setting the clock back does not allow a second use")
    func clock() {
        let store = MemoryReplayStore(now: Self.start, steady: Self.start)
        #expect(store.remember(Self.nonce(1), at: Self.now) == .accepted)
        #expect(store.remember(Self.nonce(1), at: Self.now + 599_999) == .nonceUsed)
        // The entry has expired long ago and is forgotten.
        #expect(store.remember(Self.nonce(2), at: Self.now + 900_000) == .nonceBeyondMemory)
        #expect(store.count(at: Self.now + 900_000) == 0)
        // The clock is set back.
        #expect(store.remember(Self.nonce(1), at: Self.now) == .unavailable)
    }

    @Test("A key has an eighth of the places for proofs, at most 1,024; a repeated proof takes no place")
    func quota() {
        for (capacity, places) in [(800, 75), (100_000, 1_024), (1, 1)] {
            let store = MemoryReplayStore(capacity: capacity, now: Self.start, steady: Self.start)
            func proof(_ number: UInt64, of owner: UInt64) -> ReplayVerdict {
                var entry = Self.entry(.proof, number)
                entry.owner = ReplayKey(high: owner, low: 1)
                return store.remember(ReplayLookup([entry]), at: Self.now)
            }
            for number in 0..<UInt64(places) { #expect(proof(number, of: 1) == .accepted) }
            #expect(proof(0, of: 1) == .proofReplayed)
            guard capacity > 1 else { continue }
            let refused = proof(1_000_000, of: 1)
            #expect(refused.answer == .tooMany && refused.retryAfterSeconds.map { $0 > 0 && $0 < 700 } == true)
            #expect(proof(2_000_000, of: 2) == .accepted)
            #expect(store.remember(Self.nonce(3_000_000), at: Self.now) == .accepted)
            #expect(store.count(at: Self.now) == places + 2)
        }
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
        let hexadecimal = try #require(keys.first).hexadecimal
        #expect(hexadecimal.count == 32)
        #expect(
            String(decoding: ReplayKey(high: 0xAB, low: 1).hexadecimal, as: UTF8.self).hasPrefix("00000000000000ab")
        )
    }
}

extension MemoryReplayStore {
    /// The same with both clocks at this moment.
    fileprivate func remember(_ question: ReplayLookup, at now: UInt64) -> ReplayVerdict {
        remember(question, now: now, steady: now)
    }

    fileprivate func count(at now: UInt64) -> Int { count(now: now, steady: now) }
}
