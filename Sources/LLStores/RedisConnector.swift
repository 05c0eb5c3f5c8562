internal import LLHTTP

/// The work of the store's thread: it connects, serves, and connects again.
struct RedisConnector {
    private let store: RedisReplayStore
    private let limits: ReplayLimits
    private let finder: RedisFinder
    private var exchanges: RedisRevocations
    private var last: RedisLastServer?
    private var slotMove: SlotMove?
    private var pause: GrowingPause
    /// True if another session may follow at once when the next one ends.
    private var mayRetryAtOnce = true
    private var reported: RedisFailure?
    private var recent: [(failure: RedisFailure, at: MonotonicInstant)] = []

    init(_ store: RedisReplayStore) {
        let configuration = store.configuration
        self.store = store
        limits = configuration.limits
        finder = RedisFinder(configuration, store.names, store.signal)
        exchanges = RedisRevocations(store.revocations, limits: limits, keys: RedisKeys(configuration.url.kind))
        pause = GrowingPause(limits)
    }

    consuming func run() {
        while !store.isStopped {
            do throws(RedisFailure) {
                let session = try connect()
                announce(session)
                try serveAndAbandon(session)
            } catch {
                wait(after: error)
            }
        }
        store.revocations.setLink(.down)
        refuseWaiting()
    }

    private mutating func connect() throws(RedisFailure) -> RedisSession {
        let deadline = MonotonicClock.now() + limits.connectTimeout
        let found = try finder.find(after: last, until: deadline)
        let context = RedisHandshake.Context(last: last, handedOverBy: found.handedOverBy, slotMove: slotMove)
        do throws(RedisFailure) {
            let handshake = try RedisHandshake(over: found.channel, store.configuration, context, until: deadline)
            return RedisSession(found.channel, handshake, limits: limits, now: MonotonicClock.now())
        } catch {
            note(error)
            // The owner still has the slot, so no third server can have had it since.
            if case .slotMoves = error, last?.node == found.channel.node { last?.answeredAt = MonotonicClock.now() }
            throw error
        }
    }

    private mutating func announce(_ session: RedisSession) {
        let (handshake, now) = (session.handshake, session.openedAt)
        store.state.withLock { ($0.link, $0.completeSince) = (.up, handshake.start.completeSince) }
        exchanges.begin(handshake, at: now)
        reportUp(handshake)
        slotMove = nil
        last = RedisLastServer(
            node: session.node,
            known: MemoryJudgement.Known(
                identity: handshake.identity,
                start: handshake.start,
                answeredAt: WallClock.unixMilliseconds()
            ),
            clock: handshake.clock,
            answeredAt: now
        )
    }

    /// Serves questions until the session ends. Every question is answered.
    private mutating func serveAndAbandon(_ session: RedisSession) throws(RedisFailure) {
        var failure: RedisFailure?
        do throws(RedisFailure) { try serve(session) } catch { failure = error }
        let now = MonotonicClock.now()
        last?.answeredAt = session.answeredAt
        last?.known.answeredAt = WallClock.unixMilliseconds() - now.nanoseconds(since: session.answeredAt) / 1_000_000
        last?.clock = session.clock
        session.abandon(now: now)
        exchanges.abandon()
        if now >= session.openedAt + limits.greatestPause {
            mayRetryAtOnce = true
            pause = GrowingPause(limits)
        }
        if let failure {
            note(failure)
            // Revocations that waited during the failure are answered now and written later.
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
            if let replies = session.takeFinished() {
                do throws(RedisFailure) {
                    try exchanges.finish(replies, now)
                    reportUp(session.handshake)
                } catch {
                    // After a failover a new connection may reach the primary. Questions about logins end the session
                    // in the same case.
                    if error == .readOnly { throw error }
                    exchanges.hold(now)
                    reportDown(error)
                }
            }
            let isOld = now > session.openedAt + store.configuration.connectionAge
            if isOld, session.isIdle, store.hasWaiting || exchanges.dueAt(now) <= now { return }
            let questions = isOld ? [] : store.takeWaiting(atMost: session.room)
            if !questions.isEmpty {
                try session.send(questions, unixMilliseconds: WallClock.unixMilliseconds(), now: now)
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
    private mutating func note(_ failure: RedisFailure) {
        guard case .slotMoves(let target) = failure else { return }
        if slotMove == nil {
            slotMove = SlotMove(target: target, since: last?.answeredAt ?? MonotonicClock.now())
        } else if slotMove?.target != target {
            slotMove?.isBroken = true
        }
    }

    private mutating func wait(after failure: RedisFailure) {
        let end = pause.end(from: MonotonicClock.now())
        store.state.withLock { $0.link = .down }
        store.revocations.setLink(.down)
        refuseWaiting()
        reportDown(failure)
        while !store.isStopped, MonotonicClock.now() < end { store.signal.wait(until: end) }
    }

    /// Reports that the store is up, if that is news. A connection renewed only for its age is not news.
    private mutating func reportUp(_ handshake: RedisHandshake) {
        let isNew = last?.known.identity != handshake.identity || last?.known.start != handshake.start
        guard isNew || reported != nil && !exchanges.isFailing else { return }
        reported = nil
        store.observe(.up(handshake.start))
    }

    /// Reports a failure in one line when it begins. A different reason, or the same one after a recovery, is reported
    /// at most once a minute.
    private mutating func reportDown(_ failure: RedisFailure) {
        let now = MonotonicClock.now()
        recent.removeAll { now > $0.at + .seconds(60) }
        let isRecent = recent.contains { $0.failure == failure }
        guard reported.map({ $0 != failure && recent.isEmpty }) ?? !isRecent else { return }
        reported = failure
        recent.append((failure, now))
        store.observe(.down(failure))
    }

    private func refuseWaiting() {
        let now = MonotonicClock.now()
        for lookup in store.takeWaiting(atMost: .max) { lookup.answer([], now: now) }
    }
}
