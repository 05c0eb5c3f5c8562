internal import LLSockets

/// Finds the server that holds the keys, in a cluster or through sentinels, and opens the connections.
///
/// Only the store's thread uses it. Each session asks anew, so that it ends at the server that holds the keys now.
final class RedisFinder {
    /// The greatest number of steps from node to node in one search: 5. A correct map needs one.
    private static let stepLimit = 5

    /// A connection to the server that holds the keys.
    struct Found {
        let channel: RedisChannel
        /// The name of the last owner's history (see ``RedisServerFacts/replicationID``) if that server still is the
        /// primary that it was, and itself tells that the keys now belong to another: they were moved, and none was lost.
        var handedOverBy: String?
    }

    let configuration: RedisReplayStore.Configuration
    private let names: NameResolver
    private let signal: WakeSignal
    /// The nodes or sentinels in the order in which they are asked. One that fails goes to the end.
    private var order: [RedisNode]
    /// The greatest epoch of a sentinel's answer. A sentinel that tells an older one has missed a failover.
    private var epoch: Int64 = 0

    init(_ configuration: RedisReplayStore.Configuration, _ names: NameResolver, _ signal: WakeSignal) {
        self.configuration = configuration
        self.names = names
        self.signal = signal
        order = configuration.url.places
    }

    /// - Parameter last: the server that held the keys last.
    func find(after last: RedisPast?, until deadline: MonotonicInstant) throws(RedisFailure) -> Found {
        let single = configuration.url.kind == .single
        if single { return Found(channel: try server(order[0], until: deadline)) }
        var failure: RedisFailure?
        for start in order {
            do throws(RedisFailure) {
                switch configuration.url.kind {
                case .single, .cluster: return try follow(from: start, last, until: deadline)
                case .sentinel(let master): return try ask(start, master, until: deadline)
                }
            } catch {
                // The first failure is reported, because later ones may only lack time.
                failure = failure ?? error
                order.removeAll { $0 == start }
                order.append(start)
            }
            guard MonotonicClock.now() < deadline else { break }
        }
        throw failure ?? .timedOut
    }

    /// Opens a connection to a server and sends the credentials.
    /// - Parameter start: the place of the URL through which the server was found.
    private func server(
        _ node: RedisNode,
        through start: RedisNode? = nil,
        until deadline: MonotonicInstant
    ) throws(RedisFailure) -> RedisChannel {
        let channel = try open(node, through: start, until: deadline)
        try channel.introduce(configuration, until: deadline)
        return channel
    }

    /// - Parameter start: the same as for ``server(_:through:until:)``. A certificate must be valid for the node's own
    ///   name. A node that is only told by its address must have a certificate for the name in the URL, if there is one:
    ///   the holder of that name is trusted.
    private func open(
        _ node: RedisNode,
        through start: RedisNode?,
        until deadline: MonotonicInstant
    ) throws(RedisFailure) -> RedisChannel {
        let isNamed = SocketAddress(host: node.host) == nil || start == nil
        do throws(StreamError) {
            let stream = try ClientStream.open(node.host, port: node.port, names: names, until: deadline)
            if let context = configuration.tls {
                let hostName = isNamed ? node.host : start?.host ?? node.host
                try stream.secure(context, hostName: hostName, until: deadline)
            }
            return RedisChannel(stream, signal, node)
        } catch {
            let failure = RedisFailure(error)
            guard configuration.url.kind != .single, case .connection(let reason) = failure else { throw failure }
            throw .connection("\(node): \(reason)")
        }
    }

    // MARK: Sentinel

    private func ask(
        _ sentinel: RedisNode,
        _ master: String,
        until deadline: MonotonicInstant
    ) throws(RedisFailure) -> Found {
        // One sentinel that hangs leaves time for the next.
        let soon = min(deadline, MonotonicClock.now() + configuration.limits.connectTimeout / 2)
        let channel = try open(sentinel, through: nil, until: soon)
        if let password = configuration.sentinelPassword {
            let words = [Array("AUTH".utf8), password]
            guard case .status("OK") = try channel.call(words, until: soon) else { throw .sentinelUnauthenticated }
        }
        channel.limits = .map
        let words = ["SENTINEL", "MASTER", master].map { Array($0.utf8) }
        let answer = try RedisSentinelAnswer(try channel.call(words, until: soon), toldBy: sentinel)
        guard answer.epoch >= epoch else { throw .readOnly }
        let found = try server(answer.primary, through: sentinel, until: deadline)
        found.limits = .map
        let role = try found.ask(["ROLE"], until: deadline)
        guard role.elements?.first?.text == "master" else { throw .readOnly }
        found.limits = .usual
        epoch = answer.epoch
        order.removeAll { $0 == sentinel }
        order.insert(sentinel, at: 0)
        return Found(channel: found)
    }

