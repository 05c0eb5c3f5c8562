internal import LLBytes

/// The facts from a Redis or Valkey server's INFO that matter here.
package struct RedisServerFacts: Hashable, Sendable {
    /// The identifier of the server's run; it changes with every start.
    let runID: String
    /// The server's name for the history of its data; nil if the data cannot come from another server by replication.
    /// The name changes with each failover.
    let history: String?
    let hasRoomForProofs: Bool
    /// True if INFO reports an append-only file. The setting appendfsync tells whether each write is on disk before its
    /// answer.
    let appendsToFile: Bool
    /// Whole seconds since the server's start, by its own clock; 0 if it does not tell.
    let uptime: UInt64
    /// The name of the history that a replica of this server has, and the name of the one that this server took over.
    let replicationID: String?
    let formerReplicationID: String?
    /// Run and history together. A process may have been a replica for a time, and then has other data under the same
    /// run.
    package var identity: String { runID + (history.map { ":\($0)" } ?? "") }
}

extension RedisServerFacts {
    /// Reads INFO, or its sections server, memory, persistence and replication. It refuses a server that is not
    /// reliable for this use.
    package init(info: String, isInCluster: Bool = false) throws(RedisFailure) {
        let fields = Self.fields(info)
        guard let runID = fields["run_id"] else { throw .anonymous }
        guard Self.isIdentifier(runID) else { throw .malformedAnswer }
        let mode = fields["redis_mode"] ?? fields["server_mode"] ?? "standalone"
        guard mode == "standalone" || isInCluster && mode == "cluster" else {
            throw mode == "cluster" ? .isCluster : .isSentinel
        }
        guard fields["loading"] ?? "0" == "0" else { throw .loading }
        history = try Self.history(fields)
        let policy = fields["maxmemory_policy"] ?? "unknown"
        // A server that does not report its limit and policy may evict entries.
        guard fields["maxmemory"] == "0" || policy == "noeviction" else {
            // Only the letters of a policy are repeated in a log line.
            let isPlain = policy.utf8.count <= 32 && policy.utf8.allSatisfy { ASCII.isAlphanumeric($0) || $0 == 0x2D }
            throw .evicting(policy: isPlain ? String(policy) : "unknown")
        }
        hasRoomForProofs = Self.hasRoomForProofs(fields)
        appendsToFile = fields["aof_enabled"] == "1"
        uptime = fields["uptime_in_seconds"].flatMap { UInt64($0) } ?? 0
        replicationID = fields["master_replid"].map { String($0) }
        formerReplicationID = fields["master_replid2"].map { String($0) }
        self.runID = String(runID)
    }

    /// Reads ``history`` from the section `replication`. It refuses a server that is no longer a primary.
    static func history(_ fields: [Substring: Substring]) throws(RedisFailure) -> String? {
        guard fields["role"] ?? "master" == "master" else { throw .readOnly }
        // A primary also renames its history when its first replica connects, and after an hour without any replica.
        guard fields["second_repl_offset"] ?? "0" != "-1" else { return nil }
        guard let name = fields["master_replid"], isIdentifier(name) else { throw .malformedAnswer }
        return String(name)
    }

    /// True if a proof may be remembered: a quarter of the memory stays for revocations, nonces and tokens, because a device
    /// can make any number of proofs. A server has room if it has no limit or does not report one.
    /// - Parameter fields: the fields of INFO, including the section `memory`.
    static func hasRoomForProofs(_ fields: [Substring: Substring]) -> Bool {
        guard let limit = fields["maxmemory"].flatMap({ UInt64($0) }), limit > 0,
            let all = fields["used_memory"].flatMap({ UInt64($0) })
        else { return true }
        // The server compares its use with its limit without the buffers of its replicas and its file.
        let apart = fields["mem_not_counted_for_evict"].flatMap { UInt64($0) } ?? 0
        return all - min(apart, all) <= limit - limit / 4
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
}

/// The names of the project's keys.
struct RedisKeys: Hashable, Sendable {
    /// The slot of the hash tag: the CRC-16 of its text modulo 16,384.
    /// (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/)
    static let clusterSlot: Int64 = 16_139
    /// The value under the key of a run if another server has all its data.
    static let movedMark = "moved"

    /// In a cluster a hash tag puts all keys into one slot.
    let prefix: String
    /// The key of the data's start. The data may move to another server.
    var data: String { prefix + "life" }
    /// The key of one run's start.
    func run(_ identity: String) -> String { data + ":" + identity }
    var probe: String { prefix + "probe" }
    /// A key that never exists.
    var absent: String { prefix + "absent" }
    var revocations: [UInt8] { Array((prefix + "revocations").utf8) }
    func entry(_ key: ReplayKey) -> [UInt8] { Array(prefix.utf8) + key.hexadecimal }

    init(_ kind: ReplayStoreURL.Kind) { prefix = kind == .cluster ? "{limited-login}:" : "limited-login:" }
}
