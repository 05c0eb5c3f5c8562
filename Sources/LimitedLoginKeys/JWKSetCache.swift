internal import LLCrypto
internal import LLHTTPClient
@_exported public import LLJOSE
package import LLSockets

/// Keeps an issuer's JWK Set at hand: fetched ahead of its expiry in the background, asked for again when a token names
/// an unknown key, kept through outages, dropped when too old.
///
/// Give the cache its sources in order of preference, ``start()`` or ``run()`` it, and take the keys from ``snapshot`` (or
/// ``keySet(containing:)``, which waits for a key that was only just published). Nothing here blocks a caller but the
/// reading of a seed file at the start: fetches run on a queue of the cache's own, one at a time.
public final class JWKSetCache: Sendable {
    /// Receives events, one at a time, on the cache's own queue. It must not call ``JWKSetCache/stop()``.
    public typealias EventHandler = @Sendable (JWKSetEvent) -> Void

    /// Writes these bytes to the file of this path, as a whole.
    package typealias FileWriter = @Sendable ([UInt8], String) throws(JWKSetSourceError) -> Void

    let sources: [any JWKSetSource]
    let limits: JWKSetCacheLimits
    let seedFile: String?
    let clock: @Sendable () -> MonotonicInstant
    let events: EventHandler
    let queue = SerialThread("key-set-cache")
    /// Writes the seed file: a thread of its own, since a write stands still for as long as its volume does.
    let seedQueue = SerialThread("key-set-file")
    let seedWrites = Locked(SeedWrites())
    /// What writes it; nil for ``KeySetFile/write(_:to:)``.
    let writeFile: FileWriter?
    let storage: Locked<Storage>
    /// The snapshot in force; published with the lock held, so that epochs follow in their order.
    package let published = Published(JWKSetSnapshot.empty)

    /// A cache of these sources, asked in their order.
    ///
    /// - Parameters:
    ///   - sources: At least one. ``stop()`` cancels them for good: give another cache sources of its own.
    ///   - limits: Times and counts; see there for the defaults.
    ///   - seedFile: Path of a JWK Set that serves until a source has answered. It is rewritten after each good fetch.
    ///     Its keys are believed, so let nobody else write to it or to its directory.
    ///   - events: Receives what the cache does. Log it: a `LoginVerifier` does not say why there are no keys.
    /// - Throws: ``JWKSetCacheError/noSources``, ``JWKSetCacheError/invalidLimits(_:)``.
    public convenience init(
        sources: [any JWKSetSource],
        limits: JWKSetCacheLimits = .init(),
        seedFile: String? = nil,
        events: @escaping EventHandler = { _ in }
    ) throws(JWKSetCacheError) {
        try self.init(
            sources: sources,
            limits: limits,
            seedFile: seedFile,
            clock: { MonotonicClock.now() },
            jitter: { Double.random(in: 0..<1) },
            events: events
        )
    }

    /// The same with the clock and the jitter (numbers from 0 up to 1) given.
    package init(
        sources: [any JWKSetSource],
        limits: JWKSetCacheLimits,
        seedFile: String?,
        clock: @escaping @Sendable () -> MonotonicInstant,
        jitter: @escaping @Sendable () -> Double,
        writeFile: FileWriter? = nil,
        events: @escaping EventHandler
    ) throws(JWKSetCacheError) {
        // Before a source's first use of OpenSSL: a fetch may be under way when the process exits.
        ProcessExit.leavesOpenSSLInPlace()
        guard !sources.isEmpty else { throw .noSources }
        try limits.validate()
        self.sources = sources
        self.limits = limits
        self.seedFile = seedFile
        self.clock = clock
        self.writeFile = writeFile
        self.events = events
        storage = Locked(Storage(machine: JWKSetCacheState(limits: limits, jitter: jitter)))
    }

    /// The number of the last publication. One atomic load: a worker compares it at each request with the epoch of the
    /// snapshot it holds, and takes the new one only when they differ.
    public var epoch: UInt64 { published.epoch }

    /// The last publication; empty before the first, and once its keys are too old to verify anything.
    ///
    /// Take it anew for each token. If you keep one, ask ``JWKSetSnapshot/isUsable`` before each use: keys that grow too
    /// old make no new ``epoch``.
    public var snapshot: JWKSetSnapshot {
        let last = published.value
        return last.isUsable(at: clock()) ? last : .empty
    }

    /// Calls `handler`, for the life of the cache, on its queue after every fetch that ends, good or bad, and on the
    /// stopping thread when the cache stops: the moments at which waiting requests should ask again.
    public func onUpdate(_ handler: @escaping @Sendable () -> Void) {
        storage.withLock { $0.updateHandlers.append(handler) }
    }

