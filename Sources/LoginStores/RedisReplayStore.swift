package import OpenSSL
package import Sockets

/// Remembers what was used in a Redis or Valkey server, for any number of replicas.
///
/// One thread of its own keeps one connection, over which many questions are under way at once. The caller never waits: it
/// is called back, within ``ReplayLimits/questionTimeout`` whatever the server does.
package final class RedisReplayStore: Sendable {
    package struct Configuration: Sendable {
        package var url: ReplayStoreURL
        /// Overrides the URL's own; nil where the server asks for none.
        package var password: [UInt8]?
        /// The trusted authorities; nil where the URL asks for no TLS.
        package var tls: TLSContext?
        package var limits = ReplayLimits()

        package init(url: ReplayStoreURL, password: [UInt8]? = nil, tls: TLSContext? = nil) {
            self.url = url
            self.password = password ?? url.password
            self.tls = tls
        }
    }

    struct State {
        var link = RedisLink.connecting
        var waiting: [WaitingQuestion] = []
        var vouchesSince: UInt64?
        var quota = ProofQuota()
        var isStopped = false
        var isRunning = false
    }

    let configuration: Configuration
    let names = NameResolver()
    let signal: WakeSignal
    let observe: @Sendable (ReplayStoreEvent) -> Void
    let state = Locked(State())
    /// Which logins were revoked: this replica's copy of what Redis holds.
    package let revocations: Revocations

    /// - Parameter observe: called on the store's thread; it must not wait.
    package init(
        _ configuration: Configuration,
        observe: @escaping @Sendable (ReplayStoreEvent) -> Void = { _ in }
    ) throws(SocketError) {
        self.configuration = configuration
        self.observe = observe
        let signal = WakeSignal()
        if let error = signal.error { throw error }
        self.signal = signal
        revocations = Revocations(skew: configuration.limits.revocationSkew, wake: { signal.give() })
    }

    /// Starts the thread, which connects at once.
    /// - Returns: False where the system has no thread left.
    @discardableResult
    package func start() -> Bool {
        let mustStart = state.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning && !state.isStopped
        }
        return !mustStart || LoopQueue.start("replay-store") { [self] in run() }
    }

    /// Ends the thread; questions under way are answered as unavailable, and so are all others from now on.
    package func stop() {
        state.withLock { $0.isStopped = true }
        signal.give()
    }

    /// Whether questions are answered, as far as is known.
    package var isUp: Bool { state.withLock { $0.link == .up } }

    /// What came to be from this moment on is known; nil before the first connection. Milliseconds since 1970.
    package var vouchesSince: UInt64? { state.withLock { $0.vouchesSince } }

    /// Has the entries of a question remembered.
    ///
    /// - Parameter completion: called once with the answer: on another thread, or at once where the proof's key has too many.
    /// - Returns: False where the store cannot be asked now; then `completion` is never called.
    package func remember(
        _ question: ReplayQuestion,
        now: MonotonicInstant,
        completion: @escaping @Sendable (ReplayVerdict) -> Void
    ) -> Bool {
        let proof = question.counted(at: now.milliseconds, now: WallClock.unixMilliseconds())
        let waiting = WaitingQuestion(
            question: question,
            askedAt: now,
            deadline: now + configuration.limits.questionTimeout,
            observe: observe,
            completion: givingBack(proof, then: completion)
        )
        // Nil where the question is on its way.
        let refusal: ReplayVerdict? = state.withLock { state in
            guard state.link != .down, !state.isStopped, state.isRunning,
                state.waiting.count < configuration.limits.waitingQuestions
            else { return .unavailable }
            if let proof, let seconds = state.quota.take(proof.owner, until: proof.end, now: now.milliseconds) {
                return .tooMany(seconds)
            }
            state.waiting.append(waiting)
            return nil
        }
        guard let refusal else {
            signal.give()
            return true
        }
        guard refusal.answer == .tooMany else { return false }
        completion(refusal)
        return true
    }

    /// Gives back the place of a proof that is refused.
    private func givingBack(
        _ proof: (owner: ReplayKey, end: UInt64)?,
        then completion: @escaping @Sendable (ReplayVerdict) -> Void
    ) -> @Sendable (ReplayVerdict) -> Void {
        guard let proof else { return completion }
        return { [self] verdict in
            if verdict != .accepted { state.withLock { $0.quota.giveBack(proof.owner, until: proof.end) } }
            completion(verdict)
        }
    }
}

/// What is known of the way to Redis.
enum RedisLink {
    /// There is no connection yet, or none any more; what is asked waits for it.
    case connecting
    case up
    /// The last attempt failed: what is asked is answered at once without Redis, until one succeeds.
    case down
}

/// The store's thread: connects, serves, and connects again.
extension RedisReplayStore {
    /// What the thread knows from one connection to the next.
    private struct Memory {
        var lastLife: RedisLife?
        var exchanges: RedisRevocations
        var pause: GrowingPause
        /// Whether the next session that ends may be followed by another at once.
        var mayHurry = true
        /// The failure that was told, until it is told that all is well.
        var toldDown: RedisFailure?
        /// The failures of the last minute that were told.
        var told: [(failure: RedisFailure, at: MonotonicInstant)] = []
    }

    func run() {
        var memory = Memory(
            exchanges: RedisRevocations(revocations, limits: configuration.limits),
            pause: GrowingPause(configuration.limits)
        )
        while !isStopped {
            do throws(RedisFailure) {
                let session = try connect(memory.lastLife?.identity)
                becomeUp(session, &memory)
                try serveAndAbandon(session, &memory)
            } catch {
                becomeDown(error, &memory)
            }
        }
        revocations.setLink(.down)
        refuseWaiting()
    }

