import FoundationEssentials
import Glibc
import LLHTTP
import LLJOSE
import LLTestSupport
import Testing

@testable import LimitedLoginKeys

@Suite("The life of a key cache", .live)
struct JWKSetCacheLifeTests {
    private static let cancelled = JWKSetCacheError.unavailable("the task was cancelled")

    private let folder: ShortFolder

    init() throws { folder = try ShortFolder() }

    /// Writes a seed file and returns its path.
    private func seedFile() throws -> String {
        let path = folder.path + "/keys.json"
        try Data(TestKeySet.json(["seed"])).write(to: URL(filePath: path))
        return path
    }

    @Test("Keys past their maximum staleness leave the snapshot, and return with the source")
    func expiredSnapshot() async throws {
        let (source, fixture) = try await CacheFixture.started(["a"])
        source.fail()
        await fixture.advance(by: .seconds(3600 + 86_399))
        let kept = fixture.cache.snapshot
        #expect(fixture.keyIDs == ["a"] && kept.isUsable)
        await fixture.advance(by: .seconds(1))
        #expect(!kept.isUsable)
        #expect(fixture.keyIDs == [] && fixture.cache.snapshot.epoch == 0 && fixture.cache.epoch == 1)
        let reports = fixture.events.count { if case .phaseChanged(_, .expired) = $0 { true } else { false } }
        #expect(reports == 1)
        await #expect(throws: JWKSetCacheError.self) { try await fixture.cache.keySet(containing: "a") }
        source.setKeySet(TestKeySet.json(["a"]))
        await fixture.refresh()
        #expect(fixture.keyIDs == ["a"] && fixture.cache.snapshot.epoch == 2)
    }

    @Test("A start waits for no fetch; the seed file's keys are in force when it returns")
    func startDuringFetch() async throws {
        let source = StubSource.gated()
        let fixture = try CacheFixture([source], seedFile: seedFile())
        fixture.cache.refreshNow()
        await eventually("a fetch begins") { source.fetchCount > 0 }
        fixture.cache.start()
        #expect(fixture.keyIDs == ["seed"])
        fixture.cache.start()
        source.open()
        await fixture.settle()
        #expect(fixture.keyIDs == ["a"] && source.fetchCount == 1)
        #expect(fixture.events.contains { if case .seedLoaded = $0 { true } else { false } })
    }

    @Test("An update handler may start the cache")
    func startInHandler() async throws {
        let fixture = try CacheFixture([StubSource(keySet: TestKeySet.json(["a"]))], seedFile: seedFile())
        let starts = Locked(0)
        let cache = fixture.cache
        cache.onUpdate { [weak cache] in
            guard starts.value == 0 else { return }
            starts.withLock { $0 += 1 }
            cache?.start()
        }
        cache.refreshNow()
        await fixture.settle()
        await fixture.settle()
        #expect(starts.value == 1 && cache.status.counters.fetchesUnchanged == 1)
    }

    @Test("After a stop neither start nor run does anything")
    func afterStop() async throws {
        let source = StubSource(keySet: TestKeySet.json(["a"]))
        let fixture = try CacheFixture([source], seedFile: seedFile())
        fixture.cache.stop()
        await fixture.start()
        await fixture.cache.run()
        #expect(fixture.cache.epoch == 0 && source.fetchCount == 0 && fixture.events.isEmpty)
    }

    @Test("A task that asks for keys is told if the cache was never started or was stopped")
    func reasonForNoKeys() async throws {
        let fixture = try CacheFixture([StubSource(keySet: TestKeySet.json(["a"]))])
        let cache = fixture.cache
        await #expect(throws: JWKSetCacheError.unavailable("the cache was not started")) {
            try await cache.keySet(containing: "a")
        }
        await fixture.start()
        cache.stop()
        #expect(try await cache.keySet(containing: "a").keys.count == 1)
        await #expect(throws: JWKSetCacheError.unavailable("the cache was stopped")) {
            try await cache.keySet(containing: "b")
        }
        fixture.clock.advance(by: .seconds(10 * 86_400))
        await #expect(throws: JWKSetCacheError.unavailable("the cache was stopped")) {
            try await cache.keySet(containing: "a")
        }
    }

    @Test(
        "Run ends after a stop or the cancellation of its task, once the running fetch has ended",
        arguments: [true, false]
    )
    func endOfRun(isStopped: Bool) async throws {
        let source = StubSource.gated()
        let cache = try JWKSetCache(sources: [source])
        let running = Task { await cache.run() }
        await eventually("a fetch begins") { source.fetchCount > 0 }
        if isStopped { cache.stop() } else { running.cancel() }
        await running.value
        #expect(source.endCount == 1 && !cache.status.isFetching)
    }

    @Test("A cache is alive unless a fetch takes ten seconds longer than its source may")
    func liveness() async throws {
        let source = StubSource.gated()
        let fixture = try CacheFixture([source])
        let (cache, began, limit) = (fixture.cache, fixture.clock.now, Duration.seconds(10))
        #expect(cache.isAlive(at: began + .seconds(3_600), within: limit))
        cache.start()
        let last = began + JWKSetCacheLimits.fetchTimeout + limit
        #expect(cache.isAlive(at: last, within: limit))
        #expect(!cache.isAlive(at: last + .milliseconds(1), within: limit))
        source.open()
        await fixture.settle()
        #expect(cache.isAlive(at: last + .milliseconds(1), within: limit))
    }

    @Test("A cancelled task stops waiting and leaves no waiter behind")
    func cancellation() async throws {
        let source = StubSource.gated()
        let fixture = try CacheFixture([source])
        let cache = fixture.cache
        cache.start()
        let keys = Task { try await cache.keySet(containing: "a") }
        let refresh = Task { await cache.refresh() }
        await eventually("both wait") { cache.storage.withLock { $0.waiters.count } == 2 }
        keys.cancel()
        refresh.cancel()
        await #expect(throws: Self.cancelled) { try await keys.value }
        #expect(await refresh.value.isFetching)
        #expect(cache.storage.withLock { $0.waiters.isEmpty })
        // A task that is cancelled before it asks does not wait at all.
        let late = Task {
            unsafe withUnsafeCurrentTask { task in unsafe task?.cancel() }
            return try await cache.keySet(containing: "a")
        }
        await #expect(throws: Self.cancelled) { try await late.value }
        source.open()
        await fixture.settle()
        #expect(try await cache.keySet(containing: "a").keys.count == 1)
    }
}
