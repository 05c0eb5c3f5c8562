internal import LLSockets

/// The exchange that opens a connection. It sends the credentials, checks the server, and reads the start of its
/// memory.
struct RedisGreeting {
    let life: RedisMemoryEpoch
    /// Entries issued since this time, by this machine's clock, are known.
    var completeSince: UInt64
    /// The same for tokens: the beginning of time, unless data are known to be lost.
    let tokensCompleteSince: UInt64
    /// The server's clock at the time of the exchange.
    var clock: ServerClock
    /// Milliseconds by which the server's clock is behind this machine's, at least ``ReplayLimits/clockMargin``.
    var lateness: UInt64
    /// The same as ``RedisServerFacts/history``.
    let history: String?
    let room: RedisRoom
    let keys: RedisKeys

    /// The knowledge from before the connection.
    struct Context {
        /// The server that this process knew last.
        var last: RedisPast?
        /// The same as ``RedisFinder/Found/handedOverBy``.
        var handedOverBy: String?
        var trail: RedisTrail?
        /// The way to another node while the slot of the keys moves; nil outside a cluster.
        var detour: RedisDetour?
    }

    /// - Parameters:
    ///   - channel: a connection over which the credentials were sent.
    ///   - deadline: the latest end of the whole exchange.
    init(
        over channel: RedisChannel,
        _ configuration: RedisReplayStore.Configuration,
        _ context: Context = Context(),
        until deadline: MonotonicInstant
    ) throws(RedisFailure) {
        let keys = RedisKeys(configuration.url.kind)
        let talk = Talk(
            channel: channel,
            limits: configuration.limits,
            context: context,
            keys: keys,
            deadline: deadline
        )
        let isInCluster = configuration.url.kind == .cluster
        let facts = try RedisServerFacts(info: try channel.info(until: deadline), isInCluster: isInCluster)
        (history, room, self.keys) = (facts.history, facts.room, keys)
        guard let time = try talk.ask(["TIME"]).serverMicroseconds else { throw .malformedAnswer }
        let serverTime = time / 1_000
        clock = ServerClock(milliseconds: serverTime, at: MonotonicClock.now())
        let ourNow = WallClock.unixMilliseconds()
        // Entries are dated by this machine's clock, the beginning by the server's. The margin grows if the two clocks
        // are farther apart than it.
        lateness = max(ourNow > serverTime ? ourNow - serverTime : 0, ReplayLimits.clockMargin)
        life = try talk.life(facts, now: clock, lateness: lateness)
        // Checks that the server accepts writes, before the first login needs them.
        guard case .status("OK") = try talk.ask(["SET", keys.probe, "1", "PX", "60000"]) else {
            throw .malformedAnswer
        }
        completeSince = life.since &+ lateness
        tokensCompleteSince = life.isAfterLoss ? completeSince : 0
    }

    private struct Talk {
        let channel: RedisChannel
        let limits: ReplayLimits
        let context: Context
        let keys: RedisKeys
        let deadline: MonotonicInstant

        func ask(_ words: [String]) throws(RedisFailure) -> RedisReply {
            let command = words.map { Array($0.utf8) }
            var reply = try channel.call(command, until: deadline)
            if case .redirect(.ask(let node)) = reply, let detour = context.detour {
                reply = try detour.call([command], at: node, until: deadline).first ?? .null
            }
            return try reply.orFailure(of: words[0], isInCluster: context.detour != nil)
        }

