internal import LLSockets

/// One connection to the server: the opening exchange, then questions in batches, several batches at a time.
///
/// Each batch ends with more commands. They ask whether the server's life and the history of its data are still those
/// that this session knows, and whether its clock has jumped ahead; the other answers are accepted only if all is well.
/// Data that were emptied, replaced or forgotten early meanwhile therefore never make a used nonce look new. The check is
/// needed because a connection stays open while its server becomes a replica and then a primary again.
final class RedisSession {
    /// A question and the answers about its first entries. The next entry is sent only after these are good, so that a
    /// refused nonce does not use up the token beside it.
    fileprivate struct Asked {
        let waiting: QueuedLookup
        /// Milliseconds since 1970.
        let sentAt: UInt64
        var answers: [ReplayAnswer] = []
        /// True if the question's time was over first. It was then answered as unavailable.
        var isOver = false

        var next: ReplayEntry? {
            let entries = waiting.question.entries
            return answers.count < entries.count && answers.allSatisfy { $0 == .first } ? entries[answers.count] : nil
        }

        var endsAt: MonotonicInstant { isOver ? .never : waiting.deadline }
    }

    private struct Batch {
        /// The questions with an entry in this batch; empty if the commands are about revocations.
        var asked: [Asked]
        /// The number of answers before those about the server itself.
        let answerCount: Int
        let isAboutRevocations: Bool
        /// True if the batch also asks how full the server's memory is.
        let looksAtMemory: Bool
        /// True if the batch also asks for a key that never exists.
        let looksAtMove: Bool
        var answers: [RedisReply] = []
        /// The commands; empty outside a cluster, because they are sent again only in a cluster.
        let commands: [[[UInt8]]]
        let sentAt: MonotonicInstant
        /// The time at which the first question of the batch is over.
        var endsAt: MonotonicInstant

        /// True if the next answer may be a refusal: a refused command about revocations does not affect any question.
        var bearsRefusal: Bool { isAboutRevocations && answers.count < answerCount }

        /// The number of answers before the one to TIME.
        var timeIndex: Int { answerCount + (looksAtMove ? 2 : 1) }
        /// The number of answers before the last one, which is about the history.
        var firstCount: Int { timeIndex + (looksAtMemory ? 2 : 1) }

        /// True if the server answered itself about a key that it does not have. An owner from which a slot is on its way
        /// has no such answer.
        var showsNoMove: Bool {
            if looksAtMove { return answers[answerCount] == .null }
            return !isAboutRevocations && answers.prefix(answerCount).contains(.status("OK"))
        }

        /// The name of the command to which the next answer belongs; nil among those about revocations.
        var nextCommand: String? {
            if answers.count < answerCount { return isAboutRevocations ? nil : "SET" }
            return answers.count < timeIndex ? "GET" : answers.count == timeIndex ? "TIME" : "INFO"
        }
    }

    /// Questions that had no answer when the slot of the keys went to another node. Those without an answer were not
    /// carried out. The others hold if the new node's memory is a continuation.
    struct Carried {
        fileprivate var asked: [Asked] = []
        let life: RedisMemoryEpoch

        func abandon(now: MonotonicInstant) {
            for question in asked { question.waiting.answer([], now: now) }
        }
    }

    let greeting: RedisGreeting
    let openedAt: MonotonicInstant
    private let channel: RedisChannel
    private let limits: ReplayLimits
    private var batches: [Batch] = []
    /// The room in the server's memory at the last check.
    private var memory: RedisRoom
    /// The answers to the commands about revocations, once all have arrived.
    private var finished: [RedisReply]?
    /// The way to another node while the slot of the keys moves; nil outside a cluster.
    private let detour: RedisDetour?
    /// True if the slot of the keys went to another node. Nothing more is sent then.
    private var isMoved = false
    private var carried: [Asked] = []
    /// The time of the last good answer.
    private(set) var seenAt: MonotonicInstant
    /// The server's clock, as far behind as it ever was during the session.
    private(set) var clock: ServerClock

