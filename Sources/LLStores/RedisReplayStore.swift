internal import Dispatch
package import LLSockets

/// Remembers used nonces, tokens and proofs in a Redis or Valkey server, for any number of replicas.
///
/// Its own thread keeps one connection with many concurrent questions. The caller never waits: its callback is called
/// within ``ReplayLimits/questionTimeout``, even if the server hangs.
package final class RedisReplayStore: Sendable {
    package struct Configuration: Sendable {
        package var url: ReplayStoreURL
        /// Overrides the URL's password; nil if the server needs none.
        package var password: [UInt8]?
        /// The trusted authorities; nil if the URL asks for no TLS.
        package var tls: TLSContext?
        /// The password of the sentinels; nil if they need none.
        package var sentinelPassword: [UInt8]?
        package var limits = ReplayLimits()

        package init(
            url: ReplayStoreURL,
            password: [UInt8]? = nil,
            sentinelPassword: [UInt8]? = nil,
            tls: TLSContext? = nil
        ) {
            self.url = url
            self.password = password ?? url.password
            self.sentinelPassword = sentinelPassword
            self.tls = tls
        }

        /// The age from which a connection is renewed.
        var connectionAge: Duration {
            if case .sentinel = url.kind { min(limits.sentinelAge, limits.connectionAge) } else { limits.connectionAge }
        }
    }

    struct State {
        var link = RedisLink.connecting
        var waiting: [QueuedLookup] = []
        var completeSince: UInt64?
        var quota = ProofQuota()
        var isStopped = false
        var isRunning = false
    }

    let configuration: Configuration
    let names = NameResolver()
    let signal: WakeSignal
    let observe: @Sendable (ReplayStoreEvent) -> Void
    let state = Locked(State())
    /// The revoked logins: this replica's copy of the set in Redis.
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
        let skew = configuration.limits.revocationSkew
        revocations = Revocations(skew: skew, observe: observe, wake: { signal.set() })
    }

    /// Starts the queue, which connects at once.
    package func start() {
        let mustStart = state.withLock { state in
            defer { state.isRunning = true }
            return !state.isRunning && !state.isStopped
        }
        if mustStart { DispatchQueue(label: "replay-store").async { [self] in run() } }
    }

    /// Ends the thread. Pending questions and all later ones are answered as unavailable.
    package func stop() {
        state.withLock { $0.isStopped = true }
        signal.set()
    }

    /// True if the store currently answers questions, as far as it knows.
    package var isUp: Bool { state.withLock { $0.link == .up } }

    /// Entries issued since this time are known. Milliseconds since 1970; nil before the first connection.
    package var completeSince: UInt64? { state.withLock { $0.completeSince } }

    /// Remembers the entries of a question.
    ///
    /// - Parameter completion: called once with the answer, on another thread. It is called at once if the proof's key
    ///   has too many proofs.
    /// - Returns: False if the store cannot be used now; `completion` is then never called.
    package func remember(
        _ question: ReplayLookup,
        now: MonotonicInstant,
        completion: @escaping @Sendable (ReplayVerdict) -> Void
    ) -> Bool {
        let proof = question.counted(at: now.milliseconds, now: WallClock.unixMilliseconds())
        let waiting = QueuedLookup(
            question: question,
            askedAt: now,
            deadline: now + configuration.limits.questionTimeout,
            observe: observe,
            completion: givingBack(proof, then: completion)
        )
        // Nil if the question was queued.
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
            signal.set()
            return true
        }
        guard refusal.answer == .tooMany else { return false }
        completion(refusal)
        return true
    }

    /// Gives back the place of a refused proof.
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

/// The state of the connection to Redis.
enum RedisLink {
    /// There is no connection at the moment; questions wait for it.
    case connecting
    case up
    /// The last attempt failed. Questions are answered at once without Redis until an attempt succeeds.
    case down
}

/// The store's thread: connects, serves, and connects again.
extension RedisReplayStore {
    /// The thread's state that outlives a connection.
    private struct Memory {
        var past: RedisPast?
        let finder: RedisFinder
        let trail = RedisTrail()
        var carried: RedisSession.Carried?
        var exchanges: RedisRevocations
        var pause: GrowingPause
        /// True if another session may follow at once when the next one ends.
        var mayHurry = true
        /// The time since which questions may have waited for a session.
        var waitingSince = MonotonicClock.now()
        /// The reported failure; nil once recovery was reported.
        var toldDown: RedisFailure?
        /// The failures reported within the last minute.
        var told: [(failure: RedisFailure, at: MonotonicInstant)] = []
    }

    func run() {
        let keys = RedisKeys(configuration.url.kind)
        var memory = Memory(
            finder: RedisFinder(configuration, names, signal),
            exchanges: RedisRevocations(revocations, limits: configuration.limits, keys: keys),
            pause: GrowingPause(configuration.limits)
        )
        while !isStopped {
            do throws(RedisFailure) {
                let session = try connect(memory)
                becomeUp(session, &memory)
                try serveAndAbandon(session, &memory)
            } catch {
                pause(after: error, &memory)
            }
        }
        revocations.setLink(.down)
        refuseWaiting(&memory)
    }

    private var isStopped: Bool { state.withLock { $0.isStopped } }

