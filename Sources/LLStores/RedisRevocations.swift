internal import LLHTTP

/// The exchange of revocations with Redis: the next commands to send, and the meaning of their answers. No I/O here.
///
/// Revocations are members of one sorted set. The score is the moment of writing by the server's clock, in
/// microseconds, so new members are at the end. The end is read once a second. Each reading overlaps the one before,
/// for writers with a delay or a late clock. The whole set is read at the start, after a loss and every ten minutes,
/// and revocations that Redis then lacks are written again. If the server's clock is not as expected, nothing is
/// confirmed and the whole set is read, because other replicas may have read past that score.
struct RedisRevocations {
    /// Most revocations in one command or answer: 512, 40 KiB.
    static let pageCount = 512
    /// Most members noted for removal: 4,096. Further ones are found again at the next reading of the whole set.
    private static let supersededLimit = 4_096

    /// One group of commands. Their answers are handled together.
    private struct Exchange {
        enum Work {
            /// Writes revocations. The second list holds those with a waiting caller.
            case write([Revocation], [WaitingRevocation])
            case read(Page)
            case remove
        }

        let work: Work
        var commands: [[String]]
        /// The expected time of the server's clock, in microseconds since 1970.
        var serverTime: UInt64 = 0
    }

    private enum Turn: CaseIterable { case write, readNew, readAll, remove }

    /// The position in the sorted set of the next page, and the beginning of the whole reading.
    struct Page {
        var score: UInt64
        /// Members of that score that were already read; 0 unless they filled a page.
        var skipped = 0
        var number = 1
        /// True if the whole set is read, and not only its end.
        let isWhole: Bool
        let beganAt: MonotonicInstant
        /// The beginning by the server's clock, in microseconds since 1970.
        let serverTime: UInt64
    }

    let revocations: Revocations
    private let limits: ReplayLimits
    private let key: String
    /// The server's run and the start of its memory at the last connection.
    private var memory: (identity: String, start: MemoryStart)?
    private var serverClock = ServerClock(milliseconds: 0, at: .never)
    /// The exchange that was sent and has no answer yet.
    private var underWay: Exchange?
    private var turns = Turn.allCases
    private var reading: Page?
    private var news: Page?
    private var nextNews = MonotonicInstant.never
    /// The next reading of the whole set. The first one is due at once.
    private var nextReading = MonotonicInstant(nanoseconds: 0)
    /// The time by the server's clock up to which everything was read.
    private var readThrough: UInt64 = 0
    private var superseded: [Revocation] = []
    private var pause: GrowingPause
    /// The end of the pause after a failure; nothing is sent before.
    private var heldUntil = MonotonicInstant(nanoseconds: 0)
    /// True if an exchange failed and ``ReplayLimits/greatestPause`` has not yet passed without another failure.
    private(set) var isFailing = false

    init(_ revocations: Revocations, limits: ReplayLimits, keys: RedisKeys = RedisKeys(.single)) {
        key = keys.revocations
        self.revocations = revocations
        self.limits = limits
        pause = GrowingPause(limits)
    }

    mutating func begin(_ identity: String, _ start: MemoryStart, _ clock: ServerClock) {
        news = nil
        let isSame = memory.map { $0 == (identity, start) } ?? false
        // A clock that was set back dates new entries before known ones, so everything is read again. Otherwise a
        // reading continues at its position: with a slow server it may take longer than a connection lives.
        if !isSame || !isNear(clock.milliseconds * 1_000, serverTime(at: clock.at)) {
            nextReading = clock.at
            reading = nil
        }
        serverClock = clock
        memory = (identity, start)
        revocations.setLink(isFailing ? .down : .up)
    }

    /// The estimated time of the server's clock now, in microseconds since 1970.
    private func serverTime(at now: MonotonicInstant) -> UInt64 { serverClock.time(at: now) * 1_000 }

    private func isNear(_ time: UInt64, _ other: UInt64) -> Bool {
        max(time, other) - min(time, other) <= limits.clockTolerance.wholeNanoseconds / 1_000
    }

    /// The time at which something becomes due, if nothing happens before.
    func dueAt(_ now: MonotonicInstant) -> MonotonicInstant {
        if underWay != nil { return .never }
        let hasMore = reading != nil || news != nil || !superseded.isEmpty
        return max(heldUntil, hasMore || revocations.hasWork ? now : min(nextNews, nextReading))
    }

    /// The commands to send now. Only one exchange is under way at a time.
    mutating func next(_ now: MonotonicInstant) -> [[String]]? {
        guard underWay == nil, now >= heldUntil else { return nil }
        // The kinds take turns, so that much work of one kind never delays another for long.
        for turn in turns {
            turns.append(turns.removeFirst())
            guard var exchange = exchange(of: turn, now) else { continue }
            exchange.serverTime = serverTime(at: now)
            // TIME comes last, so that it also reveals a delayed write.
            exchange.commands.append(["TIME"])
            underWay = exchange
            return exchange.commands
        }
        return nil
    }

