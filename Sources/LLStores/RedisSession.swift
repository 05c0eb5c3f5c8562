internal import LLHTTP

/// One connection to the server: questions in batches, several batches at a time.
///
/// Each batch ends with more commands. They ask whether the start of the server's memory and the history of its data
/// are still those that this session knows, and whether its clock has jumped ahead; the other answers are accepted only
/// if all is well. Data that were emptied, replaced or forgotten early meanwhile therefore never make a used nonce look
/// new. The check is needed because a connection stays open while its server becomes a replica and then a primary again.
final class RedisSession {
    /// A question and the answers about its first entries. The next entry is sent only after these are good, so that a
    /// refused nonce does not use up the token beside it.
    private struct Asked {
        let lookup: QueuedLookup
        /// Milliseconds since 1970.
        let sentAt: UInt64
        var answers: [ReplayAnswer] = []

        var next: ReplayEntry? {
            let entries = lookup.question.entries
            return answers.count < entries.count && answers.allSatisfy { $0 == .first } ? entries[answers.count] : nil
        }
    }

    private struct Batch {
        /// The questions with an entry in this batch; nil if the commands are about revocations.
        var asked: [Asked]?
        /// The number of answers before those about the server itself.
        let answerCount: Int
        /// The names of the commands about the server itself.
        let checks: [String]
        let sentAt: MonotonicInstant
        var answers: [RedisReply] = []

        var isWhole: Bool { answers.count == answerCount + checks.count }
        var looksAtMemory: Bool { checks.contains(Batch.memory) }
        /// The name of the command to which the next answer belongs; nil among those about revocations. A refused
        /// command about revocations does not affect any question.
        var nextCommand: String? {
            answers.count < answerCount ? asked.map { _ in "SET" } : checks[answers.count - answerCount]
        }

        static let memory = "INFO memory"
    }

    let handshake: RedisHandshake
    let openedAt: MonotonicInstant
    private let channel: RedisChannel
    private let limits: ReplayLimits
    private var batches: [Batch] = []
    /// The room in the server's memory at the last check.
    private var memory: RedisRoom
    /// The answers to the commands about revocations, once all have arrived.
    private var finished: [RedisReply]?
    /// The time of the last good answer.
    private(set) var answeredAt: MonotonicInstant
    /// The server's clock, as far behind as it ever was during the session.
    private(set) var clock: ServerClock

    init(_ channel: RedisChannel, _ handshake: RedisHandshake, limits: ReplayLimits, now: MonotonicInstant) {
        self.channel = channel
        self.handshake = handshake
        self.limits = limits
        (openedAt, answeredAt) = (now, now)
        clock = handshake.clock
        memory = handshake.room
    }

    /// The number of questions that may be sent now.
    var room: Int { batches.count < limits.batchesUnderWay ? limits.batchQuestions : 0 }
    var isIdle: Bool { batches.isEmpty }
    var node: RedisNode { channel.node }

    /// The time at which the session fails without an answer; `.never` if no answer is awaited.
    var deadline: MonotonicInstant { batches.first.map { $0.sentAt + limits.answerTimeout } ?? .never }

    // MARK: Sending

    /// Sends questions. A question that needs no answer of the server is answered at once.
    func send(_ questions: [QueuedLookup], unixMilliseconds: UInt64, now: MonotonicInstant) throws(RedisFailure) {
        let start = handshake.start
        let present = Self.entryTime(unixMilliseconds, serverTime: handshake.clock.time(at: now))
        var asked: [Asked] = []
        var looksAtMemory = false
        for lookup in questions {
            let isProof = lookup.question.has(.proof)
            looksAtMemory = looksAtMemory || isProof
            let areKnown = lookup.question.areIssuedSince(
                nonceSince: start.completeSince,
                tokenSince: start.isAfterLoss ? start.completeSince : 0
            )
            if isProof, !memory.isLeftForProofs {
                lookup.answer([], now: now)
            } else if areKnown.contains(false) {
                lookup.answer(areKnown.map { $0 ? .first : .olderThanStore }, now: now)
            } else {
                asked.append(Asked(lookup: lookup, sentAt: present))
            }
        }
        // Only one memory check runs at a time; its result is at most as old as the current batches.
        try ask(asked, now, looksAtMemory: looksAtMemory && !batches.contains(where: \.looksAtMemory))
    }

    /// The moment from which an entry's lifetime in the server is counted, in milliseconds since 1970. It is the
    /// earlier of this machine's clock and the server's, but at most a day before this machine's. If only this
    /// machine's clock counted and were ahead, an entry would expire before the clock is set back and could be used a
    /// second time.
    static func entryTime(_ unixMilliseconds: UInt64, serverTime: UInt64) -> UInt64 {
        let day: UInt64 = 86_400_000
        return max(min(unixMilliseconds, serverTime), unixMilliseconds - min(unixMilliseconds, day))
    }

    /// Answers the questions that need no more answers of the server, and sends the next entries of the others.
    private func ask(_ all: [Asked], _ now: MonotonicInstant, looksAtMemory: Bool = false) throws(RedisFailure) {
        var asked: [Asked] = []
        var commands: [[[UInt8]]] = []
        for one in all {
            if one.next != nil, one.lookup.deadline <= now {
                one.lookup.answer([], now: now)
            } else if let next = one.next {
                asked.append(one)
                commands.append(words(next, one.sentAt))
            } else {
                one.lookup.answer(one.answers, now: now)
            }
        }
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
        let keys = handshake.keys
        // The owner of a slot that moves has no answer about a missing key.
        var checks = handshake.isInCluster ? ["GET \(keys.absent)"] : []
        checks += ["GET \(keys.run(handshake.identity))", "TIME"]
        if looksAtMemory { checks.append(Batch.memory) }
        checks.append("INFO replication")
        for command in commands { channel.command(command) }
        for check in checks { channel.command(check.split(separator: " ").map { Array($0.utf8) }) }
        batches.append(Batch(asked: asked, answerCount: commands.count, checks: checks, sentAt: now))
        try channel.flush()
    }

