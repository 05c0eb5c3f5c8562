internal import LLBytes
internal import LLHTTP

/// The time since which a server's memory is complete, as a key of the server holds it.
package struct MemoryStart: Hashable, Sendable {
    /// Entries issued at this time or later are known. Milliseconds since 1970. It lies ``ReplayLimits/clockMargin``
    /// after the moment at which the memory began, for clocks that differ.
    package let completeSince: UInt64
    /// True if there was a memory before it.
    package let isAfterLoss: Bool

    /// The date for a nonce that is issued now, so that the memory will know the nonce.
    func nonceDate(_ now: UInt64) -> UInt64 { max(now, completeSince) }

    /// True if an earlier use of this entry would be known. Tokens and proofs come from other services, and tokens live
    /// longer than a nonce's minutes: a first start must not refuse them, so only a known loss makes early ones count as
    /// used.
    func knows(_ entry: ReplayEntry) -> Bool {
        entry.issuedAt >= completeSince || entry.kind != .nonce && !isAfterLoss
    }
}

/// The decision whether a server's memory is whole: a pure function.
///
/// A restarted server may have lost its data, and a server that took over from another may never have had them. Each
/// run of a server therefore has a key with the start of its memory. The first replica that sees a new run writes the
/// key, and all others read it. A second key holds the start for the data as a whole, which may move to other servers.
enum MemoryJudgement: Equatable {
    /// The memory is the one that the run's key tells.
    case continues(MemoryStart)
    /// The server has all data of the memory before it. Its own run has no key yet.
    case movedIntact(MemoryStart)
    /// Data may be lost, or there was no memory: one begins here.
    case lost(MemoryStart)

    /// This process's knowledge of the server that it used last.
    struct Known: Hashable {
        /// The same as ``RedisServerFacts/identity``.
        let identity: String
        let start: MemoryStart
        /// The time of the server's last good answer by this machine's clock, in milliseconds since 1970.
        var answeredAt: UInt64
    }

    /// The facts that the present server tells.
    struct Reported: Hashable {
        var identity: String
        /// True if the data cannot come from another server by replication.
        var hasOwnData: Bool
        /// True if each write is on the server's disk before its answer.
        var writesThrough = false
        /// True if the server's clock ran ahead of time, so that it forgot entries early.
        var hasJumped = false
        /// The later of the server's time, without a jump, and this machine's. Milliseconds since 1970.
        var now: UInt64
        /// The distance of a new memory's start from the present.
        var lead = ReplayLimits.clockMargin
        /// The key of this run; nil if it holds no start.
        var run: MemoryStart?
        var data: MemoryStart?
        /// The key of the last run that this process knew.
        var last = LastRun.absent
    }

    enum LastRun: Hashable {
        case absent
        case start(MemoryStart)
        /// A replica knew that all data went to the present server.
        case moved

        init(_ reply: RedisReply) {
            self = reply.text == RedisKeys.movedMark ? .moved : MemoryStart(reply).map { .start($0) } ?? .absent
        }
    }

    /// The relation of the present server to the one that this process used last.
    enum Move: CaseIterable {
        /// It has the same place, or no server was used before.
        case none
        /// The last server itself tells that it handed over all data.
        case proven
        case unproven
        /// Entries are known to be lost on the way.
        case broken
    }

    /// The longest time for which a memory of this process counts beyond the present: an hour, the life of an ID token.
    /// This machine's clock may have been far ahead.
    static let greatestLead: UInt64 = 3_600_000

    static func judge(known: Known?, reported: Reported, moved: Move) -> MemoryJudgement {
        let isIntact = !reported.hasJumped && moved != .broken
        // After a loss, a memory must begin after every date of an entry that this process may have seen used.
        let least: UInt64?
        if let known {
            let answered = known.identity == reported.identity ? 0 : known.answeredAt + ReplayLimits.clockMargin
            least = min(max(known.start.completeSince + 1, answered), reported.now + greatestLead)
        } else {
            least = isIntact ? nil : reported.now
        }
        let present = reported.now + reported.lead
        // An older key is from a time when the data were here before.
        let run = reported.run.flatMap { $0.completeSince >= reported.data?.completeSince ?? 0 ? $0 : nil }
        if let run {
            if isIntact, continues(run, known, reported, moved) { return .continues(run) }
            // Another replica noticed the loss first. It may have noticed only an earlier one if the clock jumped since.
            if let least, run.isAfterLoss, run.completeSince >= max(least, isIntact ? 0 : present) {
                return .continues(run)
            }
        } else if isIntact, let data = reported.data, isMovedIntact(known, reported, moved) {
            var all = [data]
            if let known { all.append(known.start) }
            if case .start(let last) = reported.last { all.append(last) }
            let start = all.reduce(0) { max($0, $1.completeSince) }
            return .movedIntact(MemoryStart(completeSince: start, isAfterLoss: all.contains(where: \.isAfterLoss)))
        }
        let start = max(present, least ?? 0, reported.data.map { $0.completeSince + 1 } ?? 0)
        let isAfterLoss = known != nil || reported.data != nil || moved == .broken
        return .lost(MemoryStart(completeSince: start, isAfterLoss: isAfterLoss))
    }

    /// True if the run's key is true also for this process's last memory.
    private static func continues(_ run: MemoryStart, _ known: Known?, _ reported: Reported, _ moved: Move) -> Bool {
        guard let known else { return true }
        if known.identity == reported.identity { return known.start == run }
        switch reported.last {
        case .absent: return false
        case .moved: return true
        case .start:
            if moved == .proven { return true }
            // A primary without replicas drops the name of its history after an hour. Nothing is lost by that.
            if reported.hasOwnData, known.identity.hasPrefix(reported.identity) { return known.start == run }
            return isOnDisk(reported, moved)
        }
    }

    /// True if a new run has all data of the last memory.
    private static func isMovedIntact(_ known: Known?, _ reported: Reported, _ moved: Move) -> Bool {
        let isOnDisk = reported.run == nil && isOnDisk(reported, moved)
        guard known != nil else { return isOnDisk }
        // The data are handed over once: if another replica marked the last run, this run's key was lost since.
        guard case .start = reported.last else { return false }
        return moved == .proven || isOnDisk
    }

    /// True if the server started again with all its data.
    private static func isOnDisk(_ reported: Reported, _ moved: Move) -> Bool {
        reported.hasOwnData && reported.writesThrough && moved == .none
    }
}

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
    var revocations: String { prefix + "revocations" }
    func entry(_ key: ReplayKey) -> String { prefix + key.hexadecimal }

    init(_ kind: ReplayStoreURL.Kind) { prefix = kind == .cluster ? "{limited-login}:" : "limited-login:" }
}
