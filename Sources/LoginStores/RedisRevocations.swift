internal import Sockets

/// The way of the revocations to and from Redis: what to send next, and what its answers mean. No I/O here.
///
/// They are members of one sorted set. The score is the moment of the writing by the server's clock, in microseconds, so
/// that what is new is at the end: read once a second, with an overlap for writers whose clock is late or that were
/// held up. Everything is read at the start, after a loss and every ten minutes; what Redis then lacks is written again.
/// The score is reckoned from what the server's clock said when the connection began. Each exchange asks for it again: where
/// the two differ, nothing is confirmed and everything is read, for others may have read past that score.
struct RedisRevocations {
    static let key = Array("limited-login:revocations".utf8)
    /// Most revocations in one command or answer: 512, 40 KiB.
    static let pageCount = 512
    /// Most members noted for removal. 4,096; what is beyond is found again when everything is read.
    private static let supersededLimit = 4_096

    /// One group of commands, whose answers come together.
    private struct Exchange {
        enum Work {
            /// With those of them that somebody waits for.
            case write([Revocation], [WaitingRevocation])
            case readNew(Page)
            case readAll(Page)
            case remove
        }

        let work: Work
        var commands: [[[UInt8]]]
        /// What the server's clock should say, in microseconds since 1970.
        var serverTime: UInt64 = 0
    }

    /// What is due next, if there is anything of its kind.
    private enum Turn: CaseIterable { case write, readNew, readAll, writeBack, remove }

    /// A place in the sorted set from which on a page is read, and when the whole reading began.
    struct Page {
        var score: UInt64
        /// Members of that score that were read already; 0 unless they filled a page.
        var skipped = 0
        /// From 1.
        var number = 1
        let beganAt: MonotonicInstant
        /// The same by the server's clock, in microseconds since 1970.
        let serverTime: UInt64
    }

    /// Where in the own table the search for unwritten entries has come to.
    struct Walk {
        let table: RevocationTable
        var slot = 0
    }

    let revocations: Revocations
    private let limits: ReplayLimits
    private var life: RedisLife?
    /// The server's clock at a moment of ours.
    private var serverClock: (microseconds: UInt64, at: MonotonicInstant) = (0, .never)
    /// What was sent and has no answer yet.
    private var underWay: Exchange?
    private var turns = Turn.allCases
    private var reading: Page?
    private var news: Page?
    private var walk: Walk?
    private var nextNews = MonotonicInstant.never
    /// Due at once: nothing was read yet.
    private var nextReading = MonotonicInstant(nanoseconds: 0)
    /// Up to where everything was read, by the server's clock.
    private var readThrough: UInt64 = 0
    private var superseded: [Revocation] = []
    private var pause: GrowingPause
    /// Until when nothing is sent, after a failure.
    private var heldUntil = MonotonicInstant(nanoseconds: 0)
    /// Whether an exchange has failed, and all is not yet well for ``ReplayLimits/greatestPause``.
    private(set) var isFailing = false

    init(_ revocations: Revocations, limits: ReplayLimits) {
        self.revocations = revocations
        self.limits = limits
        pause = GrowingPause(limits)
    }

    mutating func begin(_ life: RedisLife, serverMilliseconds: UInt64, at now: MonotonicInstant) {
        news = nil
        let time = serverMilliseconds * 1_000
        // A clock that was set back dates what is new before what is known. Otherwise a reading goes on where it was: with a
        // slow server it may take longer than any connection lives.
        if life != self.life || !isNear(time, serverTime(at: now)) {
            nextReading = now
            reading = nil
        }
        serverClock = (time, now)
        self.life = life
        revocations.setLink(isFailing ? .down : .up)
    }

    /// The server's clock now, in microseconds since 1970.
    private func serverTime(at now: MonotonicInstant) -> UInt64 {
        serverClock.microseconds &+ now.nanoseconds(since: serverClock.at) / 1_000
    }

    /// Whether these are one moment of the server's clock.
    private func isNear(_ time: UInt64, _ other: UInt64) -> Bool {
        max(time, other) - min(time, other) <= limits.clockTolerance.wholeNanoseconds / 1_000
    }

