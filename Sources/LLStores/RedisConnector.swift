internal import LLHTTP

/// The work of the store's thread: it connects, serves, and connects again.
struct RedisConnector {
    private let store: RedisReplayStore
    private let limits: ReplayLimits
    private let finder: RedisFinder
    private var exchanges: RedisRevocations
    private var memory: RedisMemory
    private var pause: GrowingPause
    /// True if another session may follow at once when the next one ends.
    private var mayRetryAtOnce = true
    private var reported: RedisFailure?
    private var recent: [(failure: RedisFailure, at: MonotonicInstant)] = []

    init(_ store: RedisReplayStore) {
        let configuration = store.configuration
        self.store = store
        limits = configuration.limits
        finder = RedisFinder(configuration, store.signal)
        memory = RedisMemory(configuration.url.kind, limits)
        exchanges = RedisRevocations(store.revocations, limits: limits, keys: memory.keys)
        pause = GrowingPause(limits)
    }

    consuming func run() {
        while !store.isStopped {
            do throws(RedisFailure) {
                try serveAndAbandon(try connect())
            } catch {
                wait(after: error)
            }
        }
        refuseWaiting()
    }

    private mutating func connect() throws(RedisFailure) -> RedisSession {
        let deadline = MonotonicClock.now() + limits.connectTimeout
        let before = memory.last?.known
        let found = try finder.find(after: memory.recent(at: MonotonicClock.now()), until: deadline)
        let session: RedisSession
        do throws(RedisFailure) {
            session = try RedisSession(over: found, &memory, limits: limits, until: deadline)
        } catch {
            note(error, at: found.channel.node)
            store.state.withLock { $0.start = memory.start }
            throw error
        }
        if let last = session.memory.last {
            store.state.withLock { ($0.link, $0.start) = (.up, last.known.start) }
            exchanges.begin(last.known.identity, last.known.start, last.clock)
            let isNew = before?.identity != last.known.identity || before?.start != last.known.start
            reportUp(last.known.start, isNew: isNew)
        }
        return session
    }

    private mutating func serveAndAbandon(_ session: RedisSession) throws(RedisFailure) {
        var failure: RedisFailure?
        do throws(RedisFailure) { try serve(session) } catch { failure = error }
        let now = MonotonicClock.now()
        memory = session.memory
        session.abandon()
        exchanges.abandon()
        if now >= session.openedAt + limits.greatestPause {
            mayRetryAtOnce = true
            pause = GrowingPause(limits)
        }
        if let failure {
            note(failure, at: session.channel.node)
            store.revocations.setLink(.connecting)
            // A session that worked may work again at once, for instance after a restart, a broken connection or
            // emptied data. A server that opens well and then fails each time gets only one attempt without a pause.
            guard mayRetryAtOnce else { throw failure }
            mayRetryAtOnce = false
            // A slot that has moved is no failure.
            if failure != .moved { reportDown(failure) }
        }
        if failure != nil || !store.isStopped { store.state.withLock { $0.link = .connecting } }
    }

    /// Returns when the store is stopped, or when the session is too old for another question.
    private mutating func serve(_ session: RedisSession) throws(RedisFailure) {
        while !store.isStopped {
            let now = MonotonicClock.now()
            try session.receive(now: now)
            if let replies = session.finished.take() {
                do throws(RedisFailure) {
                    try exchanges.finish(replies, now)
                    if let last = session.memory.last { reportUp(last.known.start, isNew: false) }
                } catch {
                    // After a failover a new connection may reach the primary, as for questions about logins.
                    if error == .readOnly { throw error }
                    exchanges.hold(now)
                    reportDown(error)
                }
            }
            let isOld = now > session.openedAt + store.configuration.connectionAge
            if isOld, session.isIdle, store.hasWaiting || exchanges.dueAt(now) <= now { return }
            let questions = isOld ? [] : store.takeWaiting(atMost: session.room)
            if !questions.isEmpty {
                try session.send(questions, now: now)
                // There may be questions for another batch.
                if session.room > 0, store.hasWaiting { continue }
            }
            if !isOld, session.room > 0, let commands = exchanges.next(now) {
                try session.send(commands, now: now)
            }
            let mayAsk = session.isIdle || !isOld && session.room > 0
            try session.wait(until: mayAsk ? exchanges.dueAt(now) : .never)
        }
    }

    /// Remembers that the slot of the keys is on its way, until a node that owns it alone has been judged.
    private mutating func note(_ failure: RedisFailure, at node: RedisNode) {
        guard let target = failure.target else { return }
        let identity = memory.slotMove == nil ? finder.identity(of: target) : nil
        memory.noteMove(from: node, to: target, identity: identity, now: MonotonicClock.now())
    }

    private mutating func wait(after failure: RedisFailure) {
        let end = pause.end(from: MonotonicClock.now())
        store.state.withLock { $0.link = .down }
        refuseWaiting()
        reportDown(failure)
        while !store.isStopped, MonotonicClock.now() < end { store.signal.wait(until: end) }
    }

    /// Reports that the store is up, if that is news. A connection renewed only for its age is not news.
    private mutating func reportUp(_ start: MemoryStart, isNew: Bool) {
        if !exchanges.isFailing { store.state.withLock { $0.failure = nil } }
        guard isNew || reported != nil && !exchanges.isFailing else { return }
        reported = nil
        store.observe(.up(start))
    }

    /// Reports a failure in one line when it begins. The same one is reported again at most once a minute, after another
    /// one or a recovery.
    private mutating func reportDown(_ failure: RedisFailure) {
        let now = MonotonicClock.now()
        store.state.withLock { $0.failure = failure }
        recent.removeAll { now > $0.at + .seconds(60) }
        guard reported != failure, !recent.contains(where: { $0.failure == failure }) else { return }
        reported = failure
        recent.append((failure, now))
        store.observe(.down(failure))
    }

    private func refuseWaiting() {
        store.revocations.setLink(.down)
        for lookup in store.takeWaiting(atMost: .max) { lookup.finish() }
    }
}
