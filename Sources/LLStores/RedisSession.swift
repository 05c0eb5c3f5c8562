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
    private struct Asked {
        let waiting: WaitingQuestion
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
        var answers: [RedisReply] = []
        let sentAt: MonotonicInstant
        /// The time at which the first question of the batch is over.
        var endsAt: MonotonicInstant

        /// True if the next answer may be a refusal: a refused command about revocations does not affect any question.
        var bearsRefusal: Bool { isAboutRevocations && answers.count < answerCount }

        /// The number of answers before the last one, which is about the history.
        var firstCount: Int { answerCount + (looksAtMemory ? 3 : 2) }
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

    init(_ channel: RedisChannel, _ greeting: RedisGreeting, limits: ReplayLimits, now: MonotonicInstant) {
        self.channel = channel
        self.greeting = greeting
        self.limits = limits
        memory = greeting.room
        openedAt = now
    }

    /// The number of questions that may be sent now.
    var room: Int { batches.count < limits.batchesUnderWay ? limits.batchQuestions : 0 }
    var isIdle: Bool { batches.isEmpty }

    /// The time at which the session fails without an answer; `.never` if no answer is awaited.
    var deadline: MonotonicInstant { batches.first.map { $0.sentAt + limits.answerTimeout } ?? .never }

    /// Sends questions. A question that needs no answer of the server is answered at once.
    func send(_ questions: [WaitingQuestion], unixMilliseconds: UInt64, now: MonotonicInstant) throws(RedisFailure) {
        var asked: [Asked] = []
        var looksAtMemory = false
        let present = Self.entryTime(unixMilliseconds, serverTime: greeting.clock.time(at: now))
        for question in questions {
            if question.question.has(.proof) { looksAtMemory = true }
            if question.deadline <= now || question.question.has(.proof) && !memory.isLeftForProofs {
                question.answer([], now: now)
                continue
            }
            let areKnown = question.question.areBorn(
                nonceSince: greeting.vouchesSince,
                tokenSince: greeting.vouchesForTokensSince
            )
            guard !areKnown.contains(false) else {
                question.answer(areKnown.map { $0 ? .first : .beyondMemory }, now: now)
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
        let commands = asked.compactMap { asked in asked.next.map { Self.words($0, asked.sentAt) } }
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
        channel.command(["GET", greeting.life.key].map { Array($0.utf8) })
        channel.command([Array("TIME".utf8)])
        if looksAtMemory { channel.command(["INFO", "memory"].map { Array($0.utf8) }) }
        channel.command(["INFO", "replication"].map { Array($0.utf8) })
        batches.append(
            Batch(
                asked: asked ?? [],
                answerCount: commands.count,
                isAboutRevocations: asked == nil,
                looksAtMemory: looksAtMemory,
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
    private static func words(_ entry: ReplayEntry, _ now: UInt64) -> [[UInt8]] {
        // At most ten years, because the server refuses a time that overflows; at least one second, because it refuses
        // zero.
        let left = entry.keepUntil > now ? min(entry.keepUntil - now, 315_360_000_000) : 0
        let key = Array(RedisLife.prefix.utf8) + entry.key.hexadecimal
        let expiry = String(max(left, 1_000))
        return [Array("SET".utf8), key, [UInt8(ascii: "1")], Array("PX".utf8), Array(expiry.utf8), Array("NX".utf8)]
    }

    func receive(now: MonotonicInstant) throws(RedisFailure) {
        try channel.flush()
        try channel.receive()
        while let reply = try channel.next() {
            guard !batches.isEmpty else { throw .malformedAnswer }
            if case .error(let code) = reply, !batches[0].bearsRefusal { throw RedisFailure(code: code) }
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
        let life = RedisLife.Beginning(batches[0].answers.removeLast())
        guard let info = replication.text else { throw .malformedAnswer }
        guard try RedisServerFacts.history(info: info) == greeting.history, life == greeting.life.written else {
            throw .memoryLost
        }
        guard !greeting.clock.hasJumped(to: time / 1_000, at: now, limits) else { throw .clockChanged }
        var asked = batches[0].asked
        for (index, reply) in zip(asked.indices, batches[0].answers) {
            asked[index].answers.append(try Self.answer(reply))
        }
        if batches[0].isAboutRevocations { finished = batches[0].answers }
        // The batch is removed before its questions are answered, so that each is answered once or sent again.
        batches.removeFirst()
        asked.removeAll(where: \.isOver)
        for question in asked where question.next == nil { question.waiting.answer(question.answers, now: now) }
        asked.removeAll { $0.next == nil }
        for question in asked where question.endsAt <= now { question.waiting.answer([], now: now) }
        try ask(asked.filter { $0.endsAt > now }, now)
    }

    /// Answers the questions whose own time is over. The server's answers about them come too late.
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
        case .error, .status, .integer, .string, .array: throw .malformedAnswer
        }
    }

    /// Waits until answers may have arrived, the store's signal is given, other work is due, or the deadline passes.
    func wait(until dueAt: MonotonicInstant) throws(RedisFailure) {
        let end = batches.reduce(deadline) { min($0, $1.endsAt) }
        channel.wait(until: min(dueAt, end))
        let now = MonotonicClock.now()
        if now >= end {
            // The answers may have arrived at the last moment.
            try receive(now: now)
            endQuestions(now)
            if deadline <= MonotonicClock.now() { throw .timedOut }
        }
    }

    /// Ends all questions under way: the server will not answer them.
    func abandon(now: MonotonicInstant) {
        for question in batches.flatMap(\.asked) where !question.isOver { question.waiting.answer([], now: now) }
        batches = []
    }
}

/// Sends commands and receives answers over one connection.
final class RedisChannel {
    private let stream: ClientStream
    private let signal: WakeSignal
    private var reader = RESPReader()
    private var output: [UInt8] = []
    private var sent = 0
    private var input = [UInt8](repeating: 0, count: 16_384)

    /// - Parameter signal: ends waits from other threads.
    init(_ stream: ClientStream, _ signal: WakeSignal) {
        self.stream = stream
        self.signal = signal
    }

    func command(_ words: [[UInt8]]) { RESPCommand.append(words, to: &output) }

    /// Sends as many bytes as the connection accepts now.
    func flush() throws(RedisFailure) {
        do throws(StreamError) {
            while sent < output.count {
                guard case .bytes(let count) = try stream.send(output, from: sent) else { return }
                sent += count
            }
        } catch {
            throw RedisFailure(error)
        }
        output.removeAll(keepingCapacity: output.capacity <= 262_144)
        sent = 0
    }

    /// Takes the received bytes, at most as many as the longest answer. The next wait reports any more.
    func receive() throws(RedisFailure) {
        do throws(StreamError) {
            while reader.waitingCount < RESPLimits.answerBytes {
                let count: Int
                switch try stream.receive(into: &input) {
                case .bytes(let received): count = received
                case .wouldBlock: return
                case .endOfStream: throw .closed
                }
                reader.feed(input, count: count)
                // A short read means that the socket is empty.
                if count < input.count { return }
            }
        } catch {
            throw RedisFailure(error)
        }
    }

    func next() throws(RedisFailure) -> RedisReply? { try reader.next() }

    /// Waits until the connection is ready, the signal is given, or the deadline passes.
    func wait(until deadline: MonotonicInstant) {
        if stream.wait(or: signal, until: deadline) == .signal { signal.take() }
    }

    func call(_ words: [[UInt8]], until deadline: MonotonicInstant) throws(RedisFailure) -> RedisReply {
        command(words)
        while true {
            try flush()
            try receive()
            if let reply = try next() { return reply }
            guard MonotonicClock.now() < deadline else { throw .timedOut }
            wait(until: deadline)
        }
    }
}