        func life(
            _ facts: RedisServerFacts,
            now clock: ServerClock,
            lateness: UInt64
        ) throws(RedisFailure) -> RedisMemoryEpoch {
            let key = keys.life(of: facts.identity)
            let inherited = try beginning(keys.data)
            let last = context.last
            let isNew = last?.node != channel.node
            let isLost = context.trail?.lacks(facts.identity, of: channel.node, isNewOwner: isNew) ?? false
            // The key of the last run is read before that of this one: a replica that was faster writes it later.
            var lastKey: RedisReply?
            if let last { lastKey = try ask(["GET", keys.life(of: last.identity)]) }
            // If the clock jumped ahead, entries were forgotten early. They came to be before the time without the jump.
            let jump = lastClock(of: facts.identity).flatMap { last in
                last.hasJumped(to: clock.milliseconds, at: clock.at, limits) ? last.time(at: clock.at) : nil
            }
            // Entries are dated by this machine's clock. A server's clock that was behind may have jumped beyond it, and one
            // that is a little behind may be set right without any sign.
            let ours = WallClock.unixMilliseconds()
            let tolerance = limits.clockJump.wholeNanoseconds / 1_000_000
            let isLittleBehind = ours > clock.milliseconds && ours <= clock.milliseconds + tolerance
            let present =
                jump.map { max($0, min(clock.milliseconds, ours)) } ?? (isLittleBehind ? ours : clock.milliseconds)
            // Nonces are dated ahead, up to the moment from which the memory of then was complete.
            let dated = last.map { dates($0.greeting, lateness, present) } ?? 0
            let now = max(present, max(inherited?.moment ?? 0, dated) + 1)
            // Another server may have begun while this replica still had answers of the last one.
            let end = last.map { $0.identity == facts.identity ? 0 : $0.greeting.clock.time(at: $0.seenAt) } ?? 0
            let least = last == nil ? 0 : max(dated + 1, end)
            let found = try ask(["GET", key])
            let mine: RedisMemoryEpoch.Beginning
            if let written = RedisMemoryEpoch.Beginning(found), !isLost {
                // The replica that wrote the key may have known less than this one. The first that knows of a loss writes it.
                let isWhole = jump == nil ? try continues(facts, written, lastKey) : false
                guard !isWhole, !counts(written, least) else {
                    if isNew { context.trail?.forget() }
                    return RedisMemoryEpoch(identity: facts.identity, written: written, inherited: inherited)
                }
                mine = RedisMemoryEpoch.Beginning(moment: now, isAfterLoss: true)
            } else {
                // The last owner may get the keys back. Then it has to hand them over again.
                let lastLife = lastKey.flatMap(RedisMemoryEpoch.Beginning.init)
                let isIntact = !isLost && jump == nil && lastKey != .null
                let isMoved = isIntact && lastLife != nil && wasHandedOver(to: facts)
                let isWhole = isMoved ? true : isIntact ? try isOwn(facts) : false
                let isAfterLoss = isLost || inherited != nil || last != nil
                let fresh = RedisMemoryEpoch.Beginning(moment: now, isAfterLoss: isAfterLoss)
                mine = isWhole ? inherited.map { continued($0, lastLife, lateness) } ?? fresh : fresh
                // If several replicas see the new run at once, one of them writes, and all read the result.
                if !isLost { _ = try ask(["SET", key, mine.text] + (found == .null ? ["NX"] : [])) }
                if isMoved, let last { _ = try ask(["SET", keys.life(of: last.identity), RedisKeys.movedMark]) }
            }
            // A loss must reach the other replicas, whichever replica wrote first. They read this key with every batch.
            if mine.isAfterLoss, isLost ? true : try !counts(beginning(key), min(least, mine.moment)) {
                _ = try ask(["SET", key, mine.text])
            }
            guard let agreed = try beginning(key) else { throw .memoryLost }
            _ = try ask(["SET", keys.data, agreed.text])
            if facts.history != nil { _ = try ask(["SET", keys.life(of: facts.runID), agreed.text]) }
            if isLost || isNew { context.trail?.forget() }
            return RedisMemoryEpoch(identity: facts.identity, written: agreed, inherited: inherited)
        }

        /// True if a beginning counts everything before this moment as lost.
        private func counts(_ beginning: RedisMemoryEpoch.Beginning?, _ least: UInt64) -> Bool {
            beginning.map { $0.isAfterLoss && $0.moment >= least } ?? false
        }

