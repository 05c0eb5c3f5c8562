internal import Dispatch
package import LLBytes
@_exported public import LLJOSE

/// Keeps an issuer's JWK Set available. It refreshes the set in the background before it expires, fetches it again when
/// a token names an unknown key, keeps it through outages, and drops it when it is too old.
///
/// Give the cache its sources in order of preference, ``start()`` or ``run()`` it, and take the keys from ``snapshot``
/// (or from ``keySet(containing:)``, which waits for a key that was only just published). The only call that blocks is
/// the reading of a seed file at the start: fetches run on a queue of the cache's own, one at a time.
public final class JWKSetCache: Sendable {
    /// Receives events, one at a time, on the cache's own queue. It must not call ``JWKSetCache/stop()``.
    public typealias EventHandler = @Sendable (JWKSetEvent) -> Void

    let sources: [any JWKSetSource]
    let limits: JWKSetCacheLimits
    let seedFile: String?
    let clock: @Sendable () -> MonotonicInstant
    let events: EventHandler
    let queue = DispatchQueue(label: "key-set-cache")
    /// Runs ``tick()`` at the next due time. Only `queue` uses it.
    nonisolated(unsafe) var alarm: (any DispatchSourceTimer)?
    /// Runs the sources' asynchronous calls, while `queue` waits for them.
    let sourceQueue = DispatchQueue(label: "key-set-source")
    /// Writes the seed file. It has its own queue, because a slow volume blocks a write.
    let seedQueue = DispatchQueue(label: "key-set-file")
    let seedWriting = DispatchGroup()
    let seedIsQueued = Locked(false)
    let storage: Locked<Storage>
    /// The current snapshot; published with the lock held, so that epochs are in order.
    package let published = Published(JWKSetSnapshot.empty)

    /// A cache of these sources, asked in their order.
    ///
    /// - Parameters:
    ///   - sources: At least one. ``stop()`` cancels them for good: give another cache sources of its own.
    ///   - limits: Times and counts; see there for the defaults.
    ///   - seedFile: Path of a JWK Set that is used until a source has answered. It is rewritten after each good fetch.
    ///     Its keys are trusted, so no other user may be able to write to it or to its directory.
    ///   - events: Receives the cache's events. Log them: they tell of a failing source long before there are no keys.
    ///   - clock: The time since any fixed moment, which never goes back, for tests; nil for the system's monotonic clock.
    ///     Background fetches keep the system's time: in a test call ``refresh()``.
    /// - Throws: ``JWKSetCacheError/noSources``, ``JWKSetCacheError/invalidLimits(_:)``.
    public init(
        sources: [any JWKSetSource],
        limits: JWKSetCacheLimits = .init(),
        seedFile: String? = nil,
        events: @escaping EventHandler = { _ in },
        clock: (@Sendable () -> Duration)? = nil
    ) throws(JWKSetCacheError) {
        // The call comes before a source's first use of OpenSSL: a fetch may be running when the process exits.
        ProcessExit.leavesOpenSSLInPlace()
        guard !sources.isEmpty else { throw .noSources }
        try limits.validate()
        self.sources = sources
        self.limits = limits
        self.seedFile = seedFile
        self.clock = { clock.map { MonotonicInstant($0()) } ?? MonotonicClock.now() }
        self.events = events
        storage = Locked(Storage(machine: JWKSetCacheState(limits: limits)))
    }

    /// The number of the last publication, read with one atomic load. A worker compares it at each request with the
    /// epoch of its snapshot, and takes the new one only if they differ.
    public var epoch: UInt64 { published.epoch }

    /// The last publication; empty before the first, and once its keys are too old to verify anything.
    ///
    /// Take it again for each token. If you keep one, check ``JWKSetSnapshot/isUsable`` before each use: keys that
    /// become too old cause no new ``epoch``.
    public var snapshot: JWKSetSnapshot {
        let last = published.value
        return last.isUsable(at: clock()) ? last : .empty
    }

    /// Calls `handler`, for the life of the cache, after every fetch, good or bad, on the cache's queue. It is also
    /// called when the cache stops, on the stopping thread. At these moments waiting requests should ask again.
    package func onUpdate(_ handler: @escaping @Sendable () -> Void) {
        storage.withLock { $0.updateHandlers.append(handler) }
    }

    /// Loads the seed file, if there is one, before it returns; then fetches in the background.
    ///
    /// It waits for no fetch. After ``stop()`` it does nothing: make another cache, with other sources.
    public func start() {
        loadSeed()
        refreshNow(.start)
    }

    /// Ends the running fetch and begins no other. The published keys are used until they expire. The stop is final,
    /// also for the sources.
    public func stop() {
        storage.withLock { $0.machine.isStopped = true }
        storage.withLock { $0.fetch }?.cancel()
        for source in sources { source.cancel() }
        notifyWaiters(through: .max)
    }

    /// Starts, and stops when the caller's task is cancelled: the form for a task group.
    ///
    /// It returns when the running fetch has ended, and at once after ``stop()``. ServiceLifecycle cancels no task at a
    /// graceful shutdown, so its service calls `await cancelWhenGracefulShutdown { await cache.run() }`.
    public func run() async {
        start()
        // No fetch has this number: only a stop or the task's cancellation ends the wait.
        await wait(until: .never) { _ in .max }
        stop()
        await withCheckedContinuation { continuation in
            queue.async {
                self.waitForSeedWrites()
                continuation.resume()
            }
        }
    }

