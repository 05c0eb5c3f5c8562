internal import LLHTTP

/// The exchange that opens a connection. It checks the server, and reads and writes the start of its memory.
struct RedisHandshake {
    /// The server's run and history.
    let identity: String
    /// The same as ``RedisServerFacts/history``.
    let history: String?
    let start: MemoryStart
    /// The server's clock at the time of the exchange.
    let clock: ServerClock
    let room: RedisRoom
    let keys: RedisKeys
    let isInCluster: Bool

    /// This process's knowledge from before the connection.
    struct Context {
        var last: RedisLastServer?
        /// The same as ``RedisFinder/Found/handedOverBy``.
        var handedOverBy: String?
        var slotMove: SlotMove?
    }

    /// - Parameters:
    ///   - channel: a connection over which the credentials were sent.
    ///   - deadline: the latest end of the whole exchange.
    /// - Throws: ``RedisFailure/slotMoves(to:)`` while the slot of the keys is on its way to another node.
    init(
        over channel: RedisChannel,
        _ configuration: RedisReplayStore.Configuration,
        _ context: Context = Context(),
        until deadline: MonotonicInstant
    ) throws(RedisFailure) {
        isInCluster = configuration.url.kind == .cluster
        keys = RedisKeys(configuration.url.kind)
        let facts = try RedisServerFacts(info: try channel.info(until: deadline), isInCluster: isInCluster)
        (identity, history, room) = (facts.identity, facts.history, facts.room)
        let talk = Talk(
            channel: channel,
            keys: keys,
            isInCluster: isInCluster,
            facts: facts,
            context: context,
            deadline: deadline
        )
        // The owner of a slot that moves has no answer about a missing key.
        if isInCluster { _ = try talk.ask("GET", keys.absent) }
        guard let time = try talk.ask("TIME").serverMicroseconds else { throw .malformedAnswer }
        clock = ServerClock(milliseconds: time / 1_000, at: MonotonicClock.now())
        start = try talk.agree(on: clock, configuration.limits)
        // Checks that the server accepts writes, before the first login needs them.
        guard case .status("OK") = try talk.ask("SET", keys.probe, "1", "PX", "60000") else { throw .malformedAnswer }
    }

    private struct Talk {
        let channel: RedisChannel
        let keys: RedisKeys
        let isInCluster: Bool
        let facts: RedisServerFacts
        let context: Context
        let deadline: MonotonicInstant

        func ask(_ words: String...) throws(RedisFailure) -> RedisReply {
            let reply = try channel.call(words.map { Array($0.utf8) }, until: deadline)
            return try reply.orFailure(of: words[0], isInCluster: isInCluster, at: channel.node)
        }

        /// Reads and judges the keys, and writes until they tell the judgement.
        /// - Returns: the start on which all replicas agree.
        func agree(on clock: ServerClock, _ limits: ReplayLimits) throws(RedisFailure) -> MemoryStart {
            let (last, run) = (context.last, keys.run(facts.identity))
            let moved = moved(clock.at)
            var reported = try reported(clock, limits)
            var isSecondLook = false
            for _ in 0..<5 {
                if let last { reported.last = Self.lastRun(try ask("GET", keys.run(last.known.identity))) }
                let found = try ask("GET", run)
                reported.run = MemoryStart(found)
                reported.data = MemoryStart(try ask("GET", keys.data))
                switch MemoryJudgement.judge(known: last?.known, reported: reported, moved: moved) {
                case .continues(let start):
                    if reported.data != start {
                        _ = try ask("SET", keys.data, start.text)
                        // The server may drop the name of its history later.
                        if facts.history != nil { _ = try ask("SET", keys.run(facts.runID), start.text) }
                    }
                    return start
                case .movedIntact(let start):
                    try write(start, to: run, isNew: found == .null)
                    if let last { _ = try ask("SET", keys.run(last.known.identity), RedisKeys.movedMark) }
                case .lost(let start):
                    // Another replica may know better, and be about to write.
                    if isSecondLook { try write(start, to: run, isNew: found == .null) }
                    isSecondLook = true
                }
            }
            throw .memoryLost
        }