    private var isStopped: Bool { state.withLock { $0.isStopped } }

    private func connect(_ lastIdentity: String?) throws(RedisFailure) -> RedisSession {
        let deadline = MonotonicClock.now() + configuration.limits.connectTimeout
        let url = configuration.url
        let stream: ClientStream
        do throws(StreamError) {
            stream = try ClientStream.open(url.host, port: url.port, names: names, until: deadline)
            if let context = configuration.tls { try stream.secure(context, hostName: url.host, until: deadline) }
        } catch {
            throw RedisFailure(error)
        }
        let channel = RedisChannel(stream, signal)
        let greeting = try RedisGreeting(over: channel, configuration, lastIdentity: lastIdentity, until: deadline)
        return RedisSession(channel, greeting, limits: configuration.limits, now: MonotonicClock.now())
    }

    /// Serves questions until the session ends; none of them stays without an answer.
    private func serveAndAbandon(_ session: RedisSession, _ memory: inout Memory) throws(RedisFailure) {
        var failure: RedisFailure?
        do throws(RedisFailure) { try serve(session, &memory) } catch { failure = error }
        let now = MonotonicClock.now()
        session.abandon(now: now)
        memory.exchanges.abandon()
        if now >= session.openedAt + configuration.limits.greatestPause {
            memory.mayHurry = true
            memory.pause = GrowingPause(configuration.limits)
        }
        if let failure {
            // Revocations that waited behind the failure are answered now, and written later.
            revocations.setLink(.connecting)
            // One that has worked may work again at once: a restart, a broken connection, data that were emptied. A server
            // that greets well and then fails each time is tried again without a pause once.
            guard memory.mayHurry else { throw failure }
            memory.mayHurry = false
            tellDown(failure, &memory)
        }
        if failure != nil || !isStopped { state.withLock { $0.link = .connecting } }
    }

    /// Returns when the store is stopped, or the session too old for another question.
    private func serve(_ session: RedisSession, _ memory: inout Memory) throws(RedisFailure) {
        while !isStopped {
            let now = MonotonicClock.now()
            try session.receive(now: now)
            if let replies = session.takeFinished() {
                do throws(RedisFailure) {
                    try memory.exchanges.finish(replies, now)
                    tellUp(session.greeting.life, &memory)
                } catch {
                    // After a failover another connection may lead to the primary, as one that asks about logins would.
                    if error == .readOnly { throw error }
                    memory.exchanges.hold(now)
                    tellDown(error, &memory)
                }
            }
            let isOld = now > session.openedAt + configuration.limits.connectionAge
            if isOld, session.isIdle, hasWaiting || memory.exchanges.dueAt(now) <= now { return }
            let questions = isOld ? [] : state.withLock { $0.waiting.take(atMost: session.room) }
            if !questions.isEmpty {
                try session.send(questions, unixMilliseconds: WallClock.unixMilliseconds(), now: now)
                // There may be more than one batch.
                if session.room > 0, hasWaiting { continue }
            }
            if !isOld, session.room > 0, let commands = memory.exchanges.next(now) {
                try session.send(commands, now: now)
            }
            let mayAsk = session.isIdle || !isOld && session.room > 0
            try session.wait(until: mayAsk ? memory.exchanges.dueAt(now) : .never)
        }
    }

    private var hasWaiting: Bool { state.withLock { !$0.waiting.isEmpty } }

    private func becomeUp(_ session: RedisSession, _ memory: inout Memory) {
        let greeting = session.greeting
        state.withLock { ($0.link, $0.vouchesSince) = (.up, greeting.vouchesSince) }
        memory.exchanges.begin(greeting.life, serverMilliseconds: greeting.serverTime, at: session.openedAt)
        tellUp(greeting.life, &memory)
        memory.lastLife = greeting.life
    }

    private func becomeDown(_ failure: RedisFailure, _ memory: inout Memory) {
        state.withLock { $0.link = .down }
        revocations.setLink(.down)
        refuseWaiting()
        tellDown(failure, &memory)
        let end = memory.pause.end(from: MonotonicClock.now())
        while !isStopped, MonotonicClock.now() < end { signal.wait(until: end) }
    }

    /// Tells that all is well, where that is news. A connection that was made anew for its age alone is none.
    private func tellUp(_ life: RedisLife, _ memory: inout Memory) {
        guard memory.lastLife != life || memory.toldDown != nil && !memory.exchanges.isFailing else { return }
        memory.toldDown = nil
        observe(.up(life))
    }

    /// One line when it begins; another reason meanwhile, and the same one once all was well, once a minute at most.
    private func tellDown(_ failure: RedisFailure, _ memory: inout Memory) {
        let now = MonotonicClock.now()
        memory.told.removeAll { now > $0.at + .seconds(60) }
        let isTold = memory.told.contains { $0.failure == failure }
        guard memory.toldDown.map({ $0 != failure && memory.told.isEmpty }) ?? !isTold else { return }
        memory.toldDown = failure
        memory.told.append((failure, now))
        observe(.down(failure))
    }

    private func refuseWaiting() {
        let waiting = state.withLock { $0.waiting.take(atMost: .max) }
        let now = MonotonicClock.now()
        for question in waiting { question.answer([], now: now) }
    }
}

extension Array {
    /// Removes the first elements and answers them.
    mutating func take(atMost count: Int) -> [Element] {
        let taken = Array(prefix(count))
        removeFirst(taken.count)
        // The room of a burst is not kept.
        if isEmpty { self = [] }
        return taken
    }
}