    // MARK: Cluster

    /// Follows the maps of the nodes to the owner of the keys, until a node names itself.
    private func follow(
        from start: RedisNode,
        _ last: RedisPast?,
        until deadline: MonotonicInstant
    ) throws(RedisFailure) -> Found {
        var node = start
        var handedOverBy: String?
        for _ in 0...Self.stepLimit {
            let channel = try server(node, through: urlPlace(for: start), until: deadline)
            let map = try map(channel, until: deadline)
            guard let owner = map.owner else { throw .clusterDown }
            let places = configuration.url.places
            order = map.nodes + order.filter { places.contains($0) && !map.nodes.contains($0) }
            if owner == node { return Found(channel: channel, handedOverBy: handedOverBy) }
            if let last, last.node == node { handedOverBy = try history(of: last, channel, until: deadline) }
            node = owner
        }
        throw .clusterDisagrees
    }

    private func map(_ channel: RedisChannel, until deadline: MonotonicInstant) throws(RedisFailure) -> RedisClusterMap
    {
        channel.limits = .map
        let reply = try channel.call(["CLUSTER", "SLOTS"].map { Array($0.utf8) }, until: deadline)
        channel.limits = .usual
        if case .error(let code) = reply {
            if code == "NOPERM" { throw .notPermitted(command: "CLUSTER") }
            throw code == "ERR" ? .unsupportedMode("cluster support") : RedisFailure(code: code)
        }
        return try RedisClusterMap(slots: reply, toldBy: channel.node)
    }

    /// The first place of the URL with a name, for the certificates of nodes that are known by address.
    private func urlPlace(for start: RedisNode) -> RedisNode {
        let places = configuration.url.places
        return places.contains(start) && SocketAddress(host: start.host) == nil
            ? start : places.first { SocketAddress(host: $0.host) == nil } ?? start
    }

    /// The name of a server's history if the server still is the primary that it was; nil otherwise.
    ///
    /// A primary learns in one step that another took over its slots and that it is a replica now. So a primary that
    /// knows another owner handed the keys over.
    private func history(
        of last: RedisPast,
        _ channel: RedisChannel,
        until deadline: MonotonicInstant
    ) throws(RedisFailure) -> String? {
        // A failover takes longer than this. After a longer time the keys may have gone through a third server.
        guard MonotonicClock.now() < last.seenAt + configuration.limits.handOverTime else { return nil }
        let info = try channel.info(until: deadline)
        guard let facts = try? RedisServerFacts(info: info, isInCluster: true), facts.identity == last.identity
        else { return nil }
        return facts.replicationID
    }

    /// Opens a connection to the node to which a slot is on its way.
    /// - Parameter owner: the node that named it. The cluster must know it as well.
    fileprivate func detour(
        to node: RedisNode,
        from owner: RedisNode,
        until deadline: MonotonicInstant
    ) throws(RedisFailure) -> RedisChannel {
        if !order.contains(node) {
            // A node without any slot is not in the map.
            let channel = try server(owner, through: urlPlace(for: owner), until: deadline)
            channel.limits = .map
            let shards = try channel.ask(["CLUSTER", "SHARDS"], until: deadline)
            let nodes = RedisClusterMap.nodes(shards: shards, toldBy: owner, isSecure: configuration.url.isSecure)
            guard nodes.contains(node) else { throw .clusterDisagrees }
        }
        return try server(node, through: urlPlace(for: node), until: deadline)
    }
}

/// The knowledge about the server that held the keys last.
struct RedisPast {
    let node: RedisNode
    let greeting: RedisGreeting
    /// The time of its last good answer.
    var seenAt: MonotonicInstant
    /// The server's run and history (see ``RedisServerFacts/identity``).
    var identity: String { greeting.life.identity }
}