    /// Most members in one reading, to the next page. Twice the logins: besides them there is only what newer revocations
    /// of theirs made superfluous.
    private var readingLimit: Int { 2 * revocations.sharedCapacity }

    /// When there is something to send, if nothing happens before.
    func dueAt(_ now: MonotonicInstant) -> MonotonicInstant {
        if underWay != nil { return .never }
        let hasMore = reading != nil || news != nil || walk != nil || !superseded.isEmpty
        return max(heldUntil, hasMore || revocations.hasWork ? now : min(nextNews, nextReading))
    }

    /// The commands to send now; one exchange is under way at a time.
    mutating func next(_ now: MonotonicInstant) -> [[[UInt8]]]? {
        guard underWay == nil, now >= heldUntil, var exchange = nextExchange(now) else { return nil }
        exchange.serverTime = serverTime(at: now)
        // Last, so that a writing that was held up on its way is told by it.
        exchange.commands.append([Array("TIME".utf8)])
        underWay = exchange
        return exchange.commands
    }

    /// The kinds take turns, so that a flood of one never keeps another waiting.
    private mutating func nextExchange(_ now: MonotonicInstant) -> Exchange? {
        for turn in turns {
            turns.append(turns.removeFirst())
            if let exchange = exchange(of: turn, now) { return exchange }
        }
        return nil
    }

    private mutating func exchange(of turn: Turn, _ now: MonotonicInstant) -> Exchange? {
        switch turn {
        case .write:
            let waiting = revocations.takeWaiting(atMost: Self.pageCount)
            return waiting.isEmpty ? nil : write(waiting.map(\.revocation), waiting, now)
        case .readNew:
            if news == nil, now >= nextNews {
                let overlap = limits.revocationOverlap.wholeNanoseconds / 1_000
                news = page(from: readThrough > overlap ? readThrough - overlap : 0, now)
            }
            return news.map { Self.read($0, .readNew($0)) }
        case .readAll:
            if let reading { return Self.read(reading, .readAll(reading)) }
            guard now >= nextReading else { return nil }
            nextReading = now + limits.revocationReadingPause
            revocations.beginReading()
            let page = page(from: 0, now)
            reading = page
            return Self.readFirst(page)
        // What Redis lacks, and what is superfluous there, is known once everything was read.
        case .writeBack: return reading == nil ? writeBack(now) : nil
        case .remove: return reading == nil && walk == nil ? remove() : nil
        }
    }

    private mutating func writeBack(_ now: MonotonicInstant) -> Exchange? {
        let lacking = revocations.lacking(&walk, atMost: Self.pageCount)
        return lacking.isEmpty ? nil : write(lacking, [], now)
    }

    private func page(from score: UInt64, _ now: MonotonicInstant) -> Page {
        Page(score: score, beganAt: now, serverTime: serverTime(at: now))
    }

    private static func read(_ page: Page, _ work: Exchange.Work) -> Exchange {
        let words = ["\(page.score)", "+inf", "WITHSCORES", "LIMIT", "\(page.skipped)", "\(pageCount)"]
        return Exchange(work: work, commands: [command("ZRANGEBYSCORE", words)])
    }

    /// The first page of all, and before it the end of what nobody needs any more.
    private static func readFirst(_ page: Page) -> Exchange {
        let lifetime = UInt64(Revocations.lifetimeSeconds) * 1_000_000
        let oldest = page.serverTime > lifetime ? page.serverTime - lifetime : 0
        var exchange = read(page, .readAll(page))
        exchange.commands.insert(command("ZREMRANGEBYSCORE", ["-inf", "(\(oldest)"]), at: 0)
        return exchange
    }

    private static func command(_ name: String, _ words: [String]) -> [[UInt8]] {
        [Array(name.utf8), key] + words.map { Array($0.utf8) }
    }

    private func write(_ all: [Revocation], _ waiting: [WaitingRevocation], _ now: MonotonicInstant) -> Exchange {
        let time = serverTime(at: now)
        var words = [Array("ZADD".utf8), Self.key]
        // Scores of their own, so that a reading can go on in between.
        for (index, revocation) in all.enumerated() {
            words += [Array("\(time &+ UInt64(index))".utf8), revocation.member]
        }
        return Exchange(work: .write(all, waiting), commands: [words])
    }

