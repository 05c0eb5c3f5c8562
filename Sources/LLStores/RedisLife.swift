internal import LLSockets

/// The moment since which a server's memory is complete.
///
/// A restarted server may have lost its data, and a server that took over from another may never have had them. Each
/// run of a server therefore has a key with the moment, by the server's own clock, since which nothing was lost. The
/// first replica that sees a new run writes the key, and all others read it. Entries from before that moment are
/// refused. Another key holds such a moment for the data as a whole, which may move to other servers. The later of the
/// two counts.
package struct RedisLife: Equatable, Sendable {
    /// The identity of the server's run.
    package let identity: String
    /// The content of the run's key.
    let written: Beginning
    /// The moment since which nothing was lost, in milliseconds since 1970.
    package let since: UInt64
    /// True if data from before that moment are known to be lost.
    package let isAfterLoss: Bool

    /// The beginning of a memory, as a key stores it.
    struct Beginning: Equatable {
        /// Milliseconds since 1970, by the server's clock.
        let moment: UInt64
        /// True if there was a memory before it. Without a known earlier memory, nonces from before are still refused,
        /// because a nonce lives only minutes. Tokens from before are accepted: they live longer and come from another
        /// service, and a first start must not refuse them.
        let isAfterLoss: Bool

        fileprivate static let lossMark = " after loss"

        var text: String { isAfterLoss ? "\(moment)\(Self.lossMark)" : "\(moment)" }
    }

    /// - Parameter inherited: the content of ``dataKey``.
    init(identity: String, written: Beginning, inherited: Beginning?) {
        self.identity = identity
        self.written = written
        since = max(written.moment, inherited?.moment ?? 0)
        isAfterLoss = written.isAfterLoss || inherited?.isAfterLoss == true
    }

    /// The prefix of every key of this project.
    static let prefix = "limited-login:"
    /// The key of the data's own beginning, independent of the run that wrote it.
    static let dataKey = prefix + "life"

    static func key(of identity: String) -> String { dataKey + ":" + identity }

    var key: String { Self.key(of: identity) }

    /// A moment from the text of a key or an answer: at most 15 digits.
    static func moment(_ text: Substring) -> UInt64? {
        guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return UInt64(text)
    }
}

extension RedisLife.Beginning {
    /// The beginning that a key stores; nil if the value has another form.
    init?(_ reply: RedisReply) {
        guard let text = reply.text else { return nil }
        isAfterLoss = text.hasSuffix(Self.lossMark)
        guard let moment = RedisLife.moment(text.dropLast(isAfterLoss ? Self.lossMark.count : 0)) else { return nil }
        self.moment = moment
    }
}

extension RedisReply {
    /// The server's clock in microseconds since 1970, if this is the answer to TIME; nil otherwise.
    var serverMicroseconds: UInt64? {
        guard case .array(let parts) = self, parts.count == 2,
            let seconds = parts[0].text.flatMap({ RedisLife.moment($0[...]) }),
            let micros = parts[1].text.flatMap({ RedisLife.moment($0[...]) }),
            seconds < 1 << 40, micros < 1_000_000
        else { return nil }
        return seconds * 1_000_000 + micros
    }
}