    init(
        _ channel: RedisChannel,
        _ greeting: RedisGreeting,
        _ detour: RedisDetour? = nil,
        limits: ReplayLimits,
        now: MonotonicInstant
    ) {
        self.channel = channel
        self.greeting = greeting
        self.detour = detour
        seenAt = now
        clock = greeting.clock
        self.limits = limits
        memory = greeting.room
        openedAt = now
    }

    /// The number of questions that may be sent now.
    var room: Int { batches.count < limits.batchesUnderWay && !isMoved ? limits.batchQuestions : 0 }
    var isIdle: Bool { batches.isEmpty }
    /// True if the slot went away and all answers have come.
    var isOver: Bool { isMoved && isIdle }
    var node: RedisNode { channel.node }

    /// The time at which the session fails without an answer; `.never` if no answer is awaited.
    var deadline: MonotonicInstant { batches.first.map { $0.sentAt + limits.answerTimeout } ?? .never }

    /// Sends questions. A question that needs no answer of the server is answered at once.
    func send(_ questions: [QueuedLookup], unixMilliseconds: UInt64, now: MonotonicInstant) throws(RedisFailure) {
        var asked: [Asked] = []
        var looksAtMemory = false
        let present = Self.entryTime(unixMilliseconds, serverTime: greeting.clock.time(at: now))
        for question in questions {
            if question.question.has(.proof) { looksAtMemory = true }
            if question.deadline <= now || question.question.has(.proof) && !memory.isLeftForProofs {
                question.answer([], now: now)
                continue
            }
            let areKnown = question.question.areIssuedSince(
                nonceSince: greeting.completeSince,
                tokenSince: greeting.tokensCompleteSince
            )
            guard !areKnown.contains(false) else {
                question.answer(areKnown.map { $0 ? .first : .olderThanStore }, now: now)
                continue
            }
            asked.append(Asked(waiting: question, sentAt: present))
        }
        // Only one memory check runs at a time; its result is at most as old as the current batches.
        try ask(asked, now, looksAtMemory: looksAtMemory && !batches.contains { $0.looksAtMemory })
    }

    /// The moment from which an entry's lifetime in the server is counted, in milliseconds since 1970. It is the
    /// earlier of this machine's clock and the server's, but at most a day before this machine's. If only this
    /// machine's clock counted and were ahead, an entry would expire before the clock is set back and could be used a
    /// second time.
    static func entryTime(_ unixMilliseconds: UInt64, serverTime: UInt64) -> UInt64 {
        let day: UInt64 = 86_400_000
        return max(min(unixMilliseconds, serverTime), unixMilliseconds - min(unixMilliseconds, day))
    }

    private func ask(_ asked: [Asked], _ now: MonotonicInstant, looksAtMemory: Bool = false) throws(RedisFailure) {
        let commands = asked.compactMap { asked in asked.next.map { words($0, asked.sentAt) } }
        if !commands.isEmpty || looksAtMemory { try send(commands, for: asked, looksAtMemory: looksAtMemory, now) }
    }

    /// Sends commands about revocations. ``takeFinished()`` returns their answers.
    func send(_ commands: [[[UInt8]]], now: MonotonicInstant) throws(RedisFailure) {
        try send(commands, for: nil, now)
    }

    /// - Parameter asked: nil if the commands are about revocations.
    private func send(
        _ commands: [[[UInt8]]],
        for asked: [Asked]?,
        looksAtMemory: Bool = false,
        _ now: MonotonicInstant
    ) throws(RedisFailure) {
        for command in commands { channel.command(command) }
        // A move that begins or is cancelled must be noticed also by a replica that is not asked anything.
        let looksAtMove = asked == nil && detour != nil
        let reads = (looksAtMove ? [greeting.keys.absent] : []) + [greeting.keys.life(of: greeting.life.identity)]
        let last = reads.map { ["GET", $0].map { Array($0.utf8) } }
        for command in last { channel.command(command) }
        channel.command([Array("TIME".utf8)])
        if looksAtMemory { channel.command(["INFO", "memory"].map { Array($0.utf8) }) }
        channel.command(["INFO", "replication"].map { Array($0.utf8) })
        batches.append(
            Batch(
                asked: asked ?? [],
                answerCount: commands.count,
                isAboutRevocations: asked == nil,
                looksAtMemory: looksAtMemory,
                looksAtMove: looksAtMove,
                commands: detour == nil ? [] : commands + last,
                sentAt: now,
                endsAt: asked?.map(\.endsAt).min() ?? .never
            )
        )
        try channel.flush()
    }

