internal import LLSockets

/// The exchange that opens a connection. It sends the credentials, checks the server, and reads the start of its
/// memory.
struct RedisGreeting {
    let life: RedisLife
    /// Entries issued since this time, by this machine's clock, are known.
    let vouchesSince: UInt64
    /// The same for tokens: the beginning of time, unless data are known to be lost.
    let vouchesForTokensSince: UInt64
    /// The server's clock at the time of the exchange.
    var clock: ServerClock
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
        life = try talk.life(facts, now: clock)
        // Checks that the server accepts writes, before the first login needs them.
        guard case .status("OK") = try talk.ask(["SET", keys.probe, "1", "PX", "60000"]) else {
            throw .malformedAnswer
        }
        // Entries are dated by this machine's clock, the beginning by the server's. The margin grows if the two clocks
        // are farther apart than it.
        let ahead = ourNow > serverTime ? ourNow - serverTime : 0
        vouchesSince = life.since &+ max(ahead, ReplayLimits.clockMargin)
        vouchesForTokensSince = life.isAfterLoss ? vouchesSince : 0
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

        func life(_ facts: RedisServerFacts, now clock: ServerClock) throws(RedisFailure) -> RedisLife {
            let key = keys.life(of: facts.identity)
            let inherited = try beginning(keys.data)
            let isLost =
                context.trail.map { $0.hasLost || $0.contradicts(facts.identity, of: channel.node) } ?? false
            let knowsLastRun = isLost ? false : try knows(context.last?.identity)
            // If the clock jumped ahead, entries were forgotten early. They were issued before the time without the
            // jump.
            let jump = lastClock(of: facts.identity).flatMap { last in
                last.hasJumped(to: clock.milliseconds, at: clock.at, limits) ? last.time(at: clock.at) : nil
            }
            // If data were lost as well, they were issued before this machine's time.
            let now = jump.map { max($0, min(clock.milliseconds, WallClock.unixMilliseconds())) } ?? clock.milliseconds
            let found = try ask(["GET", key])
            let mine: RedisLife.Beginning
            if let written = RedisLife.Beginning(found), !isLost {
                // The first of the replicas that see a jump writes that.
                let isJumpNews = jump != nil && context.last?.greeting.life.written == written
                // The replica that wrote the key may have known no earlier run. This replica knows one, and that run's
                // data are lost.
                guard isJumpNews || !knowsLastRun && !written.isAfterLoss else {
                    return RedisLife(identity: facts.identity, written: written, inherited: inherited)
                }
                mine = RedisLife.Beginning(moment: knowsLastRun ? jump ?? now : now, isAfterLoss: true)
                if isJumpNews { _ = try ask(["SET", key, mine.text]) }
            } else {
                let isMoved = knowsLastRun && jump == nil && wasHandedOver(to: facts)
                // A server lost nothing only if each write is on disk before its answer and the data are its own.
                let isOwn = facts.history == nil && knowsLastRun && jump == nil
                let isWhole = isMoved ? true : isOwn ? try writesThrough(facts) : false
                let isAfterLoss = isLost || inherited != nil || context.last != nil
                let fresh = RedisLife.Beginning(moment: now, isAfterLoss: isAfterLoss)
                mine = isWhole ? inherited ?? fresh : fresh
                // If several replicas see the new run at once, one of them writes, and all read the result.
                _ = try ask(["SET", key, mine.text] + (found == .null ? ["NX"] : []))
                // The last owner may get the keys back. Then it has to hand them over again.
                if isMoved, let last = context.last { _ = try ask(["SET", keys.life(of: last.identity), "moved"]) }
            }
            // A loss must reach the other replicas, whichever replica wrote first. They read this key with every batch.
            if mine.isAfterLoss, isLost ? true : try beginning(key)?.isAfterLoss != true {
                _ = try ask(["SET", key, mine.text])
            }
            guard let agreed = try beginning(key) else { throw .memoryLost }
            _ = try ask(["SET", keys.data, agreed.text])
            // A primary without replicas drops the name of its history after an hour. This loses no data.
            if facts.history != nil { _ = try ask(["SET", keys.life(of: facts.runID), agreed.text]) }
            if isLost || context.last?.node != channel.node { context.trail?.forget() }
            return RedisLife(identity: facts.identity, written: agreed, inherited: inherited)
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
            guard let name = context.handedOverBy, facts.formerReplicationID != name else { return false }
            return context.trail?.permits(facts.identity, of: channel.node) ?? true
        }

        private func beginning(_ key: String) throws(RedisFailure) -> RedisLife.Beginning? {
            RedisLife.Beginning(try ask(["GET", key]))
        }

        /// True if the server waits for its disk before it answers; false if it does not report the setting.
        private func writesThrough(_ facts: RedisServerFacts) throws(RedisFailure) -> Bool {
            let words = ["CONFIG", "GET", "appendfsync"].map { Array($0.utf8) }
            guard facts.appendsToFile, case .array(let parts) = try channel.call(words, until: deadline)
            else { return false }
            return parts.count == 2 && parts[1].text == "always"
        }

        private func knows(_ identity: String?) throws(RedisFailure) -> Bool {
            guard let identity else { return true }
            return try ask(["GET", keys.life(of: identity)]) != .null
        }
    }
}