    /// The command `SET key 1 PX ms NX`. It is one step in the server, so exactly one of any number of callers
    /// succeeds.
    private func words(_ entry: ReplayEntry, _ now: UInt64) -> [[UInt8]] {
        // At most ten years, because the server refuses a time that overflows; at least one second, because it refuses
        // zero.
        let left = entry.keepUntil > now ? min(entry.keepUntil - now, 315_360_000_000) : 0
        let key = handshake.keys.entry(entry.key)
        let expiry = String(max(left, 1_000))
        return [Array("SET".utf8), key, [UInt8(ascii: "1")], Array("PX".utf8), Array(expiry.utf8), Array("NX".utf8)]
    }

    // MARK: Receiving

    /// Handles the answers that have arrived.
    /// - Throws: also if the slot of the keys went to another node or is on its way to one.
    func receive(now: MonotonicInstant) throws(RedisFailure) {
        try channel.flush()
        try channel.receive()
        while let reply = try channel.next() {
            guard !batches.isEmpty else { throw .malformedAnswer }
            if case .redirect(let redirect) = reply, !handshake.isInCluster {
                throw RedisFailure(redirect, isInCluster: false, at: node)
            }
            if case .error(let code) = reply, let command = batches[0].nextCommand {
                throw RedisFailure(code: code, of: command.split(separator: " ").first.map { String($0) })
            }
            batches[0].answers.append(reply)
            if batches[0].isWhole { try finish(batches[0], now) }
        }
    }

    private func finish(_ batch: Batch, _ now: MonotonicInstant) throws(RedisFailure) {
        var isWholeMemory = true
        for (check, reply) in zip(batch.checks, batch.answers.dropFirst(batch.answerCount)) {
            if try !holds(check, reply, batch, now) { isWholeMemory = false }
        }
        let answers = batch.answers.prefix(batch.answerCount)
        var asked = batch.asked ?? []
        for (index, reply) in zip(asked.indices, answers) {
            if let answer = try Self.answer(reply) { asked[index].answers.append(answer) }
        }
        let redirect = batch.answers.compactMap { if case .redirect(let redirect) = $0 { redirect } else { nil } }.first
        guard let redirect else {
            if batch.asked == nil { finished = Array(answers) }
            answeredAt = now
            // The batch is removed before its questions are answered, so that each is answered once.
            batches.removeFirst()
            return try ask(asked, now)
        }
        // The answers that the owner gave itself hold, if its memory was whole afterwards.
        if isWholeMemory {
            batches.removeFirst()
            for one in asked { one.lookup.answer(one.next == nil ? one.answers : [], now: now) }
        }
        throw RedisFailure(redirect, isInCluster: true, at: node)
    }

    /// Handles the answer to a command about the server itself.
    /// - Returns: False if another node has the answer.
    private func holds(
        _ check: String,
        _ reply: RedisReply,
        _ batch: Batch,
        _ now: MonotonicInstant
    ) throws(RedisFailure) -> Bool {
        switch check {
        case "TIME":
            guard let time = reply.serverMicroseconds else { throw .malformedAnswer }
            try note(ServerClock(milliseconds: time / 1_000, at: batch.sentAt), now)
        case Batch.memory:
            guard let info = reply.text else { throw .malformedAnswer }
            memory = RedisRoom(RedisServerFacts.fields(info))
        case "INFO replication":
            guard let info = reply.text else { throw .malformedAnswer }
            guard try RedisServerFacts.history(info: info) == handshake.history else { throw .memoryLost }
        default:
            if case .redirect = reply { return false }
            let isAbsent = check.hasSuffix(handshake.keys.absent)
            guard isAbsent ? reply == .null : MemoryStart(reply) == handshake.start else { throw .memoryLost }
        }
        return true
    }

    /// Takes over the server's clock. Entries that are made while it is set back are forgotten early when it is set
    /// right. The server read its clock after the question was sent.
    private func note(_ reported: ServerClock, _ now: MonotonicInstant) throws(RedisFailure) {
        guard !clock.hasJumped(to: reported.milliseconds, at: now, limits) else { throw .clockChanged }
        if reported.time(at: now) < clock.time(at: now) { clock = reported }
    }

    /// The answer about an entry; nil if another node has it.
    private static func answer(_ reply: RedisReply) throws(RedisFailure) -> ReplayAnswer? {
        switch reply {
        case .status("OK"): return .first
        case .null: return .seen
        case .redirect: return nil
        case .error, .status, .integer, .string, .array: throw .malformedAnswer
        }
    }

    /// The answers to the last commands about revocations. They are returned only once.
    func takeFinished() -> [RedisReply]? { finished.take() }

    /// Waits until answers may have arrived, the store's signal is given, other work is due, or the deadline passes.
    func wait(until dueAt: MonotonicInstant) throws(RedisFailure) {
        channel.wait(until: min(dueAt, deadline))
        try requireInTime(MonotonicClock.now())
    }

    func requireInTime(_ now: MonotonicInstant) throws(RedisFailure) {
        guard now >= deadline else { return }
        // The answers may have arrived at the last moment.
        try receive(now: now)
        if deadline <= now { throw .timedOut }
    }

    /// Ends all questions under way: the server will not answer them.
    func abandon(now: MonotonicInstant) {
        for one in batches.flatMap({ $0.asked ?? [] }) { one.lookup.answer([], now: now) }
        batches = []
    }
}