    /// The answers to the last commands about revocations. They are returned only once.
    func takeFinished() -> [RedisReply]? {
        defer { finished = nil }
        return finished
    }

    /// The command `SET key 1 PX ms NX`. It is one step in the server, so exactly one of any number of callers
    /// succeeds.
    private func words(_ entry: ReplayEntry, _ now: UInt64) -> [[UInt8]] {
        // At most ten years, because the server refuses a time that overflows; at least one second, because it refuses
        // zero.
        let left = entry.keepUntil > now ? min(entry.keepUntil - now, 315_360_000_000) : 0
        let key = greeting.keys.entry(entry.key)
        let expiry = String(max(left, 1_000))
        return [Array("SET".utf8), key, [UInt8(ascii: "1")], Array("PX".utf8), Array(expiry.utf8), Array("NX".utf8)]
    }

    func receive(now: MonotonicInstant) throws(RedisFailure) {
        try channel.flush()
        try channel.receive()
        while let reply = try channel.next() {
            guard !batches.isEmpty else { throw .malformedAnswer }
            if case .redirect = reply, detour == nil { throw .unsupportedMode("cluster") }
            if case .error(let code) = reply, !batches[0].bearsRefusal {
                throw RedisFailure(code: code, of: batches[0].nextCommand)
            }
            if batches[0].answers.count < batches[0].firstCount {
                batches[0].answers.append(reply)
            } else {
                try finishBatch(reply, now: now)
            }
        }
    }

    private func finishBatch(_ replication: RedisReply, now: MonotonicInstant) throws(RedisFailure) {
        if batches[0].looksAtMemory {
            guard let info = batches[0].answers.removeLast().text else { throw .malformedAnswer }
            memory = RedisRoom(RedisServerFacts.fields(info))
        }
        guard let time = batches[0].answers.removeLast().serverMicroseconds else { throw .malformedAnswer }
        guard let info = replication.text else { throw .malformedAnswer }
        guard try RedisServerFacts.history(info: info) == greeting.history else { throw .memoryLost }
        try note(time / 1_000, now)
        // The slot stayed with the owner, which lacks the entries that the other node accepted.
        if let detour, detour.hasTaken, batches[0].showsNoMove {
            detour.lose()
            throw .memoryLost
        }
        try takeDetour(now)
        if batches[0].answers.contains(.redirect(.moved)) { isMoved = true }
        let life = batches[0].answers.removeLast()
        if batches[0].looksAtMove { batches[0].answers.removeLast() }
        let knowsLife = life != .redirect(.moved)
        guard !knowsLife || RedisMemoryEpoch.Beginning(life) == greeting.life.written else { throw .memoryLost }
        var asked = batches[0].asked
        for (index, reply) in zip(asked.indices, batches[0].answers) where reply != .redirect(.moved) {
            asked[index].answers.append(try Self.answer(reply))
        }
        seenAt = now
        if batches[0].isAboutRevocations, !isMoved { finished = batches[0].answers }
        // The batch is removed before its questions are answered, so that each is answered once or sent again.
        batches.removeFirst()
        asked.removeAll(where: \.isOver)
        guard knowsLife else {
            carried += asked
            return
        }
        try exchange(asked, now)
    }

    /// Takes over the time by the server's clock.
    private func note(_ time: UInt64, _ now: MonotonicInstant) throws(RedisFailure) {
        guard !clock.hasJumped(to: time, at: now, limits) else { throw .clockChanged }
        // Entries that are made while the clock is set back are forgotten early when it is set right. The server read its
        // clock after the question was sent.
        let told = ServerClock(milliseconds: time, at: batches[0].sentAt)
        if told.time(at: now) < clock.time(at: now) { clock = told }
    }