    /// Takes over the seed file, if there is one, before it returns; then fetches in the background.
    ///
    /// It waits for no fetch. After ``stop()`` it does nothing: make another cache, with other sources.
    public func start() {
        loadSeed()
        fetchNow(.start)
    }

    /// Ends the fetch under way and begins no other. What is published serves on until it expires. Final, for the
    /// sources too.
    public func stop() {
        storage.withLock { $0.machine.isStopped = true }
        for source in sources { source.cancel() }
        notifyWaiters(through: .max)
    }

    /// Starts, and stops when the caller's task is cancelled: the form in which a task group runs it.
    ///
    /// It returns when the fetch under way has ended; at once after ``stop()``. ServiceLifecycle cancels no task at a
    /// graceful shutdown, so its service calls `await cancelWhenGracefulShutdown { await cache.run() }`.
    public func run() async {
        start()
        // No fetch has this number: only a stop or the task's cancellation ends the wait.
        await wait(until: .never) { _ in .max }
        await stopAndWait()
    }

    /// Stops, and returns when the fetch under way has ended: keys that it published are in the seed file then, unless that
    /// takes longer than a second.
    package func stopAndWait() async {
        stop()
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
        await waitForSeedWrites(atMost: .seconds(1))
    }

    /// Fetches now, whatever the times and budgets say, unless a fetch is under way. Does not wait.
    public func refreshNow() { fetchNow(.request) }

    private func fetchNow(_ reason: JWKSetEvent.Reason) {
        let now = clock()
        if storage.withLock({ $0.machine.begin(at: now) }) { run(reason) }
    }

    /// Starts the cache's thread before it is needed.
    /// - Returns: False where the system has no thread left; a fetch then begins as soon as it has one.
    package func startThread() -> Bool { queue.start() }

    /// Whether the cache's thread still turns. It may wait for one source as long as a fetch may take, and for
    /// `limit` besides.
    package func isAlive(at now: MonotonicInstant, within limit: Duration) -> Bool {
        queue.isAlive(at: now, within: limit + HTTPSClientLimits().fetchTimeout)
    }

    /// Runs what was begun under the lock.
    func run(_ reason: JWKSetEvent.Reason) {
        let trace = CallTrace.parent
        queue.async { CallTrace.$parent.withValue(trace) { self.runFetch(reason) } }
    }
}

/// A cache gives its keys to a judge of tokens, such as `LimitedLogin.LoginVerifier`.
extension JWKSetCache: JSONWebKeySetProvider {}

extension JWKSetCache {
    /// All that changes, guarded by the cache's one lock. No request with a known key takes it.
    struct Storage: Sendable {
        var machine: JWKSetCacheState
        /// The source whose answer is in force, and the entity tag it gave; the tag is worth nothing to any other.
        var currentSource: Int?
        var validator: String?
        /// The bytes in force, kept only for the seed file.
        var bytes: [UInt8] = []
        var counters = JWKSetCacheStatus.Counters()
        var lastError: String?
        var announcedPhase = JWKSetCachePhase.empty
        /// The number of the alarm that is set; earlier ones are void.
        var alarm: UInt64 = 0
        var updateHandlers: [@Sendable () -> Void] = []
        /// Tasks that wait for the end of a fetch, by a number of their own, with that of the fetch under way when they began.
        var waiters: [UInt64: (fetch: UInt64, task: CheckedContinuation<Void, Never>)] = [:]
        var nextWaiter: UInt64 = 0
    }
}

/// Why a cache cannot be made or has no keys to give.
@nonexhaustive  // SE-0487
public enum JWKSetCacheError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The limits contradict each other; the sentence says which.
    case invalidLimits(String)
    /// No source was named.
    case noSources
    /// No usable keys, or not the one asked for while the sources fail; the sentence is the last failure's, or says that
    /// the cache was not started or was stopped, or that the waiting task was cancelled.
    case unavailable(String)
    /// The key is unknown, and the sources, which answer, could not be asked about it: more than
    /// ``JWKSetCacheLimits/waitingTaskCount`` tasks wait for unknown keys, or this one has waited its time. Anybody can
    /// bring this about with made-up tokens: answer 429 to it and never 503, for which balancers take a server out.
    case exhausted(retryAfterSeconds: Int)

    /// One sentence.
    public var description: String {
        switch self {
        case .invalidLimits(let reason): "the key cache's limits are invalid: \(reason)"
        case .noSources: "the key cache has no source"
        case .unavailable(let reason): "no keys are available: \(reason)"
        case .exhausted(let seconds): "too many tokens name unknown keys; try again in \(seconds) s"
        }
    }
}
