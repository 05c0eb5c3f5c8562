import Dispatch
import LLHTTP
import LLJOSE
import LLTestSupport
import Testing

@testable import LimitedLoginKeys

@Suite("The key cache", .live)
struct JWKSetCacheTests {
    @Test("Each answer is published with a new epoch, and only changed keys get a new version")
    func publication() async throws {
        let source = StubSource(keySet: TestKeySet.json(["a", "b"]))
        let fixture = try CacheFixture([source])
        #expect(fixture.cache.epoch == 0)
        #expect(!fixture.cache.snapshot.isUsable(at: fixture.clock.now))
        await fixture.start()
        #expect(fixture.cache.epoch == 1)
        #expect(fixture.cache.snapshot.keySetVersion == 1)
        #expect(fixture.keyIDs == ["a", "b"])
        #expect(fixture.cache.snapshot.isUsable(at: fixture.clock.now))
        await fixture.refresh()
        #expect(fixture.cache.epoch == 2)
        #expect(fixture.cache.snapshot.keySetVersion == 1)
        source.setKeySet(TestKeySet.json(["c"]))
        await fixture.refresh()
        #expect(fixture.cache.snapshot.keySetVersion == 2)
        #expect(fixture.keyIDs == ["c"])
    }

    @Test(
        "No bad answer removes good keys; each is reported until the next good answer",
        arguments: [
            [], Array("{\"keys\":[]}".utf8), Array("<!doctype html><p>Sorry".utf8), TestKeySet.json(["a"]) + [0x7B],
            Array("{\"keys\":[{\"kid\":\"a\",\"kty\":\"EC\",\"crv\":\"P-256\"}]}".utf8),
            TestKeySet.json(["a"]) + [UInt8](repeating: 0x20, count: 65_536),
        ] as [[UInt8]]
    )
    func badAnswers(bytes: [UInt8]) async throws {
        let (source, fixture) = try await CacheFixture.started(["good"])
        source.setKeySet(bytes)
        await fixture.refresh()
        #expect(fixture.keyIDs == ["good"])
        #expect(fixture.cache.epoch == 1)
        #expect(fixture.cache.snapshot.isUsable(at: fixture.clock.now))
        #expect(fixture.cache.status.lastError?.isEmpty == false)
        #expect(fixture.cache.status.counters.fetchesFailed == 1)
        source.setKeySet(TestKeySet.json(["new"]))
        await fixture.advance(by: .seconds(1))
        #expect(fixture.keyIDs == ["new"])
        #expect(fixture.cache.status.lastError == nil)
    }

    @Test("A bad key beside good ones is left out and reported; the good ones serve")
    func ignoredKeys() async throws {
        let good = String(decoding: TestKeySet.json(["a"]), as: UTF8.self)
        let mixed = good.dropLast(2) + ",{\"kid\":\"ec\",\"kty\":\"EC\"},{\"kid\":\"x\"}]}"
        let fixture = try CacheFixture([StubSource(keySet: Array(mixed.utf8))])
        await fixture.start()
        #expect(fixture.keyIDs == ["a"])
        #expect(fixture.cache.status.ignoredKeys.map(\.keyID) == ["ec", "x"])
        #expect(fixture.events.contains { if case .keyIgnored(_, 1, "ec", _) = $0 { true } else { false } })
    }

    @Test("A key changed under the same ID replaces the old one at once and is reported as replaced")
    func sameKeyID() async throws {
        let (source, fixture) = try await CacheFixture.started(["a"])
        let before = fixture.cache.snapshot.keySet
        source.setKeySet(TestKeySet.json([], second: ["a"]))
        await fixture.refresh()
        #expect(fixture.cache.snapshot.keySetVersion == 2)
        #expect(fixture.cache.snapshot.keySet != before)
        #expect(fixture.events.contains(.keySetChanged(source: "stub", added: [], removed: [], replaced: ["a"])))
    }

    @Test("A key that a stale answer removed is fetched again after 5 s; from 2 s on a token with it waits")
    func staleAnswer() async throws {
        let (source, fixture) = try await CacheFixture.started(["a", "b"])
        source.setKeySet(TestKeySet.json(["a"]))
        _ = fixture.ask("made up")
        await fixture.settle()
        #expect(fixture.ask("b") == .unknown)
        source.setKeySet(TestKeySet.json(["a", "b"]))
        await fixture.advance(by: .seconds(2))
        #expect(fixture.ask("b") == .wait(until: fixture.clock.now + .seconds(6)))
        await fixture.advance(by: .seconds(3))
        #expect(fixture.keyIDs == ["a", "b"])
        #expect(source.fetchCount == 3)
    }

