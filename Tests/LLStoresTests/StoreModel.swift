import LLHTTP

@testable import LLStores

/// Two servers, two sentinels and two replicas of the service: every decision is the real code's, time and connections are
/// the model's. Times are milliseconds.
struct StoreModel: Hashable {
    enum Event: Hashable {
        /// A nonce is issued by one replica of the service and used at one.
        case new(issuer: Int, at: Int)
        /// A nonce is used again. Its answer comes at once, or later.
        case again(Int, at: Int), send(Int, at: Int), receive(Int)
        case look(Int), cut(Int), restartService(Int)
        case pass(UInt64), gossip
        /// The other server takes over. The former primary takes writes until it is demoted.
        case takeOver, demote, stopReplication
        case kill, restart(Int, keeps: Bool), flush, jump
        case beginMove, endMove, cancelMove
    }

    struct Server: Hashable {
        var run: String
        var isPrimary = true
        var history: String?
        var former: String?
        var isUp = true
        var keys: [String: String] = [:]
        var lead: UInt64 = 0
        var startedAt: UInt64 = 0
        /// The owner of the slot, by this node's map.
        var owner = 0
        var isMigrating = false
    }

    struct Service: Hashable {
        var memory: RedisMemory
        var places: RedisPlaces
        var session: Session?
    }

    struct Session: Hashable {
        let node: Int
        let openedAt: MonotonicInstant
        var sent: [Sent] = []
    }

    struct Sent: Hashable {
        let nonce: Int
        let at: MonotonicInstant
        let replies: [RedisReply]
    }

    struct Nonce: Hashable {
        let date: UInt64
        var accepted = 0
    }

    private static let base: UInt64 = 1_000_000_000
    /// The time between two faults. After a second loss within the time by which clocks differ, a replica that missed the
    /// first one may accept a nonce that was dated ahead for it.
    private static let pace: UInt64 = 100
    private static let nodes = [1, 2].map { RedisNode(host: "s", port: $0) }

    let kind: ReplayStoreURL.Kind
    /// True if writes are on the disk before their answer.
    let writesThrough: Bool
    private let leavingTime: Duration
    private let skew: Int64
    private(set) var now: UInt64 = 100_000
    private(set) var servers = [Server(run: "a0"), Server(run: "b0", isPrimary: false)]
    private(set) var services: [Service]
    /// The epoch and the primary of each sentinel.
    private var told = [[1, 0], [1, 0]]
    private var switchedAt: UInt64 = 0
    private var isReplicating = true
    private var moveBeganAt: UInt64 = 0
    private var jumpedAt: UInt64 = 0
    private(set) var nonces: [Nonce] = []
    private var names = 0xC0

    /// - Parameters:
    ///   - skew: the lead of the second replica's clock.
    ///   - isMoving: the second server is no replica, but a node to which the slot may move.
    ///   - tookOver: that node took over from another server long ago.
    init(
        _ kind: ReplayStoreURL.Kind,
        leaving: Duration = ReplayLimits().leavingTime,
        skew: Int64 = 0,
        writesThrough: Bool = false,
        isMoving: Bool = false,
        tookOver: Bool = false
    ) {
        (self.kind, self.skew, self.writesThrough) = (kind, skew, writesThrough)
        leavingTime = leaving
        services = []
        services = [makeService(0), makeService(1)]
        if isMoving { (servers[1].isPrimary, isReplicating) = (true, false) }
        if tookOver { servers[1].history = "b1" }
        // Both replicas have used the first server for long.
        for _ in 0..<2 {
            for service in services.indices { open(service) }
            now += 20_000
        }
        for service in services.indices { open(service) }
    }

    /// The second replica asks the second sentinel first.
    private func makeService(_ index: Int) -> Service {
        let order = index == 0 ? Self.nodes : Self.nodes.reversed()
        return Service(memory: RedisMemory(kind, limits), places: RedisPlaces(order: order))
    }

    private var limits: ReplayLimits {
        var limits = ReplayLimits()
        limits.leavingTime = leavingTime
        return limits
    }

