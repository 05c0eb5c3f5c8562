internal import Sockets

/// The time from which on a server's memory is whole.
///
/// A server that was restarted may have lost what it knew, and one that took over from another may never have known it.
/// So each run of a server has a key that says since when, by the server's own clock, nothing was lost; the first replica
/// to see a new run writes it, and all others read it. What came to be before is refused. Another key says the same for
/// the data as a whole, wherever they were carried, and the later of the two counts.
package struct RedisLife: Equatable, Sendable {
    /// The server's run.
    package let identity: String
    /// What the run's key holds.
    let written: Beginning
    /// Since when nothing was lost, in milliseconds since 1970.
    package let since: UInt64
    /// Whether something is known to have been lost before that.
    package let isAfterLoss: Bool

    /// When a memory began, as it stands in a key.
    struct Beginning: Equatable {
        /// Milliseconds since 1970, by the server's clock.
        let moment: UInt64
        /// Whether there was a memory before it. Where none is known of, nonces of before are refused all the same, for a
        /// nonce lives minutes; tokens live longer and are not this service's own, and a first start must not refuse them.
        let isAfterLoss: Bool

        fileprivate static let lossMark = " after loss"

        var text: String { isAfterLoss ? "\(moment)\(Self.lossMark)" : "\(moment)" }
    }

    /// - Parameter inherited: what ``dataKey`` holds.
    init(identity: String, written: Beginning, inherited: Beginning?) {
        self.identity = identity
        self.written = written
        since = max(written.moment, inherited?.moment ?? 0)
        isAfterLoss = written.isAfterLoss || inherited?.isAfterLoss == true
    }

    /// What every key of this project begins with.
    static let prefix = "limited-login:"
    /// Holds the moment of the data's life, whichever run it was written in.
    static let dataKey = prefix + "life"

    static func key(of identity: String) -> String { dataKey + ":" + identity }

    var key: String { Self.key(of: identity) }

    /// A number as it stands in a key or an answer: at most 15 digits.
    static func moment(_ text: Substring) -> UInt64? {
        guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return UInt64(text)
    }
}

extension RedisLife.Beginning {
    /// What a key holds; nil where it holds no beginning.
    init?(_ reply: RedisReply) {
        guard let text = reply.text else { return nil }
        isAfterLoss = text.hasSuffix(Self.lossMark)
        guard let moment = RedisLife.moment(text.dropLast(isAfterLoss ? Self.lossMark.count : 0)) else { return nil }
        self.moment = moment
    }
}

extension RedisReply {
    /// The server's clock in microseconds since 1970, where this is the answer to TIME.
    var serverMicroseconds: UInt64? {
        guard case .array(let parts) = self, parts.count == 2,
            let seconds = parts[0].text.flatMap({ RedisLife.moment($0[...]) }),
            let micros = parts[1].text.flatMap({ RedisLife.moment($0[...]) }),
            seconds < 1 << 40, micros < 1_000_000
        else { return nil }
        return seconds * 1_000_000 + micros
    }
}

