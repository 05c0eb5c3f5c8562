import Dispatch
import FoundationEssentials
import Glibc
import LLHTTP
import LLTestSupport
import Testing

@testable import LimitedLoginKeys

@Suite("The seed file", .live)
struct JWKSetCacheSeedTests {
    let folder: ShortFolder
    var directory: String { folder.path }
    var path: String { directory + "/keys.json" }

    init() throws { folder = try ShortFolder() }

    func write(_ bytes: [UInt8], age: Int = 0) throws {
        try Data(bytes).write(to: URL(filePath: path))
        let date = Date(timeIntervalSinceNow: -Double(age))
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
    }

    var hangs: StubSource { StubSource { _, _ throws(JWKSetSourceError) in throw JWKSetSourceError("no network") } }

    @Test("The seed's keys serve at once without a network, with the age of the file")
    func serves() async throws {
        let written = MonotonicClock.now()
        try write(TestKeySet.json(["seed"]), age: 100)
        let fixture = try CacheFixture([hangs], seedFile: path)
        fixture.cache.start()
        let startedAfter = MonotonicClock.now().duration(since: written)
        #expect(fixture.keyIDs == ["seed"])
        #expect(fixture.cache.snapshot.isUsable(at: fixture.clock.now))
        await fixture.settle()
        #expect(fixture.keyIDs == ["seed"])
        let age = try #require(fixture.cache.status.age)
        // An age is the difference of two whole seconds, and the system's clock for them may be a moment late.
        #expect(age >= .seconds(99) && age < .seconds(102) + startedAfter)
        #expect(fixture.cache.status.source == path)
    }

    @Test(
        "A damaged, empty, too large or too old file is left alone and reported",
        arguments: [
            ([UInt8]("{\"keys\":[".utf8), 0), ([], 0), ([UInt8]("{\"keys\":[]}".utf8), 0),
            ([UInt8](repeating: 0x20, count: 70_000), 0), (TestKeySet.json(["seed"]), 86_401),
        ]
    )
    func ignored(_ bytes: [UInt8], _ age: Int) async throws {
        try write(bytes, age: age)
        let fixture = try CacheFixture([hangs], seedFile: path)
        await fixture.start()
        #expect(fixture.cache.epoch == 0)
        #expect(fixture.events.contains { if case .seedIgnored = $0 { true } else { false } })
        #expect(try FileContents.read(path: path, limit: 1 << 20) == bytes)
    }

    @Test("A missing file is not reported; a directory in its place is")
    func missing() async throws {
        let fixture = try CacheFixture([hangs], seedFile: path)
        await fixture.start()
        #expect(!fixture.events.contains { if case .seedIgnored = $0 { true } else { false } })
        let other = try CacheFixture([hangs], seedFile: directory)
        await other.start()
        #expect(other.events.contains(.seedIgnored(file: directory, reason: "it is not a regular file")))
    }