    private var instant: MonotonicInstant { MonotonicInstant(nanoseconds: now * 1_000_000) }
    private func wall(_ service: Int) -> UInt64 { UInt64(Int64(Self.base + now) + (service == 1 ? skew : 0)) }
    var isSentinel: Bool { if case .sentinel = kind { true } else { false } }
    /// The server that logins should use.
    private var primary: Int { isSentinel ? told[0][1] : servers[0].owner == 0 && servers[1].owner == 0 ? 0 : 1 }
    private var isTaken: Bool { servers[1 - primary].isUp && servers[1 - primary].isPrimary }
}

// MARK: A replica of the service

extension StoreModel {
    /// Opens a session, as RedisConnector does.
    private mutating func open(_ service: Int) {
        services[service].session = nil
        guard let (node, name) = find(service), servers[node].isUp, servers[node].isPrimary else { return }
        do throws(RedisFailure) { try greet(service, node, handedOverBy: name) } catch { note(error, service, node) }
    }

    private mutating func note(_ failure: RedisFailure, _ service: Int, _ node: Int) {
        services[service].session = nil
        guard let target = failure.target else { return }
        let identity = facts(Int(target.port) - 1).identity
        services[service].memory.noteMove(from: Self.nodes[node], to: target, identity: identity, now: instant)
    }

    private mutating func find(_ service: Int) -> (Int, String?)? {
        switch kind {
        case .single: return (0, nil)
        case .sentinel:
            for sentinel in services[service].places.order {
                let view = told[Int(sentinel.port) - 1]
                do throws(RedisFailure) {
                    try services[service].places.require(Int64(view[0]))
                    guard servers[view[1]].isUp, servers[view[1]].isPrimary else { throw .readOnly }
                    services[service].places.trust(Int64(view[0]), of: sentinel)
                    return (view[1], nil)
                } catch { services[service].places.note(error, of: sentinel) }
            }
            return nil
        case .cluster:
            let last = services[service].memory.recent(at: instant)
            for start in (last.map { [$0.node] } ?? []) + Self.nodes {
                let first = Int(start.port) - 1
                let owner = servers[first].owner
                guard servers[first].isUp, servers[owner].isUp, servers[owner].owner == owner else { continue }
                let isProof = first != owner && last?.node == start && servers[first].isPrimary
                return (owner, isProof ? last?.handedOver(facts(first)) : nil)
            }
            return nil
        }
    }

    private func facts(_ node: Int) -> RedisServerFacts {
        let (server, uptime) = (servers[node], (now - servers[node].startedAt) / 1_000)
        return RedisServerFacts(
            server.run,
            history: server.history,
            uptime: uptime,
            formerReplicationID: server.former
        )
    }

    private mutating func greet(_ service: Int, _ node: Int, handedOverBy name: String?) throws(RedisFailure) {
        let facts = facts(node)
        var meeting = RedisMemory.Meeting(
            node: Self.nodes[node],
            facts: facts,
            handedOverBy: name,
            clock: ServerClock(milliseconds: Self.base + now + servers[node].lead, at: instant),
            unixMilliseconds: wall(service)
        )
        meeting.writesThrough =
            writesThrough && facts.history == nil && services[service].memory.last?.known.identity != facts.identity
        if kind == .cluster { _ = try ask(["GET", services[service].memory.keys.absent], node) }
        var memory = services[service].memory
        defer { services[service].memory = memory }
        try memory.meet(meeting) { words throws(RedisFailure) in try ask(words, node) }
        services[service].session = Session(node: node, openedAt: instant)
    }

    private mutating func ask(_ words: [String], _ node: Int) throws(RedisFailure) -> RedisReply {
        try answer(words, node).orFailure(of: words[0])
    }

    /// Sends a question about a nonce, and the checks after it, as RedisSession does.
    private mutating func send(_ nonce: Int, _ service: Int) {
        let age = isSentinel ? limits.sentinelAge : limits.connectionAge
        if services[service].session.map({ instant > $0.openedAt + age }) ?? true { open(service) }
        guard let session = services[service].session else { return }
        let (memory, key) = (services[service].memory, ReplayKey(high: UInt64(nonce), low: 0))
        let entry = ReplayEntry(kind: .nonce, key: key, issuedAt: nonces[nonce].date, keepUntil: .max)
        guard memory.answer(about: entry, now: wall(service)) == nil else { return }
        let commands = [["SET", "nonce\(nonce)", "1", "NX"]] + memory.checks
        let replies = commands.map { answer($0, session.node) }
        let sent = Sent(nonce: nonce, at: instant, replies: replies)
        services[service].session?.sent.append(sent)
    }

