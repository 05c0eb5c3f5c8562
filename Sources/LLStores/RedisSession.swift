internal import LLHTTP

/// A question on its way through the store.
struct QueuedLookup: Sendable {
    let question: ReplayLookup
    let deadline: MonotonicInstant
    let completion: @Sendable (ReplayVerdict) -> Void
    /// The moment from which lifetimes in the server are counted, in milliseconds since 1970.
    var sentAt: UInt64 = 0
    /// The answers about the first entries. The next entry is sent only after these are good, so that a refused nonce does
    /// not use up the token beside it.
    var answers: [ReplayAnswer] = []

    var next: ReplayEntry? {
        let entries = question.entries
        return answers.count < entries.count && answers.allSatisfy { $0 == .first } ? entries[answers.count] : nil
    }

    /// Gives the answer, once: unavailable if there are too few answers.
    func finish() { completion(question.verdict(of: answers)) }
}

/// One connection to the server: questions in batches, several batches at a time. Each batch ends with
/// ``RedisMemory/checks``.
final class RedisSession {
    private struct Batch {
        /// The questions with an entry in this batch; nil if the commands are about revocations.
        var asked: [QueuedLookup]?
        /// The number of answers before those about the server itself.
        let answerCount: Int
        /// True if the first command about the server itself asks for its memory.
        let looksAtRoom: Bool
        /// The commands about the server itself.
        let checks: [[String]]
        let sentAt: MonotonicInstant
        var answers: [RedisReply] = []

        var isWhole: Bool { answers.count == answerCount + checks.count }
        /// The name of the command to which the next answer belongs; nil among those about revocations. A refused
        /// command about revocations does not affect any question.
        var nextCommand: String? {
            answers.count < answerCount ? asked.map { _ in "SET" } : checks[answers.count - answerCount][0]
        }
    }

    let openedAt: MonotonicInstant
    private(set) var memory: RedisMemory
    let channel: RedisChannel
    private let limits: ReplayLimits
    private var batches: [Batch] = []
    /// The room in the server's memory at the last check.
    private var hasRoomForProofs: Bool
    /// The answers to the commands about revocations, once all have arrived, until they are taken.
    var finished: [RedisReply]?

    /// Checks the server, and agrees with the other replicas on the start of its memory. The facts that `memory`
    /// learns are kept even if the exchange fails.
    init(
        over found: RedisFinder.Found,
        _ memory: inout RedisMemory,
        limits: ReplayLimits,
        until deadline: MonotonicInstant
    ) throws(RedisFailure) {
        let channel = found.channel
        (self.channel, self.limits) = (channel, limits)
        func ask(_ words: [String]) throws(RedisFailure) -> RedisReply {
            try channel.call(words, until: deadline).orFailure(of: words[0])
        }
        let facts = try RedisServerFacts(info: try channel.info(until: deadline), isInCluster: memory.isInCluster)
        hasRoomForProofs = facts.hasRoomForProofs
        // The owner of a slot that moves has no answer about a missing key.
        if memory.isInCluster { _ = try ask(["GET", memory.keys.absent]) }
        guard let time = try ask(["TIME"]).serverMicroseconds else { throw .malformedAnswer }
        openedAt = MonotonicClock.now()
        var meeting = RedisMemory.Meeting(
            node: channel.node,
            facts: facts,
            handedOverBy: found.handedOverBy,
            clock: ServerClock(milliseconds: time / 1_000, at: openedAt),
            unixMilliseconds: WallClock.unixMilliseconds()
        )
        if memory.last?.known.identity != facts.identity, facts.appendsToFile, facts.history == nil {
            // The server may refuse to report the setting.
            let reply = try channel.call(["CONFIG", "GET", "appendfsync"], until: deadline)
            meeting.writesThrough = reply.elements?.last?.text == "always"
        }
        try memory.meet(meeting, ask: ask)
        // Checks that the server accepts writes, before the first login needs them.
        guard case .status("OK") = try ask(["SET", memory.keys.probe, "1", "PX", "60000"]) else {
            throw .malformedAnswer
        }
        self.memory = memory
    }

    /// The number of questions that may be sent now.
    var room: Int { batches.count < limits.batchesUnderWay ? limits.batchQuestions : 0 }
    var isIdle: Bool { batches.isEmpty }

    /// The time at which the session fails without an answer; `.never` if no answer is awaited.
    var deadline: MonotonicInstant { batches.first.map { $0.sentAt + limits.answerTimeout } ?? .never }

    // MARK: Sending

    /// Sends questions. A question that needs no answer of the server is answered at once.
    func send(_ questions: [QueuedLookup], now: MonotonicInstant) throws(RedisFailure) {
        guard let last = memory.last else { return }
        let unixMilliseconds = WallClock.unixMilliseconds()
        let present = Self.entryTime(unixMilliseconds, serverTime: last.clock.time(at: now))
        var asked: [QueuedLookup] = []
        var looksAtRoom = false
        for var lookup in questions {
            let isProof = lookup.question.has(.proof)
            looksAtRoom = looksAtRoom || isProof
            let answers = lookup.question.entries.map { memory.answer(about: $0, now: unixMilliseconds) }
            if answers.contains(where: { $0 != nil }) { lookup.answers = answers.map { $0 ?? .first } }
            if isProof, !hasRoomForProofs { lookup.answers = [.unavailable] }
            lookup.sentAt = present
            asked.append(lookup)
        }
        // Only one look at the room runs at a time; its result is at most as old as the current batches.
        try ask(asked, now, looksAtRoom: looksAtRoom && !batches.contains(where: \.looksAtRoom))
    }