    @Test("A validator is sent only to the source that gave it; 304 extends the time and keeps the keys")
    func notModified() async throws {
        let first = StubSource("first") { _, validator throws(JWKSetSourceError) in
            validator == "\"1\""
                ? .notModified(JWKSetFreshness(remaining: .seconds(600)))
                : .fetched(JWKSetDocument(bytes: TestKeySet.json(["a"]), validator: "\"1\""))
        }
        let second = StubSource("second", keySet: TestKeySet.json(["b"]))
        let fixture = try CacheFixture([first, second])
        await fixture.start()
        await fixture.advance(by: .seconds(3300))
        #expect(first.validators == [nil, "\"1\""])
        #expect(fixture.cache.snapshot.times?.expiresAt == fixture.clock.now + .seconds(600))
        #expect(fixture.keyIDs == ["a"])
        #expect(fixture.cache.status.counters.fetchesUnchanged == 1)
        first.fail()
        await fixture.advance(by: .seconds(600))
        #expect(second.validators == [nil])
        #expect(fixture.keyIDs == ["b"])
        #expect(fixture.cache.status.source == "second")
        first.setKeySet(TestKeySet.json(["a"]))
        await fixture.advance(by: .seconds(3600))
        // The keys in force are the second source's, so the first one gets no validator.
        #expect(first.validators.last == .some(nil))
    }

    @Test("A 304 to a request without a validator is a failure of the source")
    func unaskedNotModified() async throws {
        let source = StubSource { _, _ throws(JWKSetSourceError) in .notModified(.init()) }
        let fixture = try CacheFixture([source])
        await fixture.start()
        #expect(fixture.cache.epoch == 0)
        #expect(fixture.cache.status.lastError == "stub: not modified, although nothing was held")
    }

    @Test("Sources are asked in order and failures reported; for a waiting request the last good one is first")
    func failOver() async throws {
        let first = StubSource("first") { _, _ throws(JWKSetSourceError) in throw JWKSetSourceError("down") }
        let second = StubSource("second", keySet: TestKeySet.json(["a"]))
        let fixture = try CacheFixture([first, second])
        await fixture.start()
        #expect(fixture.keyIDs == ["a"])
        #expect(fixture.events.contains(.sourceFailed(source: "first", reason: "down")))
        _ = fixture.ask("unknown")
        await fixture.settle()
        #expect(first.fetchCount == 1)
        #expect(second.fetchCount == 2)
        await fixture.advance(by: .seconds(3300))
        #expect(first.fetchCount == 2)
    }

    @Test("If each failed source asked for a time, the next attempt is after the shortest of them")
    func retryAfter() async throws {
        for (asked, wait) in [([30, 40], .seconds(30)), ([40, 30], .seconds(30)), ([nil, 30], .milliseconds(875))]
            as [([Int?], Duration)]
        {
            let sources = asked.map { seconds in
                StubSource { _, _ throws(JWKSetSourceError) in
                    throw JWKSetSourceError("busy", retryAfter: seconds.map { .seconds($0) })
                }
            }
            let fixture = try CacheFixture(sources)
            await fixture.start()
            #expect(fixture.cache.status.untilNextAttempt == wait, "\(asked)")
            fixture.cache.stop()
        }
    }

    @Test("The status shows the phase, and the keys with bits, thumbprint, age and expiry")
    func status() async throws {
        let (_, fixture) = try await CacheFixture.started(["a"])
        await fixture.advance(by: .seconds(10))
        let status = fixture.cache.status
        let key = try #require(status.keys.first)
        #expect(key.keyID == "a")
        #expect(key.modulusBitCount == 2048)
        #expect(key.thumbprint.utf8.count == 43)
        #expect(status.age == .seconds(10))
        #expect(status.untilExpiry == .seconds(3590))
        #expect(status.untilUnusable == .seconds(3590 + 86_400))
        #expect(status.phase == .fresh)
        #expect(status.isUsable && !status.isFetching)
    }

    @Test("Limits that contradict each other, and a cache without a source, are refused")
    func invalid() {
        let changes: [(inout JWKSetCacheLimits) -> Void] = [
            { $0.minimumTimeToLive = .milliseconds(999) }, { $0.minimumTimeToLive = .seconds(90_000) },
            { $0.timeToLive = .seconds(299) }, { $0.timeToLive = .seconds(90_000) },
            { $0.maximumTimeToLive = .seconds(40_000_000) }, { $0.maximumStaleness = .seconds(-1) },
        ]
        for change in changes {
            var limits = JWKSetCacheLimits()
            change(&limits)
            #expect(throws: JWKSetCacheError.self) {
                try JWKSetCache(sources: [StubSource(keySet: [])], limits: limits)
            }
        }
        #expect(throws: JWKSetCacheError.noSources) { try JWKSetCache(sources: []) }
    }
}