/// The way to the node that a slot is on its way to.
///
/// While a slot moves, its owner sends on with ASK for each key that it does not have. The other node answers after
/// ASKING. If that node loses the entries that it accepted, the keys are incomplete with any later owner.
final class RedisDetour {
    private let finder: RedisFinder
    private let owner: RedisNode
    private var way: (channel: RedisChannel, node: RedisNode, history: String?)?
    private let trail: RedisTrail

    init(_ finder: RedisFinder, from owner: RedisNode, _ trail: RedisTrail) {
        self.finder = finder
        self.owner = owner
        self.trail = trail
    }

    /// The answers to these commands, in order.
    /// - Parameter target: the node in the owner's answer.
    func call(
        _ commands: [[[UInt8]]],
        at target: RedisNode,
        until deadline: MonotonicInstant
    ) throws(RedisFailure) -> [RedisReply] {
        let node = target.host.isEmpty ? RedisNode(host: owner.host, port: target.port) : target
        let (channel, _, history) = try way(to: node, until: deadline)
        for command in commands {
            channel.command([Array("ASKING".utf8)])
            channel.command(command)
        }
        channel.command(["INFO", "replication"].map { Array($0.utf8) })
        channel.command([Array("TIME".utf8)])
        var replies: [RedisReply] = []
        for _ in commands {
            guard case .status("OK") = try channel.answer(until: deadline) else { throw .loading }
            let reply = try channel.answer(until: deadline)
            // The slot is not on its way any longer.
            if case .redirect = reply { throw .moved }
            replies.append(reply)
        }
        guard let info = try channel.answer(until: deadline).text,
            try RedisServerFacts.history(info: info) == history
        else {
            trail.hasLost = true
            throw .memoryLost
        }
        try trail.note(try clock(of: channel, until: deadline), of: node, finder.configuration.limits)
        return replies
    }

    private func way(
        to node: RedisNode,
        until deadline: MonotonicInstant
    ) throws(RedisFailure) -> (channel: RedisChannel, node: RedisNode, history: String?) {
        if let way, way.node == node { return way }
        let channel = try finder.detour(to: node, from: owner, until: deadline)
        let facts = try RedisServerFacts(info: try channel.info(until: deadline), isInCluster: true)
        try trail.note(facts.identity, of: node)
        channel.command([Array("TIME".utf8)])
        try trail.note(try clock(of: channel, until: deadline), of: node, finder.configuration.limits)
        let way = (channel: channel, node: node, history: facts.history)
        self.way = way
        return way
    }

    /// Reads the answer to TIME.
    private func clock(of channel: RedisChannel, until deadline: MonotonicInstant) throws(RedisFailure) -> ServerClock {
        let reply = try channel.answer(until: deadline).orFailure(of: "TIME")
        guard let time = reply.serverMicroseconds else { throw .malformedAnswer }
        return ServerClock(milliseconds: time / 1_000, at: MonotonicClock.now())
    }
}

/// The nodes that answered while the slot was on its way to them, for as long as the slot has one owner.
final class RedisTrail {
    private var identities: [RedisNode: String] = [:]
    private var clocks: [RedisNode: ServerClock] = [:]
    /// True if such a node is known to have lost entries.
    var hasLost = false

    func note(_ identity: String, of node: RedisNode) throws(RedisFailure) {
        guard identities[node] ?? identity == identity else {
            hasLost = true
            throw .memoryLost
        }
        identities[node] = identity
    }

    /// A clock that jumped ahead forgot entries before their time.
    func note(_ clock: ServerClock, of node: RedisNode, _ limits: ReplayLimits) throws(RedisFailure) {
        if let last = clocks[node], last.hasJumped(to: clock.milliseconds, at: clock.at, limits) {
            hasLost = true
            throw .clockChanged
        }
        clocks[node] = clock
    }

    /// The clock of such a node when it answered last.
    func clock(of node: RedisNode) -> ServerClock? { clocks[node] }

    /// True if a new owner of the slot has all entries that such nodes accepted.
    func permits(_ identity: String, of node: RedisNode) -> Bool {
        !hasLost && (identities.isEmpty || identities[node] == identity)
    }

    /// True if the node at this address is known as another server.
    func contradicts(_ identity: String, of node: RedisNode) -> Bool {
        identities[node].map { $0 != identity } ?? false
    }

    func forget() {
        (identities, clocks) = ([:], [:])
        hasLost = false
    }
}
