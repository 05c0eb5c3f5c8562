internal import Networking

/// The talk that opens a connection: who we are, whether the server can be relied on, and since when it remembers.
struct RedisGreeting {
    let life: RedisLife
    /// What came to be from this moment on, by this machine's clock, is known.
    let vouchesSince: UInt64
    /// The same for tokens: from the beginning of time, unless something is known to have been lost.
    let vouchesForTokensSince: UInt64

    /// - Parameters:
    ///   - lastIdentity: the run this process knew last.
    ///   - deadline: bounds the whole talk.
    init(
        over channel: RedisChannel,
        _ configuration: RedisReplayStore.Configuration,
        lastIdentity: String?,
        until deadline: MonotonicInstant
    ) throws(RedisFailure) {
        let talk = Talk(channel: channel, deadline: deadline)
        try talk.introduce(configuration)
        guard let info = try talk.ask(["INFO"]).text else { throw .malformedAnswer }
        let facts = try RedisServerFacts(info: info)
        let now = try talk.time()
        let ourNow = WallClock.unixMilliseconds()
        life = try talk.life(facts, now: now, lastIdentity: lastIdentity)
        // Whether it takes writes at all: better to know now than with the first login.
        guard case .status("OK") = try talk.ask(["SET", RedisLife.prefix + "probe", "1", "PX", "60000"]) else {
            throw .malformedAnswer
        }
        // Births are dated by this machine's clock, the life by the server's: where the two are farther apart than the
        // margin, it grows.
        let ahead = ourNow > now ? ourNow - now : 0
        vouchesSince = life.since &+ max(ahead, ReplayLimits.clockMargin)
        vouchesForTokensSince = life.isAfterLoss ? vouchesSince : 0
    }

    private struct Talk {
        let channel: RedisChannel
        let deadline: MonotonicInstant

        func introduce(_ configuration: RedisReplayStore.Configuration) throws(RedisFailure) {
            if let password = configuration.password {
                var words = [Array("AUTH".utf8)]
                if !configuration.url.user.isEmpty { words.append(configuration.url.user) }
                words.append(password)
                // Any refusal here is one of the credentials, whatever its code.
                guard case .status("OK") = try channel.call(words, until: deadline) else { throw .unauthenticated }
            }
            if configuration.url.database != 0 {
                _ = try ask(["SELECT", String(configuration.url.database)])
            }
        }

        func ask(_ words: [String]) throws(RedisFailure) -> RedisReply {
            let reply = try channel.call(words, until: deadline)
            if case .error(let code) = reply { throw RedisFailure(code: code) }
            return reply
        }

        /// The server's clock, in milliseconds since 1970.
        func time() throws(RedisFailure) -> UInt64 {
            guard case .array(let parts) = try ask(["TIME"]), parts.count == 2,
                let seconds = parts[0].text.flatMap({ RedisLife.moment($0[...]) }),
                let micros = parts[1].text.flatMap({ RedisLife.moment($0[...]) }),
                seconds < 1 << 40, micros < 1_000_000
            else { throw .malformedAnswer }
            return seconds * 1_000 + micros / 1_000
        }

        func life(_ facts: RedisServerFacts, now: UInt64, lastIdentity: String?) throws(RedisFailure) -> RedisLife {
            let key = RedisLife.key(of: facts.identity)
            let inherited = try beginning(RedisLife.dataKey)
            let knowsLastRun = try knows(lastIdentity)
            let mine: RedisLife.Beginning
            if let written = try beginning(key) {
                // Who wrote it may have known of no run before; this replica does, and what it knew is not there.
                guard !knowsLastRun, !written.isAfterLoss else {
                    return RedisLife(identity: facts.identity, written: written, inherited: inherited)
                }
                mine = RedisLife.Beginning(moment: now, isAfterLoss: true)
            } else {
                mine = RedisLife.beginning(
                    facts,
                    writesThrough: try writesThrough(facts),
                    now: now,
                    inherited: inherited,
                    lastIdentity: lastIdentity,
                    knowsLastRun: knowsLastRun
                )
                // Of replicas that see the new run at once, one writes, and all read what it wrote.
                _ = try ask(["SET", key, mine.text, "NX"])
            }
            // That something was lost must reach the others, whoever wrote first: they look at this key with every batch.
            if mine.isAfterLoss, try beginning(key)?.isAfterLoss != true { _ = try ask(["SET", key, mine.text]) }
            guard let agreed = try beginning(key) else { throw .memoryLost }
            _ = try ask(["SET", RedisLife.dataKey, agreed.text])
            return RedisLife(identity: facts.identity, written: agreed, inherited: inherited)
        }

        private func beginning(_ key: String) throws(RedisFailure) -> RedisLife.Beginning? {
            RedisLife.Beginning(try ask(["GET", key]))
        }

        /// Whether the server waits for its disk before it answers. One that does not say is taken for one that does not.
        private func writesThrough(_ facts: RedisServerFacts) throws(RedisFailure) -> Bool {
            guard facts.appendsToFile else { return false }
            let reply = try channel.call(["CONFIG", "GET", "appendfsync"], until: deadline)
            guard case .array(let parts) = reply, parts.count == 2 else { return false }
            return parts[1].text == "always"
        }

        private func knows(_ identity: String?) throws(RedisFailure) -> Bool {
            guard let identity else { return true }
            return try beginning(RedisLife.key(of: identity)) != nil
        }
    }
}