        /// The latest beginning of a memory that would let nonces of the last one pass. It is bounded by the lifetime of
        /// an ID token, an hour: this replica's clock may have been far ahead.
        private func dates(_ last: RedisGreeting, _ lateness: UInt64, _ present: UInt64) -> UInt64 {
            max(last.life.since, min(last.completeSince - min(lateness, last.completeSince), present + 3_600_000))
        }

        /// True if a server's memory is that of the last server that this replica knew, though another replica says so.
        /// - Parameter lastKey: the content of the key of the last server's run.
        private func continues(
            _ facts: RedisServerFacts,
            _ written: RedisMemoryEpoch.Beginning,
            _ lastKey: RedisReply?
        ) throws(RedisFailure) -> Bool {
            guard let last = context.last else { return true }
            if last.identity == facts.identity { return last.greeting.life.written == written }
            guard lastKey != .null else { return false }
            // Another replica has the proof, or this one does.
            if try ask(["GET", keys.life(of: last.identity)]).text == RedisKeys.movedMark { return true }
            if wasHandedOver(to: facts) { return true }
            // A primary without replicas drops the name of its history after an hour. Nothing is lost by that.
            let isSameRun = facts.history == nil && last.identity.hasPrefix(facts.runID)
            return isSameRun ? last.greeting.life.written == written : try isOwn(facts)
        }

        /// The beginning of a memory that this server continues, by its own clock. `lateness` is added to it later, for the
        /// time by this machine's clock. If the last server's clock was further behind, the difference is added here, so
        /// that ``RedisGreeting/completeSince`` does not become earlier.
        private func continued(
            _ inherited: RedisMemoryEpoch.Beginning,
            _ lastLife: RedisMemoryEpoch.Beginning?,
            _ lateness: UInt64
        ) -> RedisMemoryEpoch.Beginning {
            let last = context.last?.greeting
            let shift = last.map { $0.lateness > lateness ? $0.lateness - lateness : 0 } ?? 0
            let known = [inherited.moment, lastLife?.moment ?? 0, last?.life.since ?? 0]
            return RedisMemoryEpoch.Beginning(
                moment: (known.max() ?? 0) + shift,
                isAfterLoss: inherited.isAfterLoss || lastLife?.isAfterLoss ?? false || last?.life.isAfterLoss ?? false
            )
        }

        /// The clock that this server had before; nil if it is not known. The clocks of two servers may differ.
        private func lastClock(of identity: String) -> ServerClock? {
            if let last = context.last, last.node == channel.node || last.identity == identity {
                return last.greeting.clock
            }
            return context.trail?.clock(of: channel.node)
        }

        /// True if this server has the keys from the last owner itself and did not take over from it as its replica.
        private func wasHandedOver(to facts: RedisServerFacts) -> Bool {
            context.handedOverBy.map { facts.formerReplicationID != $0 } ?? false
        }

        private func beginning(_ key: String) throws(RedisFailure) -> RedisMemoryEpoch.Beginning? {
            RedisMemoryEpoch.Beginning(try ask(["GET", key]))
        }

        /// True if the server has its own data of before: each write is on its disk before the answer.
        private func isOwn(_ facts: RedisServerFacts) throws(RedisFailure) -> Bool {
            guard facts.history == nil, context.last?.node ?? channel.node == channel.node else { return false }
            return try writesThrough(facts)
        }

        /// True if the server waits for its disk before it answers; false if it does not report the setting.
        private func writesThrough(_ facts: RedisServerFacts) throws(RedisFailure) -> Bool {
            let words = ["CONFIG", "GET", "appendfsync"].map { Array($0.utf8) }
            guard facts.appendsToFile, case .array(let parts) = try channel.call(words, until: deadline)
            else { return false }
            return parts.count == 2 && parts[1].text == "always"
        }
    }
}