    /// The moment from which an entry's lifetime in the server is counted, in milliseconds since 1970: by the earlier of
    /// this machine's clock and the server's, but at most a day before this machine's. If that alone counted and were
    /// ahead, an entry would expire before the clock is set back and could be used a second time.
    static func entryTime(_ unixMilliseconds: UInt64, serverTime: UInt64) -> UInt64 {
        let day: UInt64 = 86_400_000
        return max(min(unixMilliseconds, serverTime), unixMilliseconds - min(unixMilliseconds, day))
    }

    /// Answers the questions that need no more answers of the server, and sends the next entries of the others.
    private func ask(_ all: [QueuedLookup], _ now: MonotonicInstant, looksAtRoom: Bool = false) throws(RedisFailure) {
        var asked: [QueuedLookup] = []
        var commands: [[String]] = []
        for lookup in all {
            guard let next = lookup.next, now < lookup.deadline else {
                lookup.finish()
                continue
            }
            asked.append(lookup)
            commands.append(command(next, lookup.sentAt))
        }
        if !commands.isEmpty || looksAtRoom { try send(commands, for: asked, looksAtRoom: looksAtRoom, now: now) }
    }

    /// Sends commands about questions, or about revocations: ``finished`` has the answers to those.
    func send(
        _ commands: [[String]],
        for asked: [QueuedLookup]? = nil,
        looksAtRoom: Bool = false,
        now: MonotonicInstant
    ) throws(RedisFailure) {
        let (count, checks) = (commands.count, (looksAtRoom ? [["INFO", "memory"]] : []) + memory.checks)
        for command in commands + checks { channel.command(command) }
        batches.append(Batch(asked: asked, answerCount: count, looksAtRoom: looksAtRoom, checks: checks, sentAt: now))
        try channel.flush()
    }

    /// The command `SET key 1 PX ms NX`. It is one step in the server, so exactly one of any number of callers
    /// succeeds.
    private func command(_ entry: ReplayEntry, _ now: UInt64) -> [String] {
        // At most ten years, because the server refuses a time that overflows; at least one second, because it refuses
        // zero.
        let left = entry.keepUntil > now ? min(entry.keepUntil - now, 315_360_000_000) : 0
        return ["SET", memory.keys.entry(entry.key), "1", "PX", String(max(left, 1_000)), "NX"]
    }

    // MARK: Receiving

    /// Handles the answers that have arrived.
    /// - Throws: also if the slot of the keys went to another node or is on its way to one.
    func receive(now: MonotonicInstant) throws(RedisFailure) {
        try channel.flush()
        try channel.receive()
        while let reply = try channel.next() {
            guard !batches.isEmpty else { throw .malformedAnswer }
            if case .error(let code) = reply, let command = batches[0].nextCommand {
                throw RedisFailure(code: code, of: command)
            }
            batches[0].answers.append(reply)
            if batches[0].isWhole { try finish(batches[0], now) }
        }
    }

    private func finish(_ batch: Batch, _ now: MonotonicInstant) throws(RedisFailure) {
        let checked = batch.answers.suffix(memory.checks.count)
        if let failure = checked.lazy.compactMap(\.redirection).first { throw failure }
        let present = WallClock.unixMilliseconds()
        try memory.check(batch.answers, sentAt: batch.sentAt, now: now, unixMilliseconds: present)
        if batch.looksAtRoom {
            guard let info = batch.answers[batch.answerCount].text else { throw .malformedAnswer }
            hasRoomForProofs = RedisServerFacts.hasRoomForProofs(RedisServerFacts.fields(info))
        }
        let answers = batch.answers.prefix(batch.answerCount)
        var asked = batch.asked ?? []
        for (index, reply) in zip(asked.indices, answers) {
            switch reply {
            case .status("OK"): asked[index].answers.append(.first)
            case .null: asked[index].answers.append(.seen)
            // Another node has it.
            case .redirect: break
            case .error, .status, .integer, .string, .array: throw .malformedAnswer
            }
        }
        // The batch is removed before its questions are answered, so that each is answered once.
        batches.removeFirst()
        if let failure = answers.lazy.compactMap(\.redirection).first {
            // The answers that the owner gave itself hold, because its memory was whole afterwards.
            for lookup in asked { lookup.finish() }
            throw failure
        }
        if batch.asked == nil { finished = Array(answers) }
        try ask(asked, now)
    }

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
    func abandon() {
        for lookup in batches.flatMap({ $0.asked ?? [] }) { lookup.finish() }
        batches = []
    }
}
