internal import LLHTTP

/// Finds the server that holds the keys, in a cluster or through sentinels, and opens the connections.
///
/// Only the store's thread uses it. Each session asks anew, so that it ends at the server that holds the keys now.
final class RedisFinder {
    /// The greatest number of steps from node to node in one search: 5. A correct map needs one.
    private static let stepLimit = 5
    /// The most nodes or sentinels that one search begins with: 4. The next search goes on with the others, so an outage
    /// makes no storm of connections.
    private static let startLimit = 4

    /// A connection to the server that holds the keys. `handedOverBy` is the name of the last owner's history (see
    /// ``RedisServerFacts/replicationID``) if that server still is the primary that it was, and itself tells that the keys
    /// now belong to another: they were moved, and none was lost.
    typealias Found = (channel: RedisChannel, handedOverBy: String?)

    private let configuration: RedisReplayStore.Configuration
    private let names = NameResolver()
    private let signal: WakeSignal
    private var places: RedisPlaces

    init(_ configuration: RedisReplayStore.Configuration, _ signal: WakeSignal) {
        self.configuration = configuration
        self.signal = signal
        places = RedisPlaces(order: configuration.url.places)
    }

    /// - Parameter last: the server that held the keys last, if that is not long ago.
    func find(after last: RedisLastServer?, until deadline: MonotonicInstant) throws(RedisFailure) -> Found {
        var starts = places.order
        // Only the last owner can tell that it handed the keys over.
        if let last, starts.contains(last.node) { starts.prefer(last.node) }
        var failure: RedisFailure?
        for start in starts.prefix(Self.startLimit) {
            do throws(RedisFailure) {
                switch configuration.url.kind {
                case .single: return (try open(start, until: deadline).introduced(until: deadline), nil)
                case .cluster: return try follow(from: start, last, until: deadline)
                case .sentinel(let master): return try ask(start, master, until: deadline)
                }
            } catch {
                places.note(error, of: start)
                // The first failure is reported, because later ones may only lack time.
                failure = failure ?? error
            }
            guard MonotonicClock.now() < deadline else { break }
        }
        throw failure ?? .timedOut
    }

    /// The same as ``RedisServerFacts/identity`` of a cluster's node; nil if it does not tell.
    func identity(of node: RedisNode) -> String? {
        let end = soon(.never)
        let info = try? open(node, through: urlPlace(for: node), until: end).introduced(until: end).info(until: end)
        return info.flatMap { try? RedisServerFacts(info: $0, isInCluster: true).identity }
    }

    /// The time at which a search goes on with the next node or sentinel if one hangs.
    private func soon(_ deadline: MonotonicInstant) -> MonotonicInstant {
        min(deadline, MonotonicClock.now() + configuration.limits.connectTimeout / 2)
    }

    /// A connection over which no credentials were sent.
    private func open(
        _ node: RedisNode,
        through start: RedisNode? = nil,
        until deadline: MonotonicInstant
    ) throws(RedisFailure) -> RedisChannel {
        do throws(ClientError) {
            let stream =
                node.isSocket
                ? try ClientStream.open(socket: node.host)
                : try ClientStream.open(node.host, port: node.port, names: names, until: deadline)
            if let context = configuration.tls {
                try stream.secure(context, hostName: node.certificateName(through: start), until: deadline)
            }
            return RedisChannel(stream, signal, node, configuration)
        } catch {
            throw RedisFailure(error, at: configuration.url.kind == .single ? nil : node)
        }
    }