    /// The checks of a batch without a question.
    private mutating func read(_ service: Int) {
        guard let node = services[service].session?.node else { return }
        do throws(RedisFailure) {
            var replies: [RedisReply] = []
            for check in services[service].memory.checks { replies.append(try ask(check, node)) }
            let present = wall(service)
            try services[service].memory.check(replies, sentAt: instant, now: instant, unixMilliseconds: present)
        } catch { note(error, service, node) }
    }

    private mutating func receive(_ service: Int) {
        guard let session = services[service].session, let sent = session.sent.first else { return }
        services[service].session?.sent.removeFirst()
        do throws(RedisFailure) {
            for reply in sent.replies.dropFirst() { _ = try reply.orFailure(of: "GET") }
            let present = wall(service)
            try services[service].memory.check(sent.replies, sentAt: sent.at, now: instant, unixMilliseconds: present)
            let reply = try sent.replies[0].orFailure(of: "SET")
            if reply == .status("OK") { nonces[sent.nonce].accepted += 1 }
        } catch { note(error, service, session.node) }
    }
}

// MARK: The servers

extension StoreModel {
    private mutating func answer(_ words: [String], _ node: Int) -> RedisReply {
        let server = servers[node]
        func string(_ text: String) -> RedisReply { .string(Array(text.utf8)) }
        switch words[0] {
        case "TIME": return .array([string("\((Self.base + now + server.lead) / 1_000)"), string("0")])
        case "INFO":
            let offset = server.history == nil ? "-1" : "1"
            let role = server.isPrimary ? "master" : "slave"
            let name = server.history ?? "0"
            return string("role:\(role)\r\nmaster_replid:\(name)\r\nsecond_repl_offset:\(offset)")
        default: break
        }
        if kind == .cluster, server.owner != node || !server.isPrimary { return .redirect(nil) }
        if server.isMigrating, server.keys[words[1]] == nil { return .redirect(Self.nodes[1 - node]) }
        if words[0] == "GET" { return server.keys[words[1]].map(string) ?? .null }
        guard server.isPrimary else { return .error(code: "READONLY") }
        if words.contains("NX"), server.keys[words[1]] != nil { return .null }
        servers[node].keys[words[1]] = words[2]
        replicate(node)
        return .status("OK")
    }

    private mutating func replicate(_ node: Int) {
        if isReplicating, !servers[1 - node].isPrimary { servers[1 - node].keys = servers[node].keys }
    }

    private mutating func makeName() -> String {
        names += 1
        return String(names, radix: 16)
    }

    private mutating func disconnect(_ node: Int) {
        for service in services.indices where services[service].session?.node == node {
            services[service].session = nil
        }
    }

    /// Applies an event.
    mutating func apply(_ event: Event) {
        switch event {
        case .new(let issuer, let service):
            guard let start = services[issuer].memory.start else { return }
            nonces.append(Nonce(date: start.nonceDate(wall(issuer))))
            apply(.again(nonces.count - 1, at: service))
        case .again(let nonce, let service):
            send(nonce, service)
            while services[service].session?.sent.isEmpty == false { receive(service) }
        case .send(let nonce, let service): send(nonce, service)
        case .receive(let service): receive(service)
        case .look(let service): open(service)
        case .cut(let service): services[service].session = nil
        case .restartService(let service):
            services[service] = makeService(service)
        case .pass(let time):
            now += time
            for service in services.indices { services[service].session?.sent = [] }
            if now > switchedAt + 2_000 { told[1] = told[0] }
            // Each replica reads revocations or tries to connect once a second, and so notices a move or a jump.
            for service in services.indices where kind == .cluster {
                if services[service].session == nil { open(service) } else { read(service) }
            }
        case .gossip: told[1] = told[0]
        default: change(event)
        }
    }

