internal import LLSockets

/// The way to the node that a slot is on its way to.
///
/// While a slot moves, its owner sends on with ASK for each key that it does not have. The other node answers after
/// ASKING. If that node loses the entries that it accepted, the keys are incomplete with any later owner.
final class RedisDetour {
    private let finder: RedisFinder
    private let owner: RedisNode
    private var way: (channel: RedisChannel, node: RedisNode, history: String?)?
    private let trail: RedisTrail

    /// True if the owner sent on commands. The entries at the other node are lost if the slot stays with the owner.
    var hasTaken: Bool { !trail.isEmpty }

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
            lose()
            throw .memoryLost
        }
        try trail.note(try clock(of: channel, until: deadline), of: node, finder.configuration.limits)
        return replies
    }

    /// Records that the entries which the other node accepted are lost.
    func lose() { trail.hasLost = true }

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

/// The node that answered while the slot was on its way to it, for as long as the slot has one owner.
final class RedisTrail {
    private var identities: [RedisNode: String] = [:]
    private var clocks: [RedisNode: ServerClock] = [:]
    /// True if that node is known to have lost entries.
    var hasLost = false

    /// A slot is on its way to one node. If it is on its way to another one now, the earlier move was cancelled.
    func note(_ identity: String, of node: RedisNode) throws(RedisFailure) {
        guard isEmpty || identities[node] == identity else {
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

    /// The clock of that node when it answered last.
    func clock(of node: RedisNode) -> ServerClock? { clocks[node] }

    /// True if no such node is known.
    var isEmpty: Bool { identities.isEmpty }

    /// True if the owner of the slot lacks entries that the other node accepted. That node has them if it is the same
    /// server still. A third node, to which the slot went instead, lacks them.
    func lacks(_ identity: String, of node: RedisNode, isNewOwner: Bool) -> Bool {
        if hasLost { return true }
        guard let known = identities[node] else { return isNewOwner && !isEmpty }
        return known != identity
    }

    func forget() {
        (identities, clocks) = ([:], [:])
        hasLost = false
    }
}
