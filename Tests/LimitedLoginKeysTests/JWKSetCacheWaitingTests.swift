import Dispatch
import LLHTTP
import LLJOSE
import LLTestSupport
import Testing

@testable import LimitedLoginKeys

@Suite("Requests that wait for keys", .live)
struct JWKSetCacheWaitingTests {
    @Test("Requests are answered when the fetch ends; the update handler runs for each fetch and the stop")
    func updates() async throws {
        let gate = DispatchSemaphore(value: 0)
        let source = StubSource { number, _ throws(JWKSetSourceError) in
            gate.wait()
            if number == 2 { throw JWKSetSourceError("down") }
            return .fetched(JWKSetDocument(bytes: TestKeySet.json(["a"])))
        }
        let fixture = try CacheFixture([source])
        let updates = Locked(0)
        fixture.cache.onUpdate { updates.withLock { $0 += 1 } }
        let now = fixture.clock.now
        fixture.cache.start()
        #expect(fixture.cache.status.isFetching)
        func ask() -> MissingKeyAnswer { fixture.cache.missingKey(nil, seenEpoch: 0, waitingSince: now, now: now) }
        #expect(ask() == .wait(until: now + .seconds(2)))
        gate.signal()
        await fixture.settle()
        #expect(ask() == .lookAgain)
        #expect(updates.value == 1)
        #expect(fixture.ask("b") == .wait(until: now + .seconds(6)))
        gate.signal()
        await fixture.settle()
        #expect(fixture.ask("b") == .unavailable(retryAfterSeconds: 1))
        #expect(updates.value == 2)
        fixture.cache.stop()
        #expect(updates.value == 3)
        #expect(source.isCancelled)
    }

    @Test("A waiter for a fetch is not released by the end of the fetch before it")
    func endOfTheOneBefore() async throws {
        let shared = Locked<JWKSetCache?>(nil)
        let waiting = Locked<[Int]>([])
        let source = StubSource { number, _ throws(JWKSetSourceError) in
            waiting.withLock { $0.append(shared.value?.waiterCount ?? 0) }
            return .fetched(JWKSetDocument(bytes: TestKeySet.json(number == 1 ? ["a"] : ["b"])))
        }
        let refreshed = Locked<Task<[String], Never>?>(nil)
        let cache = try JWKSetCache(sources: [source]) { event in
            // The first fetch has ended, but its waiters are not told yet: begin the second one now.
            guard case .fetchSucceeded = event, refreshed.value == nil, let cache = shared.value else { return }
            refreshed.withLock { task in
                task = Task {
                    _ = await cache.refresh()
                    return cache.snapshot.keySet.keys.map(\.keyID)
                }
            }
            #expect(becomesTrue { cache.waiterCount > 0 })
        }
        shared.withLock { $0 = cache }
        cache.refreshNow()
        await eventually("the second fetch is asked for") { refreshed.value != nil }
        #expect(await refreshed.value?.value == ["b"])
        #expect(waiting.value == [0, 1])
        shared.withLock { $0 = nil }
        cache.stop()
    }

    @Test("Two hundred tasks that meet a rotation cause one fetch, and none is refused")
    func rotation() async throws {
        let gate = DispatchSemaphore(value: 0)
        let source = StubSource { number, _ throws(JWKSetSourceError) in
            if number > 1 { gate.wait() }
            return .fetched(JWKSetDocument(bytes: TestKeySet.json([number > 1 ? "new" : "old"])))
        }
        let fixture = try CacheFixture([source])
        await fixture.start()
        let cache = fixture.cache
        let found = try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<200 { group.addTask { try await cache.keySet(containing: "new").key(withID: "new") != nil } }
            gate.signal()
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(found == 200 && source.fetchCount == 2)
    }