    private mutating func change(_ event: Event) {
        now += Self.pace
        let (old, new) = (primary, 1 - primary)
        switch event {
        case .takeOver:
            servers[new].former = servers[old].run + "a"
            (servers[new].history, servers[new].isPrimary, servers[new].owner) = (makeName(), true, new)
            (told[0], switchedAt) = ([told[0][0] + 1, new], now)
        case .demote:
            (servers[new].isPrimary, servers[new].isUp, servers[new].owner) = (false, true, old)
            (servers[new].keys, isReplicating) = (servers[old].keys, true)
        case .stopReplication: isReplicating = false
        case .kill:
            servers[old].isUp = false
            disconnect(old)
        case .restart(let node, let keeps):
            disconnect(node)
            (servers[node].run, servers[node].history, servers[node].former) = (makeName(), nil, nil)
            (servers[node].isUp, servers[node].startedAt) = (true, now)
            if !keeps { servers[node].keys = [:] }
            replicate(node)
        case .flush:
            servers[old].keys = [:]
            replicate(old)
        case .jump:
            jumpedAt = now
            servers[old].lead += 3_600_000
            servers[old].keys = servers[old].keys.filter { !$0.key.hasPrefix("nonce") }
            replicate(old)
        case .beginMove:
            (servers[old].isMigrating, moveBeganAt) = (true, now)
            for key in servers[old].keys.keys where key.hasPrefix("nonce") {
                servers[new].keys[key] = servers[old].keys.removeValue(forKey: key)
            }
        case .endMove:
            servers[new].keys.merge(servers[old].keys) { _, moved in moved }
            (servers[old].keys, servers[old].isMigrating) = ([:], false)
            for node in servers.indices { servers[node].owner = new }
        default:
            servers[old].isMigrating = false
            // Within a second the replicas that noticed the move try again.
            for service in services.indices where services[service].session == nil { open(service) }
        }
    }
}

// MARK: Exploration

extension StoreModel {
    /// The events that may come next.
    /// - Parameter isSplit: questions wait for their answers, and other events come between.
    func events(isSplit: Bool) -> [Event] {
        var events: [Event] =
            nonces.count < 2 ? [0, 1].flatMap { [.new(issuer: 0, at: $0), .new(issuer: 1, at: $0)] } : []
        for service in services.indices {
            events += nonces.indices.map { isSplit ? .send($0, at: service) : .again($0, at: service) }
            events += [.look(service)] + (isSplit ? [.receive(service), .cut(service)] : [])
            // A replica that first uses a server after a jump of its clock, or after a move, cannot see that.
            if !servers[primary].isMigrating, servers.allSatisfy({ $0.lead == 0 }) {
                events.append(.restartService(service))
            }
        }
        events += isSentinel ? [.pass(2_000), .pass(3_000), .gossip] : [.pass(6_000)]
        let (isUp, isMoving) = (servers[primary].isUp, kind == .cluster && !isReplicating && isTaken)
        if isMoving || servers[primary].isMigrating {
            // The replicas overlook a move that is over within a second.
            let isNoticed = now >= moveBeganAt + 2_000
            let mayMove = now >= jumpedAt + 2_000
            events += servers[primary].isMigrating ? [.endMove] : mayMove ? [.beginMove] : []
            if servers[primary].isMigrating, isNoticed {
                events += [.cancelMove, .restart(1 - primary, keeps: false)]
            }
        } else if kind != .single {
            if isTaken || !servers[1 - primary].isUp { events.append(.demote) } else { events.append(.takeOver) }
            events += (isReplicating ? [.stopReplication] : []) + (isUp ? [.kill] : [])
        }
        if isUp, services.allSatisfy({ $0.memory.last?.node == Self.nodes[primary] }) { events.append(.jump) }
        return events + [.restart(primary, keeps: false), .restart(primary, keeps: true)] + (isUp ? [.flush] : [])
    }

    /// True if each replica accepts a new nonce, once, at most so many seconds after the last fault.
    func recovers(within seconds: Int) -> Bool {
        var model = self
        if !servers[primary].isUp { model.apply(.restart(primary, keeps: true)) }
        if servers[primary].isMigrating { model.apply(.endMove) }
        if model.isTaken, model.isSentinel || model.isReplicating { model.apply(.demote) }
        for _ in 0..<seconds {
            model.apply(.pass(1_000))
            for service in model.services.indices { model.open(service) }
        }
        for service in model.services.indices {
            let count = model.nonces.count
            model.apply(.new(issuer: service, at: service))
            guard model.nonces.count > count, model.nonces[count].accepted == 1 else { return false }
        }
        return true
    }
}