/// What a Redis or Valkey server says about itself in INFO, as far as it matters here.
package struct RedisServerFacts: Equatable, Sendable {
    /// The server's run; changes with every start.
    let runID: String
    /// What it calls the history of its data, where those may come from another server by replication, as after a failover:
    /// another name each time it takes over.
    let history: String?
    let room: RedisRoom
    /// Whether every write is on disk before it is answered, as far as INFO tells: the rest is the setting appendfsync.
    let appendsToFile: Bool
    /// Run and history: the same process may have been a replica in between, and so have other data under its old name.
    package var identity: String { runID + (history.map { ":\($0)" } ?? "") }

    /// Reads INFO, or its sections server, memory, persistence and replication; refuses a server that cannot be relied on.
    package init(info: String) throws(RedisFailure) {
        let fields = Self.fields(info)
        guard let runID = fields["run_id"], Self.isIdentifier(runID) else { throw .malformedAnswer }
        let mode = fields["redis_mode"] ?? fields["server_mode"] ?? "standalone"
        guard mode == "standalone" else { throw .unsupportedMode(mode == "cluster" ? "cluster" : "sentinel") }
        guard fields["loading"] ?? "0" == "0" else { throw .loading }
        history = try Self.history(fields)
        let policy = fields["maxmemory_policy"] ?? "unknown"
        // A server that does not say may do either.
        guard fields["maxmemory"] == "0" || policy == "noeviction" else {
            throw .evicting(policy: Self.policies.contains(String(policy)) ? String(policy) : "unknown")
        }
        room = RedisRoom(fields)
        appendsToFile = fields["aof_enabled"] == "1"
        self.runID = String(runID)
    }

    /// Reads ``history`` off the answer to INFO, or to INFO replication; refuses a server that is no primary any more.
    static func history(info: String) throws(RedisFailure) -> String? { try history(fields(info)) }

    private static func history(_ fields: [Substring: Substring]) throws(RedisFailure) -> String? {
        guard fields["role"] ?? "master" == "master" else { throw .readOnly }
        // A primary renames its history too when its first replica comes, and when none has followed it for an hour.
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

    /// Hexadecimal digits, as the server makes its names.
    private static func isIdentifier(_ text: Substring) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    /// What may be repeated in a log line.
    private static let policies: Set<String> = [
        "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random",
        "volatile-ttl",
    ]
}

/// How full a server's memory is.
///
/// Any device makes as many proofs as it likes, so a quarter of the memory stays for the nonces and tokens of the backends,
/// and for revocations.
struct RedisRoom: Equatable {
    /// Whether a proof may be remembered. A server without a bound, or that tells none, has room.
    let isLeftForProofs: Bool

    /// - Parameter fields: INFO's, the section `memory` among them.
    init(_ fields: [Substring: Substring]) {
        guard let limit = fields["maxmemory"].flatMap({ UInt64($0) }), limit > 0,
            let all = fields["used_memory"].flatMap({ UInt64($0) })
        else {
            isLeftForProofs = true
            return
        }
        // The server leaves out the buffers of its replicas and its file when it compares with its bound.
        let apart = fields["mem_not_counted_for_evict"].flatMap { UInt64($0) } ?? 0
        isLeftForProofs = all - min(apart, all) <= limit - limit / 4
    }
}

/// The talk that opens a connection: the credentials, whether the server can be relied on, and since when it remembers.
struct RedisGreeting {
    let life: RedisLife
    /// What came to be from this moment on, by this machine's clock, is known.
    let vouchesSince: UInt64
    /// The same for tokens: from the beginning of time, unless something is known to have been lost.
    let vouchesForTokensSince: UInt64
    /// The server's clock in milliseconds since 1970, when it was asked.
    let serverTime: UInt64
    /// As ``RedisServerFacts/history``.
    let history: String?
    let room: RedisRoom

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
        let facts = try RedisServerFacts(info: try talk.info())
        (history, room) = (facts.history, facts.room)
        guard let time = try talk.ask(["TIME"]).serverMicroseconds else { throw .malformedAnswer }
        serverTime = time / 1_000
        let ourNow = WallClock.unixMilliseconds()
        life = try talk.life(facts, now: serverTime, lastIdentity: lastIdentity)
        // Whether it takes writes at all: better to know now than with the first login.
        guard case .status("OK") = try talk.ask(["SET", RedisLife.prefix + "probe", "1", "PX", "60000"]) else {
            throw .malformedAnswer
        }
        // Births are dated by this machine's clock, the life by the server's: where the two are farther apart than the
        // margin, it grows.
        let ahead = ourNow > serverTime ? ourNow - serverTime : 0
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
            if configuration.url.database != 0 { _ = try ask(["SELECT", String(configuration.url.database)]) }
        }

        /// The sections of INFO that matter here, one by one: servers before Redis 7 take no list of them. The others may be of
        /// any length: errorstats has a line for each name of an error that anybody has made up.
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

        func life(_ facts: RedisServerFacts, now: UInt64, lastIdentity: String?) throws(RedisFailure) -> RedisLife {
            let key = RedisLife.key(of: facts.identity)
            let inherited = try beginning(RedisLife.dataKey)
            let knowsLastRun = try knows(lastIdentity)
            let mine: RedisLife.Beginning
            if let written = try beginning(key) {
                // The replica that wrote it may have known no run before. This one knows one, whose data are not there.
                guard !knowsLastRun, !written.isAfterLoss else {
                    return RedisLife(identity: facts.identity, written: written, inherited: inherited)
                }
                mine = RedisLife.Beginning(moment: now, isAfterLoss: true)
            } else {
                // Only a server that has every write on its disk before it answers, and whose data are its own, lost nothing.
                let isWhole = try writesThrough(facts) && facts.history == nil && knowsLastRun
                let isAfterLoss = inherited != nil || lastIdentity != nil
                let fresh = RedisLife.Beginning(moment: now, isAfterLoss: isAfterLoss)
                mine = isWhole ? inherited ?? fresh : fresh
                // Of replicas that see the new run at once, one writes, and all read what it wrote.
                _ = try ask(["SET", key, mine.text, "NX"])
            }
            // The loss must reach the other replicas, whichever wrote first: they read this key with every batch.
            if mine.isAfterLoss, try beginning(key)?.isAfterLoss != true { _ = try ask(["SET", key, mine.text]) }
            guard let agreed = try beginning(key) else { throw .memoryLost }
            _ = try ask(["SET", RedisLife.dataKey, agreed.text])
            // A primary that no replica follows drops the name of its history after an hour, and nothing is lost by that.
            if facts.history != nil { _ = try ask(["SET", RedisLife.key(of: facts.runID), agreed.text]) }
            return RedisLife(identity: facts.identity, written: agreed, inherited: inherited)
        }

        private func beginning(_ key: String) throws(RedisFailure) -> RedisLife.Beginning? {
            RedisLife.Beginning(try ask(["GET", key]))
        }

        /// Whether the server waits for its disk before it answers; false where it does not say.
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