/// The facts from a Redis or Valkey server's INFO that matter here.
package struct RedisServerFacts: Equatable, Sendable {
    /// The identifier of the server's run; it changes with every start.
    let runID: String
    /// The server's name for the history of its data; nil if the data cannot come from another server by replication.
    /// The name changes with each failover.
    let history: String?
    let room: RedisRoom
    /// True if INFO reports an append-only file. The setting appendfsync tells whether each write is on disk before its
    /// answer.
    let appendsToFile: Bool
    /// Run and history together. A process may have been a replica for a time, and then has other data under the same
    /// run.
    package var identity: String { runID + (history.map { ":\($0)" } ?? "") }

    /// Reads INFO, or its sections server, memory, persistence and replication. It refuses a server that is not
    /// reliable for this use.
    package init(info: String) throws(RedisFailure) {
        let fields = Self.fields(info)
        guard let runID = fields["run_id"], Self.isIdentifier(runID) else { throw .malformedAnswer }
        let mode = fields["redis_mode"] ?? fields["server_mode"] ?? "standalone"
        guard mode == "standalone" else { throw .unsupportedMode(mode == "cluster" ? "cluster" : "sentinel") }
        guard fields["loading"] ?? "0" == "0" else { throw .loading }
        history = try Self.history(fields)
        let policy = fields["maxmemory_policy"] ?? "unknown"
        // A server that does not report its limit and policy may evict entries.
        guard fields["maxmemory"] == "0" || policy == "noeviction" else {
            throw .evicting(policy: Self.policies.contains(String(policy)) ? String(policy) : "unknown")
        }
        room = RedisRoom(fields)
        appendsToFile = fields["aof_enabled"] == "1"
        self.runID = String(runID)
    }

    /// Reads ``history`` from the answer to INFO, or to INFO replication. It refuses a server that is no longer a
    /// primary.
    static func history(info: String) throws(RedisFailure) -> String? { try history(fields(info)) }

    private static func history(_ fields: [Substring: Substring]) throws(RedisFailure) -> String? {
        guard fields["role"] ?? "master" == "master" else { throw .readOnly }
        // A primary also renames its history when its first replica connects, and after an hour without any replica.
        guard fields["second_repl_offset"] ?? "0" != "-1" else { return nil }
        guard let name = fields["master_replid"], isIdentifier(name) else { throw .malformedAnswer }
        return String(name)
    }

    static func fields(_ info: String) -> [Substring: Substring] {
        var fields: [Substring: Substring] = [:]
        for line in info.split(whereSeparator: \.isNewline) {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields[line[..<colon]] = line[line.index(after: colon)...]
        }
        return fields
    }

    /// True for hexadecimal digits, the form of the server's identifiers.
    private static func isIdentifier(_ text: Substring) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    /// The policies that a log line may repeat.
    private static let policies: Set<String> = [
        "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random",
        "volatile-ttl",
    ]
}

/// The room in a server's memory.
///
/// A device can make any number of proofs, so a quarter of the memory stays for revocations and for the nonces and
/// tokens of the backends.
struct RedisRoom: Equatable {
    /// True if a proof may be remembered. A server has room if it has no limit or does not report one.
    let isLeftForProofs: Bool

    /// - Parameter fields: the fields of INFO, including the section `memory`.
    init(_ fields: [Substring: Substring]) {
        guard let limit = fields["maxmemory"].flatMap({ UInt64($0) }), limit > 0,
            let all = fields["used_memory"].flatMap({ UInt64($0) })
        else {
            isLeftForProofs = true
            return
        }
        // The server compares its use with its limit without the buffers of its replicas and its file.
        let apart = fields["mem_not_counted_for_evict"].flatMap { UInt64($0) } ?? 0
        isLeftForProofs = all - min(apart, all) <= limit - limit / 4
    }
}

/// A server's clock at a moment of this machine's monotonic clock.
struct ServerClock {
    /// Milliseconds since 1970.
    let milliseconds: UInt64
    let at: MonotonicInstant

    /// The time that it shows later, if nobody sets it.
    func time(at now: MonotonicInstant) -> UInt64 { milliseconds &+ now.nanoseconds(since: at) / 1_000_000 }

    /// True if the clock is so far ahead that entries were forgotten before their time.
    func hasJumped(to time: UInt64, at now: MonotonicInstant, _ limits: ReplayLimits) -> Bool {
        time > self.time(at: now) &+ limits.clockJump.wholeNanoseconds / 1_000_000
    }
}

/// The exchange that opens a connection: it sends the credentials, checks the server, and reads since when it
/// remembers.
struct RedisGreeting {
    let life: RedisLife
    /// Entries that came to be since this moment, by this machine's clock, are known.
    let vouchesSince: UInt64
    /// The same for tokens: the beginning of time, unless data are known to be lost.
    let vouchesForTokensSince: UInt64
    /// The server's clock at the time of the exchange.
    var clock: ServerClock
    /// The same as ``RedisServerFacts/history``.
    let history: String?
    let room: RedisRoom