    /// What newer revocations of the same logins made superfluous. Not before these are in Redis.
    private mutating func remove() -> Exchange? {
        let members = revocations.superseded(among: superseded.take(atMost: Self.pageCount)).map(\.member)
        return members.isEmpty ? nil : Exchange(work: .remove, commands: [[Array("ZREM".utf8), Self.key] + members])
    }

    /// The answers to the exchange under way have come, and the server's memory is whole.
    /// - Throws: why they are none; then ``hold(_:)`` or ``abandon()`` is called for.
    mutating func finish(_ replies: [RedisReply], _ now: MonotonicInstant) throws(RedisFailure) {
        guard let exchange = underWay else { return }
        for case .error(let code) in replies { throw RedisFailure(code: code) }
        guard let time = replies.last?.serverMicroseconds else { throw .malformedAnswer }
        guard isNear(time, exchange.serverTime) else {
            serverClock = (time, now)
            nextReading = now
            throw .clockChanged
        }
        let replies = replies.dropLast()
        switch exchange.work {
        case .write(let all, let waiting):
            revocations.confirm(all)
            for one in waiting {
                if let replaced = one.replaced { note(replaced) }
                one.completion(.remembered)
            }
        case .remove: break
        case .readNew(let page):
            news = try take(replies, page)
            if news == nil {
                readThrough = page.serverTime
                // From its end: a look that takes long leaves room for the rest.
                nextNews = now + limits.revocationPause
                revocations.didRead(at: page.beganAt)
            }
        case .readAll(let page):
            reading = try take(replies, page)
            if reading == nil {
                readThrough = page.serverTime
                nextNews = now
                walk = Walk(table: revocations.table)
                revocations.didRead(at: page.beganAt)
            }
        }
        underWay = nil
        if isFailing, now >= heldUntil + limits.greatestPause {
            isFailing = false
            pause = GrowingPause(limits)
            revocations.setLink(.up)
        }
    }

    /// The exchange has failed, the connection has not: the next waits for a while, and revocations do not wait for it.
    mutating func hold(_ now: MonotonicInstant) {
        abandon()
        news = nil
        if reading != nil { nextReading = now }
        reading = nil
        isFailing = true
        heldUntil = pause.end(from: now)
        revocations.setLink(.down)
    }

    /// The exchange under way, if there is one, will not be answered.
    mutating func abandon() {
        if case .write(_, let waiting) = underWay?.work { revocations.fail(waiting) }
        underWay = nil
    }

    /// Takes a page over.
    /// - Returns: the next one; nil after the last.
    private mutating func take(_ replies: ArraySlice<RedisReply>, _ page: Page) throws(RedisFailure) -> Page? {
        guard case .array(let parts)? = replies.last, parts.count.isMultiple(of: 2) else { throw .malformedAnswer }
        var found: [Revocation] = []
        var last: (score: Double, member: [UInt8])?
        for index in stride(from: 0, to: parts.count, by: 2) {
            // In the order of a sorted set, so that no page is full without being news.
            guard case .string(let member) = parts[index], let score = parts[index + 1].text.flatMap({ Double($0) }),
                score >= last?.score ?? -.infinity,
                score > last?.score ?? -.infinity || last?.member.lexicographicallyPrecedes(member) ?? true
            else { throw .malformedAnswer }
            last = (score, member)
            // What somebody else put there is passed over.
            if let revocation = Revocation(member: member) { found.append(revocation) }
        }
        for old in revocations.merge(found, serverTime: Int64(clamping: page.serverTime / 1_000_000)) { note(old) }
        guard parts.count / 2 == Self.pageCount, let last else { return nil }
        guard page.number * Self.pageCount <= readingLimit else { throw .tooManyRevocations }
        // The last score is read again: members may be moved meanwhile, so counting them would leave others out.
        var next = page
        next.number += 1
        next.score = UInt64(exactly: max(0, last.score).rounded(.down)) ?? .max
        next.skipped = next.score == page.score ? page.skipped + Self.pageCount : 0
        return next
    }

    private mutating func note(_ old: Revocation) {
        if superseded.count < Self.supersededLimit { superseded.append(old) }
    }
}
