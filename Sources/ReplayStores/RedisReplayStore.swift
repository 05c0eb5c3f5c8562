package import Networking
package import OpenSSL

/// Remembers what was used in a Redis or Valkey server, for any number of replicas.
///
/// One thread of its own keeps one connection, over which many questions are under way at once. Whoever asks never waits:
/// it is called back, within ``ReplayLimits/questionTimeout`` whatever the server does.
package final class RedisReplayStore: Sendable {
    /// Where the server is, and who we are.
    package struct Configuration: Sendable {
        package var url: ReplayStoreURL
        /// Overrides the URL's own; nil where the server asks for none.
        package var password: [UInt8]?
        /// Whom to trust; nil where the URL asks for no TLS.
        package var tls: TLSContext?
        package var limits = ReplayLimits()

        package init(url: ReplayStoreURL, password: [UInt8]? = nil, tls: TLSContext? = nil) {
            self.url = url
            self.password = password ?? url.password
            self.tls = tls
        }
    }

    /// Whether questions are taken.
    enum Phase {
        /// There is no connection yet, or none any more; questions wait for it.
        case connecting
        case up
        /// The last attempt failed: questions are refused at once, until one succeeds.
        case down
    }

    struct State {
        var phase = Phase.connecting
        var waiting: [WaitingQuestion] = []
        var vouchesSince: UInt64?
        var isStopped = false
        var isRunning = false
    }

    let configuration: Configuration
    let names = OutboundConnection.Names()
    let signal: WakeSignal
    let observe: @Sendable (ReplayStoreEvent) -> Void
    let state = Locked(State())

    /// - Parameter observe: called on the store's thread and on those that ask; it must not wait.
    package init(
        _ configuration: Configuration,
        observe: @escaping @Sendable (ReplayStoreEvent) -> Void = { _ in }
    ) throws(SocketError) {
        self.configuration = configuration
        self.observe = observe
        signal = try WakeSignal()
    }

    /// Starts the thread, which connects at once.
    package func start() throws(SocketError) {
        let mustStart = state.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning && !state.isStopped
        }
        if mustStart { try LoopThread.start("replay-store") { [self] in run() } }
    }

    /// Ends the thread; questions under way are answered as unavailable, and so are all others from now on.
    package func stop() {
        state.withLock { $0.isStopped = true }
        signal.give()
    }

    /// Whether questions are answered, as far as is known.
    package var isUp: Bool { state.withLock { $0.phase == .up } }

    /// What came to be from this moment on is known; nil before the first connection. Milliseconds since 1970.
    package var vouchesSince: UInt64? { state.withLock { $0.vouchesSince } }

    /// Has the entries of a question remembered.
    ///
    /// - Parameter completion: called once with the answer, on another thread.
    /// - Returns: False where the store cannot be asked now; then `completion` is never called.
    package func remember(
        _ question: ReplayQuestion,
        now: MonotonicInstant,
        completion: @escaping @Sendable (ReplayVerdict) -> Void
    ) -> Bool {
        let waiting = WaitingQuestion(
            question: question,
            askedAt: now,
            deadline: now + configuration.limits.questionTimeout,
            observe: observe,
            completion: completion
        )
        let isTaken = state.withLock { state in
            guard state.phase != .down, !state.isStopped, state.isRunning,
                state.waiting.count < configuration.limits.waitingQuestions
            else { return false }
            state.waiting.append(waiting)
            return true
        }
        if isTaken {
            signal.give()
        } else {
            for _ in question.entries { observe(.answered(.unavailable, nanoseconds: 0)) }
        }
        return isTaken
    }
}