    @Test("A good fetch writes the file whole for the next start; a bad fetch leaves it alone")
    func written() async throws {
        let source = StubSource(keySet: TestKeySet.json(["a"]))
        let fixture = try CacheFixture([source], seedFile: path)
        await fixture.start()
        #expect(try KeySetFile.load(path: path)?.bytes == TestKeySet.json(["a"]))
        source.setKeySet(TestKeySet.json(["b"]))
        await fixture.refresh()
        source.fail()
        await fixture.refresh()
        fixture.cache.stop()
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["keys.json"])
        let next = try CacheFixture([hangs], seedFile: path)
        next.cache.start()
        #expect(next.keyIDs == ["b"])
    }

    @Test("Another writer's temporary file is kept; the own one goes if it cannot replace the file")
    func writers() throws {
        let others = "\(path).\(getpid()).new"
        try Data([1]).write(to: URL(filePath: others))
        try KeySetFile.save([2], to: path)
        #expect(try Data(contentsOf: URL(filePath: others)) == Data([1]))
        #expect(try Data(contentsOf: URL(filePath: path)) == Data([2]))
        try FileManager.default.removeItem(atPath: path)
        // A file cannot replace a directory.
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(throws: JWKSetSourceError.self) { try KeySetFile.save([3], to: path) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory).count == 2)
    }

    @Test(
        "A file has an age for any time that a file system can give it",
        arguments: [
            (100, 90, 10), (100, 110, 0), (100, .min, 100), (100, .max, 0), (.min, .max, 0), (.max, .min, .max),
        ]
    )
    func age(now: Int, changed: Int, seconds: Int) {
        #expect(KeySetFile.age(of: changed, at: now) == .seconds(seconds))
    }

    @Test("A path that cannot be written is reported and changes nothing else")
    func unwritable() async throws {
        let source = StubSource(keySet: TestKeySet.json(["a"]))
        let fixture = try CacheFixture([source], seedFile: "/proc/no-such-directory/keys.json")
        await fixture.start()
        #expect(fixture.keyIDs == ["a"])
        #expect(fixture.events.contains { if case .seedNotWritten = $0 { true } else { false } })
    }

    @Test("A hanging write delays no request, no later keys and no stop; the newest keys are written after it")
    func hangingVolume() async throws {
        let source = StubSource(keySet: TestKeySet.json(["a"]))
        let fixture = try CacheFixture([source], seedFile: path)
        fixture.cache.seedQueue.suspend()
        for keyIDs in [["a"], ["b"], ["c"]] {
            source.setKeySet(TestKeySet.json(keyIDs))
            #expect(await fixture.cache.refresh().keys.map(\.keyID) == keyIDs)
        }
        fixture.cache.stopAndWait()
        let reason = "the write before has not ended"
        #expect(fixture.events.count { $0 == .seedNotWritten(file: path, reason: reason) } == 2)
        #expect(try KeySetFile.load(path: path) == nil)
        fixture.cache.seedQueue.resume()
        await fixture.settle()
        #expect(try KeySetFile.load(path: path)?.bytes == TestKeySet.json(["c"]))
    }

    @Test("Behind a write that has begun and hangs, one more waits")
    func oneWaits() async throws {
        let fixture = try CacheFixture([hangs], seedFile: path)
        let cache = fixture.cache
        // A write reads the bytes under this lock, so it hangs as long as the lock is held.
        cache.storage.withLock { _ in
            cache.writeSeed()
            #expect(becomesTrue { !cache.seedIsQueued.withLock { $0 } })
            cache.writeSeed()
            #expect(fixture.events.isEmpty)
            cache.writeSeed()
        }
        #expect(fixture.events == [.seedNotWritten(file: path, reason: "the write before has not ended")])
        await fixture.settle()
    }

    @Test("A symbolic link is written through and stays; one that leads nowhere is refused")
    func symbolicLink() throws {
        let target = directory + "/volume"
        try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: false)
        try Data([1]).write(to: URL(filePath: target + "/keys.json"))
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "volume/keys.json")
        try KeySetFile.save([2], to: path)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: path) == "volume/keys.json")
        #expect(try Data(contentsOf: URL(filePath: target + "/keys.json")) == Data([2]))
        try FileManager.default.removeItem(atPath: target + "/keys.json")
        let error = #expect(throws: JWKSetSourceError.self) { try KeySetFile.save([3], to: path) }
        #expect(error?.reason == "cannot follow the symbolic link: no such file or directory")
        #expect(try FileManager.default.contentsOfDirectory(atPath: target).isEmpty)
    }

    @Test("A file source reads the file at each fetch")
    func fileSource() throws {
        let source = FileJWKSetSource(path: path)
        for keyIDs in [["a"], ["b", "c"]] {
            try write(TestKeySet.json(keyIDs))
            #expect(try source.fetch(validator: nil) == .fetched(JWKSetDocument(bytes: TestKeySet.json(keyIDs))))
        }
        try FileManager.default.removeItem(atPath: path)
        #expect(throws: JWKSetSourceError.self) { try source.fetch(validator: nil) }
    }
}