    private mutating func exchange(of turn: Turn, _ now: MonotonicInstant) -> Exchange? {
        switch turn {
        case .write:
            let waiting = revocations.takeWaiting(atMost: Self.pageCount)
            // The revocations that Redis lacks, and those to remove, are known only after the whole set was read.
            let isRead = reading == nil && now < nextReading
            let lacking = isRead ? revocations.lacking(atMost: Self.pageCount - waiting.count) : []
            return write(waiting.map(\.revocation) + lacking, waiting, now)
        case .readNew:
            if news == nil, now >= nextNews {
                let overlap = limits.revocationOverlap.wholeNanoseconds / 1_000
                let score = readThrough - min(overlap, readThrough)
                news = Page(score: score, isWhole: false, beganAt: now, serverTime: serverTime(at: now))
            }
            return news.map(read)
        case .readAll:
            if let reading { return read(reading) }
            guard now >= nextReading else { return nil }
            nextReading = now + limits.revocationReadingPause
            revocations.beginReading()
            let page = Page(score: 0, isWhole: true, beganAt: now, serverTime: serverTime(at: now))
            reading = page
            // The expired members are removed first.
            let lifetime = UInt64(Revocations.lifetimeSeconds) * 1_000_000
            let oldest = page.serverTime - min(lifetime, page.serverTime)
            var exchange = read(page)
            exchange.commands.insert(["ZREMRANGEBYSCORE", key, "-inf", "(\(oldest)"], at: 0)
            return exchange
        case .remove:
            guard reading == nil, !revocations.hasWork else { return nil }
            // Newer revocations of the same logins replaced these members, and are in Redis now.
            let members = revocations.superseded(among: superseded.take(atMost: Self.pageCount)).map(\.member)
            return members.isEmpty ? nil : Exchange(work: .remove, commands: [["ZREM", key] + members])
        }
    }

    private func read(_ page: Page) -> Exchange {
        let range = ["\(page.score)", "+inf", "WITHSCORES", "LIMIT", "\(page.skipped)", "\(Self.pageCount)"]
        return Exchange(work: .read(page), commands: [["ZRANGEBYSCORE", key] + range])
    }

    private func write(_ all: [Revocation], _ waiting: [WaitingRevocation], _ now: MonotonicInstant) -> Exchange? {
        if all.isEmpty { return nil }
        let time = serverTime(at: now)
        var words = ["ZADD", key]
        // Each member gets its own score, so that a reading can continue between two of them.
        for (index, revocation) in all.enumerated() {
            words += ["\(time &+ UInt64(index))", revocation.member]
        }
        return Exchange(work: .write(all, waiting), commands: [words])
    }

    /// Handles the answers to the current exchange. The server's memory must be complete.
    /// - Throws: the reason if the answers are not usable; the caller must then call ``hold(_:)`` or ``abandon()``.
    mutating func finish(_ replies: [RedisReply], _ now: MonotonicInstant) throws(RedisFailure) {
        guard let exchange = underWay else { return }
        for (command, reply) in zip(exchange.commands, replies) {
            _ = try reply.orFailure(of: command[0])
        }
        guard let time = replies.last?.serverMicroseconds else { throw .malformedAnswer }
        guard isNear(time, exchange.serverTime) else {
            serverClock = ServerClock(milliseconds: time / 1_000, at: now)
            nextReading = now
            throw .clockChanged
        }
        let replies = replies.dropLast()
        switch exchange.work {
        case .write(let all, let waiting):
            revocations.confirm(all)
            for one in waiting { one.completion(true) }
        case .remove: break
        case .read(let page):
            let next = try take(replies, page)
            if page.isWhole { reading = next } else { news = next }
            guard next == nil else { break }
            readThrough = page.serverTime
            // The pause begins at the end of a reading, so that a long reading leaves time for other work.
            nextNews = page.isWhole ? now : now + limits.revocationPause
            revocations.didRead(at: page.beganAt, isWhole: page.isWhole)
        }
        underWay = nil
        if isFailing, now >= heldUntil + limits.greatestPause {
            isFailing = false
            pause = GrowingPause(limits)
            revocations.setLink(.up)
        }
    }

    /// The exchange failed but the connection did not. The next exchange waits for a while, and callers do not wait for
    /// it.
    mutating func hold(_ now: MonotonicInstant) {
        abandon()
        news = nil
        if reading != nil { nextReading = now }
        reading = nil
        isFailing = true
        heldUntil = pause.end(from: now)
        revocations.setLink(.down)
    }

    /// Ends the current exchange, if there is one, without an answer.
    mutating func abandon() {
        if case .write(_, let waiting) = underWay?.work { revocations.fail(waiting) }
        underWay = nil
    }

    /// Takes over the members of a page.
    /// - Returns: the next page; nil after the last.
    private mutating func take(_ replies: ArraySlice<RedisReply>, _ page: Page) throws(RedisFailure) -> Page? {
        guard case .array(let parts)? = replies.last, parts.count.isMultiple(of: 2) else { throw .malformedAnswer }
        var found: [Revocation] = []
        var last: (score: Double, member: [UInt8])?
        for index in stride(from: 0, to: parts.count, by: 2) {
            // Members must be in the order of a sorted set, so that every full page makes progress.
            guard case .string(let member) = parts[index], let score = parts[index + 1].text.flatMap({ Double($0) }),
                score >= last?.score ?? -.infinity,
                score > last?.score ?? -.infinity || last?.member.lexicographicallyPrecedes(member) ?? true
            else { throw .malformedAnswer }
            last = (score, member)
            // Members of an unknown form are skipped.
            if let revocation = Revocation(member: member) { found.append(revocation) }
        }
        let old = revocations.merge(found, serverTime: Int64(clamping: page.serverTime / 1_000_000))
        superseded += old.prefix(Self.supersededLimit - superseded.count)
        guard parts.count / 2 == Self.pageCount, let last else { return nil }
        // Twice the number of logins, because the set may also hold members that newer revocations replaced.
        guard page.number * Self.pageCount <= 2 * revocations.sharedCapacity else { throw .tooManyRevocations }
        // The last score is read again. Members may move meanwhile, so a count of members would skip others.
        var next = page
        next.number += 1
        next.score = UInt64(exactly: max(0, last.score).rounded(.down)) ?? .max
        next.skipped = next.score == page.score ? page.skipped + Self.pageCount : 0
        return next
    }
}
