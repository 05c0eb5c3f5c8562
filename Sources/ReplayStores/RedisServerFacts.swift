/// What a Redis or Valkey server says about itself in INFO, as far as it matters here.
package struct RedisServerFacts: Equatable, Sendable {
    /// Changes with every start of the server, and with every time it takes over from another.
    package let identity: String
    /// Whether every write is on disk before it is answered, as far as INFO tells: the rest is the setting appendfsync.
    let appendsToFile: Bool
    /// Whether its data may come from another server by replication, as after a failover.
    let tookOver: Bool

    /// Reads INFO; refuses a server that cannot be relied on.
    package init(info: String) throws(RedisFailure) {
        var fields: [Substring: Substring] = [:]
        for line in info.split(whereSeparator: \.isNewline) {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields[line[..<colon]] = line[line.index(after: colon)...]
        }
        guard let runID = fields["run_id"], Self.isIdentifier(runID) else { throw .malformedAnswer }
        let mode = fields["redis_mode"] ?? fields["server_mode"] ?? "standalone"
        guard mode == "standalone" else { throw .unsupportedMode(mode == "cluster" ? "cluster" : "sentinel") }
        guard fields["loading"] ?? "0" == "0" else { throw .loading }
        guard fields["role"] ?? "master" == "master" else { throw .readOnly }
        let policy = fields["maxmemory_policy"] ?? "unknown"
        // A server that does not say may do either.
        guard fields["maxmemory"] == "0" || policy == "noeviction" else {
            throw .evicting(policy: Self.policies.contains(String(policy)) ? String(policy) : "unknown")
        }
        appendsToFile = fields["aof_enabled"] == "1"
        tookOver = fields["second_repl_offset"] ?? "0" != "-1"
        guard tookOver else {
            identity = String(runID)
            return
        }
        // The same process may have been a replica in between, and so have other data under its old name.
        guard let history = fields["master_replid"], Self.isIdentifier(history) else { throw .malformedAnswer }
        identity = "\(runID):\(history)"
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