    /// - Parameters:
    ///   - last: the greeting before.
    ///   - deadline: the latest end of the whole exchange.
    init(
        over channel: RedisChannel,
        _ configuration: RedisReplayStore.Configuration,
        after last: RedisGreeting?,
        until deadline: MonotonicInstant
    ) throws(RedisFailure) {
        let talk = Talk(channel: channel, limits: configuration.limits, last: last, deadline: deadline)
        try talk.introduce(configuration)
        let facts = try RedisServerFacts(info: try talk.info())
        (history, room) = (facts.history, facts.room)
        guard let time = try talk.ask(["TIME"]).serverMicroseconds else { throw .malformedAnswer }
        let serverTime = time / 1_000
        clock = ServerClock(milliseconds: serverTime, at: MonotonicClock.now())
        let ourNow = WallClock.unixMilliseconds()
        life = try talk.life(facts, now: clock)
        // Checks that the server accepts writes at all. The first login must not be the one to find out.
        guard case .status("OK") = try talk.ask(["SET", RedisLife.prefix + "probe", "1", "PX", "60000"]) else {
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
        let last: RedisGreeting?
        let deadline: MonotonicInstant

        func introduce(_ configuration: RedisReplayStore.Configuration) throws(RedisFailure) {
            if let password = configuration.password {
                var words = [Array("AUTH".utf8)]
                if !configuration.url.user.isEmpty { words.append(configuration.url.user) }
                words.append(password)
                // Any refusal here concerns the credentials, whatever its code.
                guard case .status("OK") = try channel.call(words, until: deadline) else { throw .unauthenticated }
            }
            if configuration.url.database != 0 { _ = try ask(["SELECT", String(configuration.url.database)]) }
        }

        /// The sections of INFO that matter here, read one by one: servers before Redis 7 accept no list of sections.
        /// Other sections may have any length: errorstats has a line for each error name that a client made up.
        func info() throws(RedisFailure) -> String {
            var info = ""
            for section in ["server", "memory", "persistence", "replication"] {
                guard let text = try ask(["INFO", section]).text else { throw .malformedAnswer }
                info += text + "\r\n"
            }
            return info
        }

        func ask(_ words: [String]) throws(RedisFailure) -> RedisReply {
            let reply = try channel.call(words.map { Array($0.utf8) }, until: deadline)
            if case .error(let code) = reply { throw RedisFailure(code: code) }
            return reply
        }

        func life(_ facts: RedisServerFacts, now clock: ServerClock) throws(RedisFailure) -> RedisLife {
            let key = RedisLife.key(of: facts.identity)
            let inherited = try beginning(RedisLife.dataKey)
            let knowsLastRun = try knows(last?.life.identity)
            // If the clock jumped ahead, entries were forgotten early. They came to be before the time without the jump.
            let jump = last.flatMap { last in
                last.clock.hasJumped(to: clock.milliseconds, at: clock.at, limits) ? last.clock.time(at: clock.at) : nil
            }
            let now = jump ?? clock.milliseconds
            let mine: RedisLife.Beginning
            if let written = try beginning(key) {
                // The first of the replicas that see a jump writes that.
                let isJumpNews = jump != nil && last?.life.written == written
                // The replica that wrote the key may have known no earlier run. This replica knows one, and that run's
                // data are lost.
                guard isJumpNews || !knowsLastRun && !written.isAfterLoss else {
                    return RedisLife(identity: facts.identity, written: written, inherited: inherited)
                }
                mine = RedisLife.Beginning(moment: now, isAfterLoss: true)
                if isJumpNews { _ = try ask(["SET", key, mine.text]) }
            } else {
                // A server lost nothing only if each write is on disk before its answer and the data are its own.
                let isWhole = try writesThrough(facts) && facts.history == nil && knowsLastRun && jump == nil
                let isAfterLoss = inherited != nil || last != nil
                let fresh = RedisLife.Beginning(moment: now, isAfterLoss: isAfterLoss)
                mine = isWhole ? inherited ?? fresh : fresh
                // If several replicas see the new run at once, one of them writes, and all read the result.
                _ = try ask(["SET", key, mine.text, "NX"])
            }
            // A loss must reach the other replicas, whichever replica wrote first. They read this key with every batch.
            if mine.isAfterLoss, try beginning(key)?.isAfterLoss != true { _ = try ask(["SET", key, mine.text]) }
            guard let agreed = try beginning(key) else { throw .memoryLost }
            _ = try ask(["SET", RedisLife.dataKey, agreed.text])
            // A primary without replicas drops the name of its history after an hour. Nothing is lost by that.
            if facts.history != nil { _ = try ask(["SET", RedisLife.key(of: facts.runID), agreed.text]) }
            return RedisLife(identity: facts.identity, written: agreed, inherited: inherited)
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
            return try beginning(RedisLife.key(of: identity)) != nil
        }
    }
}
