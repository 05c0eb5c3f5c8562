import Dispatch
import LLBytes
import LLHTTP
import LLJOSE
import LLStandIn
import LLTestSupport

@testable import LimitedLoginKeys

/// A cache with a manual clock and a record of its events. It stops with this object.
final class CacheFixture: Sendable {
    let clock = ManualClock()
    let cache: JWKSetCache
    private let record = Locked<[JWKSetEvent]>([])

    init(_ sources: [any JWKSetSource], limits: JWKSetCacheLimits = .init(), seedFile: String? = nil) throws {
        var limits = limits
        limits.jitter = 0.5
        cache = try JWKSetCache(
            sources: sources,
            limits: limits,
            seedFile: seedFile,
            events: { [record] event in record.withLock { $0.append(event) } },
            clock: { [clock] in clock.now.duration(since: MonotonicInstant(nanoseconds: 0)) }
        )
    }

    deinit { cache.stop() }

    var events: [JWKSetEvent] { record.withLock { $0 } }
    var keyIDs: [String] { cache.snapshot.keySet.keys.map(\.keyID) }

    /// A source of these keys, and a cache that has fetched them.
    static func started(_ keyIDs: [String]) async throws -> (StubSource, CacheFixture) {
        let source = StubSource(keySet: TestKeySet.json(keyIDs))
        let fixture = try CacheFixture([source])
        await fixture.start()
        return (source, fixture)
    }

    /// Starts and waits for the first fetch to end.
    func start() async {
        cache.start()
        await settle()
    }

    /// Fetches now, and waits for the fetch to end.
    func refresh() async {
        cache.refreshNow()
        await settle()
    }

    /// Waits until the queued work has ended.
    func settle() async {
        for queue in [cache.queue, cache.seedQueue, cache.queue] {
            await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
        }
    }

    /// Moves the clock and runs the cache's due work.
    func advance(by duration: Duration) async {
        clock.advance(by: duration)
        let cache = cache
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            cache.queue.async {
                cache.tick()
                continuation.resume()
            }
        }
    }

    /// Asks like a request that arrives now.
    func ask(_ keyID: String, since: MonotonicInstant? = nil) -> MissingKeyAnswer {
        let now = clock.now
        return cache.missingKey(
            JWKSetCache.hash(keyID.utf8.span),
            seenEpoch: cache.snapshot.epoch,
            waitingSince: since ?? now,
            now: now
        )
    }
}

/// A monotonic clock that moves only when a test says so.
final class ManualClock: Sendable {
    private let moment = Locked(MonotonicInstant(nanoseconds: 1_000_000_000))

    var now: MonotonicInstant { moment.withLock { $0 } }

    func advance(by duration: Duration) { moment.withLock { $0 = $0 + duration } }
}

/// JWK Sets for tests, made of two shared keys under any key IDs.
enum TestKeySet {
    /// The members of each key, without its key ID.
    static let first = members(StandInKeys.current)
    static let second = members(StandInKeys.previous)

    /// A set with the first key under each of `keyIDs` and the second key under each of `others`.
    static func json(_ keyIDs: [String], second others: [String] = []) -> [UInt8] {
        let keys =
            keyIDs.map { "{\"kid\":\"\($0)\",\(first)}" } + others.map { "{\"kid\":\"\($0)\",\(second)}" }
        return Array("{\"keys\":[\(keys.joined(separator: ","))]}".utf8)
    }

    private static func members(_ minter: TokenMinter) -> String {
        let key = (try? JWKSet(parsing: TokenMinter.jwkSet([minter]).span))?.keys.first
        let modulus = Base64URL.encode(key?.modulus ?? [])
        return "\"kty\":\"RSA\",\"alg\":\"RS256\",\"use\":\"sig\",\"n\":\"\(modulus)\",\"e\":\"AQAB\""
    }
}