    /// Stops, and returns when the running fetch has ended. Keys that it published are in the seed file then, unless
    /// the write takes longer than a second.
    package func stopAndWait() {
        stop()
        queue.sync { waitForSeedWrites() }
    }

    /// Fetches now, independent of times and budgets, unless a fetch is running. It does not wait.
    package func refreshNow(_ reason: JWKSetEvent.Reason = .request) {
        let now = clock()
        if storage.withLock({ $0.machine.begin(at: now) }) { run(reason) }
    }

    /// False if a fetch takes this much longer than its sources may.
    package func isAlive(at now: MonotonicInstant, within limit: Duration) -> Bool {
        guard case .underWay(let began) = storage.withLock({ $0.machine.fetch }) else { return true }
        return now <= began + JWKSetCacheLimits.fetchTimeout * sources.count + limit
    }

    /// Runs a fetch that was begun under the lock.
    func run(_ reason: JWKSetEvent.Reason) {
        let trace = CallTrace.parent
        queue.async { CallTrace.$parent.withValue(trace) { self.runFetch(reason) } }
    }
}

/// A cache provides keys to a verifier of tokens, such as `LimitedLogin.LoginVerifier`.
extension JWKSetCache: JWKSetProvider {
    /// Facebook's JWK Set for id tokens.
    public static let facebookURL = "https://limited.facebook.com/.well-known/oauth/openid/jwks/"
}

extension JWKSetCache {
    /// All mutable state, guarded by the cache's one lock. No request with a known key takes it.
    struct Storage: Sendable {
        var machine: JWKSetCacheState
        /// The source of the current answer, and the entity tag it gave; the tag is valid for this source only.
        var currentSource: Int?
        var validator: String?
        /// The bytes of the set in force, for the seed file.
        var bytes: [UInt8] = []
        var counters = JWKSetCacheStatus.Counters()
        var lastError: String?
        var announcedPhase = JWKSetCachePhase.empty
        var updateHandlers: [@Sendable () -> Void] = []
        var fetch: Task<Void, Never>?
        /// Tasks that wait for the end of a fetch, by a number of their own, with the number of that fetch.
        var waiters: [UInt64: (fetch: UInt64, task: CheckedContinuation<Void, Never>)] = [:]
        var nextWaiter: UInt64 = 0
    }
}

/// A published key set: immutable, shared by all workers, safe to drop while another thread still uses it.
public final class JWKSetSnapshot: Sendable {
    /// Rises by one with each publication; 0 is the empty snapshot before the first.
    public let epoch: UInt64
    /// Rises only when the keys themselves change, and not when only their time is extended. Data that a worker has
    /// built from ``keySet`` stays valid while this number is the same.
    public let keySetVersion: UInt64
    /// The keys; none before the first publication.
    public let keySet: JWKSet
    /// Name of the source of the keys; nil before the first publication.
    public let source: String?
    /// The moments at which they were confirmed, are due again and end; nil before the first publication.
    let times: JWKSetCacheState.Times?
    private let clock: @Sendable () -> MonotonicInstant

    init(
        epoch: UInt64 = 0,
        keySetVersion: UInt64 = 0,
        keySet: JWKSet = JWKSet(keys: []),
        source: String? = nil,
        times: JWKSetCacheState.Times? = nil,
        clock: @escaping @Sendable () -> MonotonicInstant = { MonotonicClock.now() }
    ) {
        self.epoch = epoch
        self.keySetVersion = keySetVersion
        self.keySet = keySet
        self.source = source
        self.times = times
        self.clock = clock
    }

    /// From this moment on the keys verify no token: the answer is 503. This needs no timer.
    package var usableUntil: MonotonicInstant { times?.usableUntil ?? MonotonicInstant(nanoseconds: 0) }

    /// True if the keys may verify now, by the cache's clock. Check it before each use of a snapshot that you keep.
    public var isUsable: Bool { isUsable(at: clock()) }

    package func isUsable(at now: MonotonicInstant) -> Bool { now < usableUntil }

    /// The snapshot before the first publication: no keys, never usable.
    static let empty = JWKSetSnapshot()
}

/// The reason why a cache cannot be made or has no keys to give.
@nonexhaustive  // SE-0487
public enum JWKSetCacheError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The limits contradict each other; the sentence names the fault.
    case invalidLimits(String)
    /// The list of sources is empty.
    case noSources
    /// No usable keys, or the requested one is missing while the sources fail. The sentence is the last failure's, or
    /// says that the cache was not started or was stopped, or that the waiting task was cancelled.
    case unavailable(String)
    /// The key is unknown, and the sources, which answer, could not be asked about it: more than 512 tasks wait, or this one
    /// has waited its full time. Any client can cause this with made-up tokens: answer 429 and never 503, because balancers
    /// remove a server that answers 503.
    case exhausted(retryAfter: Duration)

    /// One sentence.
    public var description: String {
        switch self {
        case .invalidLimits(let reason): "the key cache's limits are invalid: \(reason)"
        case .noSources: "the key cache has no source"
        case .unavailable(let reason): "no keys are available: \(reason)"
        case .exhausted(let time): "too many tokens name unknown keys; try again in \(time.components.seconds) s"
        }
    }
}

extension JWKSetCacheError: JWKSetOutage {
    /// True for ``exhausted(retryAfter:)``.
    public var isOverload: Bool { retryAfter != nil }

    /// The time of ``exhausted(retryAfter:)``.
    public var retryAfter: Duration? { if case .exhausted(let time) = self { time } else { nil } }
}