    /// Answers the questions that need no more answers of the server, and sends the next entries of the others.
    private func exchange(_ asked: [Asked], _ now: MonotonicInstant) throws(RedisFailure) {
        var rest = asked
        for question in rest where question.next == nil { question.waiting.answer(question.answers, now: now) }
        rest.removeAll { $0.next == nil }
        for question in rest where question.endsAt <= now { question.waiting.answer([], now: now) }
        rest.removeAll { $0.endsAt <= now }
        if isMoved { carried += rest } else { try ask(rest, now) }
    }

    /// Sends the commands of the first batch that the server did not carry out to the node to which the slot moves.
    /// - Parameter now: the time at which the answers were received. One bound holds for all batches of that time.
    private func takeDetour(_ now: MonotonicInstant) throws(RedisFailure) {
        var places: [Int] = []
        var target: RedisNode?
        for (place, reply) in batches[0].answers.enumerated() {
            guard case .redirect(.ask(let node)) = reply else { continue }
            // A slot is on its way to one node.
            guard target ?? node == node else { throw .loading }
            target = node
            places.append(place)
        }
        guard let target, let detour else { return }
        let commands = batches[0].commands
        let deadline = now + limits.answerTimeout / 2
        let replies = try detour.call(places.map { commands[$0] }, at: target, until: deadline)
        for (place, reply) in zip(places, replies) {
            if case .error(let code) = reply, !batches[0].isAboutRevocations || place >= batches[0].answerCount {
                throw RedisFailure(code: code)
            }
            batches[0].answers[place] = reply
        }
    }

    /// Goes on with the questions of an earlier session.
    func resume(_ carried: Carried, now: MonotonicInstant) throws(RedisFailure) {
        let (life, old) = (greeting.life, carried.life)
        guard life.since == old.since, life.isAfterLoss == old.isAfterLoss else { return carried.abandon(now: now) }
        try exchange(carried.asked, now)
    }

    /// The questions that another session may answer. They are returned only once.
    func takeCarried() -> Carried {
        defer { carried = [] }
        return Carried(asked: carried, life: greeting.life)
    }

    /// Answers the questions with an expired time limit. The server's answers about them come too late.
    private func endQuestions(_ now: MonotonicInstant) {
        for index in batches.indices where batches[index].endsAt <= now {
            for place in batches[index].asked.indices where batches[index].asked[place].endsAt <= now {
                batches[index].asked[place].isOver = true
                batches[index].asked[place].waiting.answer([], now: now)
            }
            batches[index].endsAt = batches[index].asked.map(\.endsAt).min() ?? .never
        }
    }

    private static func answer(_ reply: RedisReply) throws(RedisFailure) -> ReplayAnswer {
        switch reply {
        case .status("OK"): return .first
        case .null: return .seen
        case .error, .redirect, .status, .integer, .string, .array: throw .malformedAnswer
        }
    }

    /// The time at which a question or the whole session is over, if no answer comes before.
    private var nextEnd: MonotonicInstant { batches.reduce(deadline) { min($0, $1.endsAt) } }

    /// Waits until answers may have arrived, the store's signal is given, other work is due, or the deadline passes.
    func wait(until dueAt: MonotonicInstant) throws(RedisFailure) {
        channel.wait(until: min(dueAt, nextEnd))
        try look(now: MonotonicClock.now())
    }

    /// Ends each question with an expired time limit, and the session after its deadline.
    func look(now: MonotonicInstant) throws(RedisFailure) {
        guard now >= nextEnd else { return }
        // The answers may have arrived at the last moment.
        try receive(now: now)
        endQuestions(now)
        if deadline <= now { throw .timedOut }
    }

    /// Ends all questions under way: the server will not answer them.
    func abandon(now: MonotonicInstant) {
        for question in batches.flatMap(\.asked) where !question.isOver { question.waiting.answer([], now: now) }
        for question in carried { question.waiting.answer([], now: now) }
        (batches, carried) = ([], [])
    }
}