    private func connect(_ memory: Memory) throws(RedisFailure) -> RedisSession {
        let deadline = MonotonicClock.now() + configuration.limits.connectTimeout
        let found = try memory.finder.find(after: memory.past, until: deadline)
        var context = RedisGreeting.Context(last: memory.past, handedOverBy: found.handedOverBy)
        if configuration.url.kind == .cluster {
            context.trail = memory.trail
            context.detour = RedisDetour(memory.finder, from: found.channel.node, memory.trail)
        }
        let greeting = try RedisGreeting(over: found.channel, configuration, context, until: deadline)
        let now = MonotonicClock.now()
        return RedisSession(found.channel, greeting, context.detour, limits: configuration.limits, now: now)
    }

    /// Serves questions until the session ends. Every question is answered.
    private func serveAndAbandon(_ session: RedisSession, _ memory: inout Memory) throws(RedisFailure) {
        var failure: RedisFailure?
        do throws(RedisFailure) { try serve(session, &memory) } catch { failure = error }
        let now = MonotonicClock.now()
        memory.waitingSince = now
        memory.past?.seenAt = session.seenAt
        memory.past?.greeting.clock = session.clock
        if failure == .moved { memory.carried = session.takeCarried() }
        session.abandon(now: now)
        memory.exchanges.abandon()
        if now >= session.openedAt + configuration.limits.greatestPause {
            memory.mayHurry = true
            memory.pause = GrowingPause(configuration.limits)
        }
        if let failure {
            // Revocations that waited during the failure are answered now and written later.
            revocations.setLink(.connecting)
            // A session that worked may work again at once, for instance after a restart, a broken connection or
            // emptied data. A server that greets well and then fails each time gets only one attempt without a pause.
            guard memory.mayHurry else { throw failure }
            memory.mayHurry = false
            // A slot that moves is no failure.
            if failure != .moved { tellDown(failure, &memory) }
        }
        if failure != nil || !isStopped { state.withLock { $0.link = .connecting } }
    }

    /// Returns when the store is stopped, or when the session is too old for another question.
    private func serve(_ session: RedisSession, _ memory: inout Memory) throws(RedisFailure) {
        if let carried = memory.carried.take() { try session.resume(carried, now: MonotonicClock.now()) }
        while !isStopped {
            let now = MonotonicClock.now()
            try session.receive(now: now)
            if session.isOver { throw .moved }
            if let replies = session.takeFinished() {
                do throws(RedisFailure) {
                    try memory.exchanges.finish(replies, now)
                    tellUp(session.greeting.life, &memory)
                } catch {
                    // After a failover a new connection may reach the primary. Questions about logins end the session
                    // in the same case.
                    if error == .readOnly { throw error }
                    memory.exchanges.hold(now)
                    tellDown(error, &memory)
                }
            }
            let isOld = now > session.openedAt + configuration.connectionAge
            if isOld, session.isIdle, hasWaiting || memory.exchanges.dueAt(now) <= now { return }
            let questions = isOld ? [] : state.withLock { $0.waiting.take(atMost: session.room) }
            if !questions.isEmpty {
                try session.send(questions, unixMilliseconds: WallClock.unixMilliseconds(), now: now)
                // There may be questions for another batch.
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
        state.withLock { ($0.link, $0.completeSince) = (.up, greeting.completeSince) }
        memory.exchanges.begin(greeting.life, serverMilliseconds: greeting.clock.milliseconds, at: session.openedAt)
        tellUp(greeting.life, &memory)
        memory.past = RedisPast(node: session.node, greeting: greeting, seenAt: session.openedAt)
    }

    /// Pauses before the next attempt. A slot that moves is no failure: the questions wait if the pause leaves time for
    /// an attempt.
    private func pause(after failure: RedisFailure, _ memory: inout Memory) {
        let end = memory.pause.end(from: MonotonicClock.now())
        let limits = configuration.limits
        if failure != .moved || end + limits.connectTimeout > memory.waitingSince + limits.questionTimeout {
            state.withLock { $0.link = .down }
            revocations.setLink(.down)
            refuseWaiting(&memory)
            tellDown(failure, &memory)
        }
        while !isStopped, MonotonicClock.now() < end { signal.wait(until: end) }
    }

    /// Reports that the store is up, if that is news. A connection renewed only for its age is not news.
    private func tellUp(_ life: RedisMemoryEpoch, _ memory: inout Memory) {
        guard memory.past?.greeting.life != life || memory.toldDown != nil && !memory.exchanges.isFailing else {
            return
        }
        memory.toldDown = nil
        observe(.up(life))
    }

    /// Reports a failure in one line when it begins. A different reason, or the same one after a recovery, is reported
    /// at most once a minute.
    private func tellDown(_ failure: RedisFailure, _ memory: inout Memory) {
        let now = MonotonicClock.now()
        memory.told.removeAll { now > $0.at + .seconds(60) }
        let isTold = memory.told.contains { $0.failure == failure }
        guard memory.toldDown.map({ $0 != failure && memory.told.isEmpty }) ?? !isTold else { return }
        memory.toldDown = failure
        memory.told.append((failure, now))
        observe(.down(failure))
    }

    private func refuseWaiting(_ memory: inout Memory) {
        let waiting = state.withLock { $0.waiting.take(atMost: .max) }
        let now = MonotonicClock.now()
        memory.carried.take()?.abandon(now: now)
        for question in waiting { question.answer([], now: now) }
    }
}

extension Array {
    /// Removes the first elements and returns them.
    mutating func take(atMost count: Int) -> [Element] {
        let taken = Array(prefix(count))
        removeFirst(taken.count)
        // An empty array releases the memory of a burst.
        if isEmpty { self = [] }
        return taken
    }
}
