internal import Dispatch
package import LLHTTP

/// Remembers used nonces, tokens and proofs in a Redis or Valkey server, for any number of replicas.
///
/// Its own thread keeps one connection with many concurrent questions. The caller never waits: its callback is called
/// within ``ReplayLimits/questionTimeout``, even if the server hangs.
package final class RedisReplayStore: Sendable {
    package struct Configuration: Sendable {
        package var url: ReplayStoreURL
        /// At first the URL's password; nil if the server needs none.
        package var password: [UInt8]?
        /// Nil if the URL asks for no TLS.
        package var tls: TLSContext?
        package var sentinelPassword: [UInt8]?
        /// Nil for the sentinels' default user.
        package var sentinelUser: [UInt8]?
        package var limits = ReplayLimits()

        package init(url: ReplayStoreURL) { (self.url, password) = (url, url.password) }

        var connectionAge: Duration {
            if case .sentinel = url.kind { min(limits.sentinelAge, limits.connectionAge) } else { limits.connectionAge }
        }
    }

    struct State {
        var link = RedisLink.down
        var failure: RedisFailure?
        var waiting: [QueuedLookup] = []
        var start: MemoryStart?
        var quota = ProofQuota()
        var isStopped = false
    }

    let configuration: Configuration
    let signal: WakeSignal
    let observe: @Sendable (ReplayStoreEvent) -> Void
    let state = Locked(State())
    private let queue = DispatchQueue(label: "replay-store")
    /// The revoked logins: this replica's copy of the set in Redis.
    package let revocations: Revocations

    package init(
        _ configuration: Configuration,
        observe: @escaping @Sendable (ReplayStoreEvent) -> Void = { _ in }
    ) throws(SocketError) {
        self.configuration = configuration
        self.observe = observe
        let signal = WakeSignal()
        if let error = signal.error { throw error }
        self.signal = signal
        let skew = configuration.limits.revocationSkew
        revocations = Revocations(skew: skew, observe: observe, wake: { signal.set() })
    }

    package func start() {
        state.withLock { $0.link = .connecting }
        queue.async { [self] in RedisConnector(self).run() }
    }

    /// Pending questions and all later ones are answered as unavailable.
    package func stop() {
        state.withLock { $0.isStopped = true }
        signal.set()
    }

    /// True if the store currently answers questions, as far as it knows.
    package var isUp: Bool { state.withLock { $0.link == .up } }

    /// The reason why the server cannot be used, or takes no revocations; nil if all is well.
    package var failure: RedisFailure? { state.withLock { $0.failure } }

    /// The start of the server's memory; nil before the first connection.
    var memoryStart: MemoryStart? { state.withLock { $0.start } }

    /// - Parameter completion: called once with the answer: at once, or on the store's thread.
    package func remember(
        _ question: ReplayLookup,
        now: MonotonicInstant,
        completion: @escaping @Sendable (ReplayVerdict) -> Void
    ) {
        let proof = question.counted(at: now.milliseconds, now: WallClock.unixMilliseconds())
        let lookup = QueuedLookup(
            question: question,
            deadline: now + configuration.limits.questionTimeout,
            completion: { [self] verdict in
                observe(.answered(nanoseconds: MonotonicClock.now().nanoseconds(since: now)))
                // A refused proof gives its place back.
                if let proof, verdict != .accepted {
                    state.withLock { $0.quota.giveBack(proof.owners, until: proof.end) }
                }
                completion(verdict)
            }
        )
        // Nil if the question was queued.
        let refusal: ReplayVerdict? = state.withLock { state in
            guard state.link != .down, !state.isStopped,
                state.waiting.count < configuration.limits.waitingQuestions
            else { return .unavailable }
            if let proof, let seconds = state.quota.take(proof.owners, until: proof.end, now: now.milliseconds) {
                return .tooMany(seconds)
            }
            state.waiting.append(lookup)
            return nil
        }
        if let refusal { completion(refusal) } else { signal.set() }
    }

    var isStopped: Bool { state.withLock { $0.isStopped } }
    var hasWaiting: Bool { state.withLock { !$0.waiting.isEmpty } }

    func takeWaiting(atMost count: Int) -> [QueuedLookup] { state.withLock { $0.waiting.take(atMost: count) } }
}

enum RedisLink {
    /// There is no connection at the moment; questions wait for it.
    case connecting
    case up
    /// There was no attempt, or the last one failed. Questions are answered at once until an attempt succeeds.
    case down
}

extension Array {
    mutating func take(atMost count: Int) -> [Element] {
        let taken = Array(prefix(count))
        removeFirst(taken.count)
        // An empty array releases the memory of a burst.
        if isEmpty { self = [] }
        return taken
    }
}