        /// Of several replicas that see a new run at once, one writes the key.
        private func write(_ start: MemoryStart, to key: String, isNew: Bool) throws(RedisFailure) {
            _ = isNew ? try ask("SET", key, start.text, "NX") : try ask("SET", key, start.text)
        }

        /// The facts that are not in keys.
        private func reported(_ clock: ServerClock, _ limits: ReplayLimits) throws(RedisFailure)
            -> MemoryJudgement.Reported
        {
            let (last, ours) = (context.last, WallClock.unixMilliseconds())
            // Another server's clock may differ.
            let isSame = last?.node == channel.node || last?.known.identity == facts.identity
            let before = isSame ? last?.clock : nil
            let hasJumped = before?.hasJumped(to: clock.milliseconds, at: clock.at, limits) ?? false
            let serverTime = hasJumped ? before?.time(at: clock.at) ?? 0 : clock.milliseconds
            return MemoryJudgement.Reported(
                identity: facts.identity,
                runID: facts.runID,
                hasOwnData: facts.history == nil,
                writesThrough: last?.known.identity == facts.identity ? false : try writesThrough(),
                hasJumped: hasJumped,
                now: max(ours, serverTime)
            )
        }

        private func moved(_ now: MonotonicInstant) -> MemoryJudgement.Move {
            let hasOwnData = facts.history == nil
            if let move = context.slotMove,
                move.isBroken(at: channel.node, hasOwnData: hasOwnData, uptime: facts.uptime, now: now)
            {
                return .broken
            }
            // A replica of the last owner would have taken over that server's history.
            if let replid = context.handedOverBy, facts.formerReplicationID != replid { return .proven }
            return context.last?.node ?? channel.node == channel.node ? .none : .unproven
        }

        /// True if the server waits for its disk before it answers; false if it does not report the setting.
        private func writesThrough() throws(RedisFailure) -> Bool {
            guard facts.appendsToFile, facts.history == nil else { return false }
            let words = ["CONFIG", "GET", "appendfsync"].map { Array($0.utf8) }
            guard let parts = try channel.call(words, until: deadline).elements else { return false }
            return parts.count == 2 && parts[1].text == "always"
        }

        private static func lastRun(_ reply: RedisReply) -> MemoryJudgement.LastRun {
            if reply.text == RedisKeys.movedMark { return .moved }
            if let start = MemoryStart(reply) { return .start(start) }
            return .absent
        }
    }
}

/// The server that this process used last.
struct RedisLastServer {
    let node: RedisNode
    var known: MemoryJudgement.Known
    var clock: ServerClock
    /// The time of its last good answer.
    var answeredAt: MonotonicInstant
}

extension MemoryStart {
    private static let lossMark = " after loss"

    /// The form in a key.
    var text: String { "\(completeSince)\(isAfterLoss ? Self.lossMark : "")" }

    /// The start that a key stores; nil if the value has another form.
    init?(_ reply: RedisReply) {
        guard let text = reply.text else { return nil }
        isAfterLoss = text.hasSuffix(Self.lossMark)
        guard let moment = RedisReply.number(text.dropLast(isAfterLoss ? Self.lossMark.count : 0)) else { return nil }
        completeSince = moment
    }
}

extension RedisReply {
    /// A number of at most 15 digits.
    fileprivate static func number(_ text: Substring) -> UInt64? {
        guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return UInt64(text)
    }

    /// The server's clock in microseconds since 1970, if this is the answer to TIME; nil otherwise.
    var serverMicroseconds: UInt64? {
        guard case .array(let parts) = self, parts.count == 2,
            let seconds = parts[0].text.flatMap({ Self.number($0[...]) }),
            let micros = parts[1].text.flatMap({ Self.number($0[...]) }), seconds < 1 << 40, micros < 1_000_000
        else { return nil }
        return seconds * 1_000_000 + micros
    }
}