    private func ask(
        _ sentinel: RedisNode,
        _ master: String,
        until deadline: MonotonicInstant
    ) throws(RedisFailure) -> Found {
        let soon = soon(deadline)
        let channel = try open(sentinel, until: soon)
        if let password = configuration.sentinelPassword {
            let reply = try channel.authenticate(configuration.sentinelUser ?? [], password, until: soon)
            guard case .status("OK") = reply else { throw .sentinelUnauthenticated }
        }
        let reply = try channel.call(["SENTINEL", "MASTER", master], until: soon)
        let (primary, epoch) = try reply.primary(toldBy: sentinel)
        try places.require(epoch)
        let found = try open(primary, through: sentinel, until: deadline).introduced(until: deadline)
        let role = try found.call(["ROLE"], until: deadline).orFailure(of: "ROLE")
        guard role.elements?.first?.text == "master" else { throw .readOnly }
        places.trust(epoch, of: sentinel)
        return (found, nil)
    }

    /// Follows the maps of the nodes to the owner of the keys, until a node names itself.
    private func follow(
        from start: RedisNode,
        _ last: RedisLastServer?,
        until deadline: MonotonicInstant
    ) throws(RedisFailure) -> Found {
        var node = start
        var handedOverBy: String?
        for _ in 0...Self.stepLimit {
            let soon = soon(deadline)
            let channel = try open(node, through: urlPlace(for: start), until: soon).introduced(until: soon)
            let reply = try channel.call(["CLUSTER", "SLOTS"], until: soon)
            if reply == .error(code: "ERR") { throw .isNoCluster }
            let map = try reply.orFailure(of: "CLUSTER").clusterMap(toldBy: node)
            guard let owner = map.owner else { throw .clusterDown }
            places.update(map.nodes, named: configuration.url.places)
            if owner == node {
                places.order.prefer(owner)
                return (channel, handedOverBy)
            }
            // A primary learns in one step that another took over its slots and that it is a replica now. So the last owner,
            // and no other node, proves that it handed the keys over if it is still a primary.
            handedOverBy = nil
            if let last, last.node == node {
                let info = try channel.info(until: soon)
                handedOverBy = (try? RedisServerFacts(info: info, isInCluster: true)).flatMap(last.handedOver)
            }
            node = owner
        }
        throw .clusterDisagrees
    }

    /// The first place of the URL with a name, for the certificates of nodes that are known by address.
    private func urlPlace(for start: RedisNode) -> RedisNode {
        let places = configuration.url.places
        return places.contains(start) && start.isNamed ? start : places.first(where: \.isNamed) ?? start
    }
}

/// The nodes or sentinels of a search, and what the sentinels told: pure.
struct RedisPlaces: Hashable {
    /// The order in which they are asked. One that fails goes to the end.
    var order: [RedisNode]
    /// The greatest epoch of a sentinel's answer. A sentinel that tells an older one has missed a failover.
    private var epoch: Int64 = 0
    /// The sentinels that told an older epoch when they answered last.
    private var outdated: Set<RedisNode> = []

    init(order: [RedisNode]) { self.order = order }

    mutating func note(_ failure: RedisFailure, of start: RedisNode) {
        order.removeAll { $0 == start }
        order.append(start)
        if failure == .sentinelOutdated { outdated.insert(start) } else { outdated.remove(start) }
        // Sentinels that were set up anew count from 0. So does this service if all of them say so.
        if outdated.isSuperset(of: order) { (epoch, outdated) = (0, []) }
    }

    func require(_ epoch: Int64) throws(RedisFailure) {
        guard epoch >= self.epoch else { throw .sentinelOutdated }
    }

    /// Takes the epoch of a sentinel that named a true primary.
    mutating func trust(_ epoch: Int64, of sentinel: RedisNode) {
        (self.epoch, outdated) = (epoch, [])
        order.prefer(sentinel)
    }

    /// Takes the nodes of a cluster's map. Known nodes keep their places in the order.
    mutating func update(_ nodes: [RedisNode], named: [RedisNode]) {
        order.removeAll { !nodes.contains($0) && !named.contains($0) }
        order += nodes.filter { !order.contains($0) }
    }
}

extension [RedisNode] {
    fileprivate mutating func prefer(_ node: RedisNode) {
        removeAll { $0 == node }
        insert(node, at: 0)
    }
}
