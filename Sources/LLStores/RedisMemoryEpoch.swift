internal import LLSockets

/// The time since which a server's memory is complete.
///
/// A restarted server may have lost its data, and a server that took over from another may never have had them. Each
/// run of a server therefore has a key with the moment, by the server's own clock, since which nothing was lost. The
/// first replica that sees a new run writes the key, and all others read it. Entries from before that moment are
/// refused. Another key holds such a moment for the data as a whole, which may move to other servers. The later of the
/// two counts.
package struct RedisMemoryEpoch: Equatable, Sendable {
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

    /// - Parameter inherited: the content of ``RedisKeys/data``.
    init(identity: String, written: Beginning, inherited: Beginning?) {
        self.identity = identity
        self.written = written
        since = max(written.moment, inherited?.moment ?? 0)
        isAfterLoss = written.isAfterLoss || inherited?.isAfterLoss == true
    }

    /// A moment from the text of a key or an answer: at most 15 digits.
    static func moment(_ text: Substring) -> UInt64? {
        guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return UInt64(text)
    }
}

/// The names of the project's keys.
struct RedisKeys: Sendable {
    /// The names outside a cluster.
    static let usual = RedisKeys(prefix: "limited-login:")
    /// The names in a cluster: the hash tag puts all keys into one slot.
    static let cluster = RedisKeys(prefix: "{limited-login}:")
    /// The slot of the hash tag: the CRC-16 of its text modulo 16,384.
    /// (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/)
    static let clusterSlot: Int64 = 16_139

    /// The value under the key of a run if its server handed the keys over.
    static let movedMark = "moved"

    let prefix: String

    /// The key of the data's own beginning, independent of the run that wrote it.
    var data: String { prefix + "life" }
    /// The key of the beginning of one run.
    func life(of identity: String) -> String { data + ":" + identity }
    var probe: String { prefix + "probe" }
    /// A key that never exists.
    var absent: String { prefix + "absent" }
    var revocations: [UInt8] { Array((prefix + "revocations").utf8) }
    func entry(_ key: ReplayKey) -> [UInt8] { Array(prefix.utf8) + key.hexadecimal }

    init(prefix: String) { self.prefix = prefix }

    init(_ kind: ReplayStoreURL.Kind) { self = kind == .cluster ? .cluster : .usual }
}

extension RedisMemoryEpoch.Beginning {
    /// The beginning that a key stores; nil if the value has another form.
    init?(_ reply: RedisReply) {
        guard let text = reply.text else { return nil }
        isAfterLoss = text.hasSuffix(Self.lossMark)
        guard let moment = RedisMemoryEpoch.moment(text.dropLast(isAfterLoss ? Self.lossMark.count : 0)) else {
            return nil
        }
        self.moment = moment
    }
}

extension RedisReply {
    /// The server's clock in microseconds since 1970, if this is the answer to TIME; nil otherwise.
    var serverMicroseconds: UInt64? {
        guard case .array(let parts) = self, parts.count == 2,
            let seconds = parts[0].text.flatMap({ RedisMemoryEpoch.moment($0[...]) }),
            let micros = parts[1].text.flatMap({ RedisMemoryEpoch.moment($0[...]) }),
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

    /// The name of the history that a replica of this server has, and the name of the one that this server took over.
    let replicationID: String?
    let formerReplicationID: String?

    /// Reads INFO, or its sections server, memory, persistence and replication. It refuses a server that is not
    /// reliable for this use.
    /// - Parameter isInCluster: true if the server may be the node of a cluster.
    package init(info: String, isInCluster: Bool = false) throws(RedisFailure) {
        let fields = Self.fields(info)
        guard let runID = fields["run_id"] else { throw .anonymous }
        guard Self.isIdentifier(runID) else { throw .malformedAnswer }
        let mode = fields["redis_mode"] ?? fields["server_mode"] ?? "standalone"
        guard mode == "standalone" || isInCluster && mode == "cluster" else {
            throw .unsupportedMode(mode == "cluster" ? "cluster" : "sentinel")
        }
        guard fields["loading"] ?? "0" == "0" else { throw .loading }
        history = try Self.history(fields)
        let policy = fields["maxmemory_policy"] ?? "unknown"
        // A server that does not report its limit and policy may evict entries.
        guard fields["maxmemory"] == "0" || policy == "noeviction" else {
            throw .evicting(policy: Self.policies.contains(String(policy)) ? String(policy) : "unknown")
        }
        room = RedisRoom(fields)
        appendsToFile = fields["aof_enabled"] == "1"
        replicationID = fields["master_replid"].map { String($0) }
        formerReplicationID = fields["master_replid2"].map { String($0) }
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

    /// The time of this clock at `now`, unless it was set meanwhile.
    func time(at now: MonotonicInstant) -> UInt64 { milliseconds &+ now.nanoseconds(since: at) / 1_000_000 }

    /// True if the clock is so far ahead that entries were forgotten before their time.
    func hasJumped(to time: UInt64, at now: MonotonicInstant, _ limits: ReplayLimits) -> Bool {
        time > self.time(at: now) &+ limits.clockJump.wholeNanoseconds / 1_000_000
    }
}