    @Test("keySet(containing:) returns the set without the key if no source has it, and throws in an outage")
    func keySetContaining() async throws {
        let source = StubSource(keySet: TestKeySet.json(["a"]))
        let fixture = try CacheFixture([source])
        source.fail("name not found")
        fixture.cache.start()
        let first = await #expect(throws: JWKSetCacheError.self) { try await fixture.cache.keySet(containing: "a") }
        #expect(first == .unavailable("stub: name not found"))
        source.setKeySet(TestKeySet.json(["a"]))
        _ = await fixture.cache.refresh()
        #expect(try await fixture.cache.keySet(containing: "a").keys.count == 1)
        #expect(try await fixture.cache.keySet(containing: "b").key(withID: "b") == nil)
        #expect(source.fetchCount == 3)
        fixture.clock.advance(by: .seconds(5))
        source.fail("no route")
        let error = await #expect(throws: JWKSetCacheError.self) { try await fixture.cache.keySet(containing: "c") }
        #expect(error == .unavailable("stub: no route"))
        #expect(try await fixture.cache.keySet(containing: "a").keys.count == 1)
    }

    @Test("A task beyond the limit is told when to try again; those that wait are answered by one fetch")
    func places() async throws {
        let source = StubSource(keySet: TestKeySet.json(["a"]))
        var limits = JWKSetCacheLimits()
        limits.waitingTaskCount = 2
        let fixture = try CacheFixture([source], limits: limits)
        await fixture.start()
        let cache = fixture.cache
        _ = try await cache.keySet(containing: "made up")
        source.setKeySet(TestKeySet.json(["a", "b"]))
        let waiting = (0..<2).map { _ in Task { try await cache.keySet(containing: "b").key(withID: "b") != nil } }
        await eventually("both wait") { cache.waiterCount == 2 }
        await #expect(throws: JWKSetCacheError.exhausted(retryAfter: .seconds(5))) {
            try await cache.keySet(containing: "c")
        }
        await fixture.advance(by: .seconds(5))
        for task in waiting { #expect(try await task.value) }
        #expect(source.fetchCount == 3)
    }

    @Test("A stop releases the tasks that wait for a hanging fetch")
    func stopWhileWaiting() async throws {
        let gate = DispatchSemaphore(value: 0)
        let source = StubSource { _, _ throws(JWKSetSourceError) in
            gate.wait()
            throw JWKSetSourceError("cancelled")
        }
        let fixture = try CacheFixture([source])
        fixture.cache.start()
        await eventually("a fetch begins") { source.fetchCount > 0 }
        let cache = fixture.cache
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { _ = try? await cache.keySet(containing: "a") } }
            cache.stop()
        }
        #expect(cache.epoch == 0)
        gate.signal()
        await fixture.settle()
        #expect(source.fetchCount == 1)
    }

    @Test("A due fetch is never forgotten, however many tasks ask for one while another ends")
    func alarms() async throws {
        var limits = JWKSetCacheLimits()
        limits.joinedNegativeLifetime = .zero
        // Each call makes a fetch due 1 ms later; a forgotten fetch would keep its task waiting for 60 s.
        (limits.unknownKeyIDInterval, limits.waitForUnknownKeyID) = (.milliseconds(1), .seconds(60))
        let source = StubSource(keySet: TestKeySet.json(["a"]))
        let cache = try JWKSetCache(sources: [source], limits: limits)
        #expect(await cache.refresh().isUsable)
        let refused = await withTaskGroup(of: Int.self) { group in
            for task in 0..<2 {
                group.addTask {
                    var refused = 0
                    for number in 0..<1_000 where refused == 0 {
                        do { _ = try await cache.keySet(containing: "\(task)-\(number)") } catch { refused += 1 }
                    }
                    return refused
                }
            }
            return await group.reduce(0, +)
        }
        #expect(refused == 0)
        cache.stop()
    }
}

extension JWKSetCache {
    fileprivate var waiterCount: Int { storage.withLock { $0.waiters.count } }
}

extension Locked {
    var value: Value { withLock { $0 } }
}
