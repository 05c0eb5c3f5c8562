import LLTestSupport

@testable import LLHTTP

/// Two Redis servers, and two sentinels, in a ``Simulation``. Connections and bytes are real; a reply comes late or never.
final class SimulatedRedis {
    enum Kind: CaseIterable { case single, onDisk, sentinel, cluster }

    struct Data {
        var strings: [String: (value: String, end: UInt64)] = [:]
        var scores: [String: Double] = [:]
    }

    final class Link {
        let stream: ClientStream
        var isOpen = true
        /// The moment of its last step: a connection keeps its order.
        var last: UInt64 = 0
        init(_ descriptor: Int32) { stream = ClientStream(Socket(takingOwnershipOf: descriptor)) }
    }

    struct Server {
        var data = Data()
        var run: String
        var history: String?
        var formerHistory = "0"
        var isPrimary: Bool
        var isUp = true
        var isHung = false
        /// Milliseconds that its clock is ahead.
        var lead: UInt64 = 0
        var startedAt: UInt64 = 0
        var links: [Link] = []
    }

    let kind: Kind
    /// Both are given with the places in this order, and in the other one.
    let urls: [String]
    private let time: SimulatedTime
    /// Two servers, and two sentinels.
    private(set) var servers = (0..<4).map { Server(run: "a\($0)", isPrimary: $0 != 1) }
    private(set) var primary = 0
    /// The epoch and the primary of each sentinel.
    private var told = [(1, 0), (1, 0)]
    private var names = 0xA0
    private var generation = 0
    private var replicatedAt: UInt64 = 0
    /// The greatest time of one step of a reply, in nanoseconds. The opening after a loss takes 15 replies in 500 ms.
    private let slowness = UInt64.random(in: 1...8_000_000)

    init(_ kind: Kind, _ time: SimulatedTime) {
        (self.kind, self.time) = (kind, time)
        let (one, two) = ("127.0.0.1:1", "127.0.0.1:2")
        urls =
            switch kind {
            case .single, .onDisk: ["redis://\(one)", "redis://\(one)"]
            case .cluster: ["redis+cluster://\(one),\(two)", "redis+cluster://\(two),\(one)"]
            case .sentinel: ["redis+sentinel://\(one)3,\(one)4/main", "redis+sentinel://\(one)4,\(one)3/main"]
            }
        time.listener = { [unowned self] port, descriptor in
            let index = Int(port) % 10 - 1
            if servers[index].isUp { servers[index].links.append(Link(descriptor)) }
            return servers[index].isUp
        }
    }

    // MARK: Connections

    /// Takes the bytes that have arrived. They are carried out and answered later.
    func takeInput() {
        for index in servers.indices where !servers[index].isHung {
            for link in servers[index].links {
                var buffer = [UInt8](repeating: 0, count: 65_536)
                switch try? link.stream.receive(into: &buffer) {
                case .bytes(let count):
                    let commands = Self.commands(String(decoding: buffer[..<count], as: UTF8.self))
                    step(link) { [self] in carryOut(commands, index, link) }
                case .wantRead, .wantWrite: break
                default: link.isOpen = false
                }
            }
            servers[index].links.removeAll { !$0.isOpen }
        }
    }

    private func step(_ link: Link, _ action: @escaping () -> Void) {
        link.last = max(link.last + 1, time.now + .random(in: 1...slowness))
        time.after(link.last - time.now) { if link.isOpen { action() } }
    }

    private func carryOut(_ commands: [[String]], _ index: Int, _ link: Link) {
        guard !servers[index].isHung else { return step(link) { [self] in carryOut(commands, index, link) } }
        let reply = commands.map { answer($0, index) }.joined()
        if commands.contains(where: { ["SET", "ZADD", "ZREM"].contains($0[0]) }) { replicate(index) }
        step(link) { _ = try? link.stream.send(Array(reply.utf8), from: 0) }
    }

    /// The words of whole commands, none of which has a line's end.
    private static func commands(_ text: String) -> [[String]] {
        text.split(separator: "\r\n").reduce(into: []) { commands, line in
            if line.hasPrefix("*") { commands.append([]) }
            if !line.hasPrefix("*"), !line.hasPrefix("$") { commands[commands.count - 1].append(String(line)) }
        }
    }

    func cut(_ index: Int) {
        for link in servers[index].links { link.isOpen = false }
        servers[index].links = []
    }

    // MARK: Commands

    private func answer(_ words: [String], _ index: Int) -> String {
        let server = servers[index]
        let wall = (time.now + Simulation.base) / 1_000_000 + server.lead
        func array(_ words: [String]) -> String { ScriptedRedis.array(words.map(ScriptedRedis.string)) }
        switch words[0] {
        case "SENTINEL":
            let (epoch, primary) = told[index - 2]
            return array(["ip", "127.0.0.1", "port", "\(primary + 1)", "config-epoch", "\(epoch)"])
        case "CLUSTER":
            let node = ScriptedRedis.array([ScriptedRedis.string("127.0.0.1"), ":\(primary + 1)\r\n"])
            return ScriptedRedis.array([ScriptedRedis.array([":0\r\n", ":16383\r\n", node])])
        case "TIME": return array(["\(wall / 1_000)", "\(wall % 1_000 * 1_000)"])
        case "ROLE": return array([server.isPrimary ? "master" : "slave"])
        case "CONFIG": return array(["appendfsync", "always"])
        case "INFO": return info(server)
        default: break
        }
        if kind == .cluster, !server.isPrimary { return "-MOVED 16139 127.0.0.1:\(primary + 1)\r\n" }
        let known = server.data.strings[words[1]].flatMap { $0.end > wall ? $0.value : nil }
        if words[0] == "GET" { return known.map(ScriptedRedis.string) ?? "$-1\r\n" }
        if words[0] == "ZRANGEBYSCORE" {
            let least = Double(words[2]) ?? 0
            let found = server.data.scores.filter { $0.value >= least }.sorted {
                ($0.value, $0.key) < ($1.value, $1.key)
            }
            return array(found.dropFirst(Int(words[6]) ?? 0).prefix(512).flatMap { [$0.key, "\(UInt64($0.value))"] })
        }
        guard server.isPrimary else { return "-READONLY a replica\r\n" }
        switch words[0] {
        case "SET":
            if words.contains("NX"), known != nil { return "$-1\r\n" }
            let life = words.firstIndex(of: "PX").flatMap { UInt64(words[$0 + 1]) }
            servers[index].data.strings[words[1]] = (words[2], life.map { wall + $0 } ?? .max)
            return "+OK\r\n"
        case "ZADD":
            for place in stride(from: 2, to: words.count, by: 2) {
                servers[index].data.scores[words[place + 1]] = Double(words[place])
            }
        case "ZREM": for member in words[2...] { servers[index].data.scores[member] = nil }
        default: break
        }
        return ":0\r\n"
    }

    private func info(_ server: Server) -> String {
        let facts = [
            "run_id:\(server.run)", "uptime_in_seconds:\((time.now - server.startedAt) / 1_000_000_000)",
            "redis_mode:\(kind == .cluster ? "cluster" : "standalone")", "maxmemory:0",
            "aof_enabled:\(kind == .onDisk ? 1 : 0)", "role:\(server.isPrimary ? "master" : "slave")",
            "master_replid:\(server.history ?? server.run + "a")", "master_replid2:\(server.formerHistory)",
            "second_repl_offset:\(server.history == nil ? -1 : 1)",
        ]
        return ScriptedRedis.string(facts.joined(separator: "\r\n"))
    }

    // MARK: Faults

    /// The replica gets the data of this moment a little later.
    private func replicate(_ index: Int) {
        guard kind == .sentinel || kind == .cluster, index == primary, !servers[1 - index].isPrimary else { return }
        let (data, generation) = (servers[index].data, generation)
        replicatedAt = max(replicatedAt + 1, time.now + .random(in: 1...2_000_000_000))
        time.after(replicatedAt - time.now) { [self] in
            if self.generation == generation { servers[1 - index].data = data }
        }
    }

    private func makeName() -> String {
        names += 1
        return String(names, radix: 16)
    }

    /// The replica becomes the primary. With Sentinel the former one takes writes until it is demoted.
    func takeOver() {
        let (old, new) = (primary, 1 - primary)
        generation += 1
        servers[new].formerHistory = servers[old].history ?? servers[old].run + "a"
        (servers[new].history, servers[new].isPrimary, primary) = (makeName(), true, new)
        let news = (told[0].0 + 1, new)
        told[0] = news
        time.after(.random(in: 0...2_000_000_000)) { [self] in if told[1].0 < news.0 { told[1] = news } }
        if kind == .cluster { demote() }
    }

    /// The former primary becomes a replica.
    func demote() {
        let old = 1 - primary
        (servers[old].isPrimary, servers[old].data) = (false, servers[primary].data)
        if Bool.random() { cut(old) }
    }

    func kill(_ index: Int) {
        servers[index].isUp = false
        cut(index)
    }

    /// - Parameter data: what it has still; nil for all, as a server that writes through has in any case.
    func restart(_ index: Int, with data: Data?) {
        generation += 1
        (servers[index].run, servers[index].history, servers[index].formerHistory) = (makeName(), nil, "0")
        (servers[index].isUp, servers[index].startedAt) = (true, time.now)
        if kind != .onDisk, let data { servers[index].data = data }
        if index == primary { return replicate(index) }
        // It takes writes until the sentinels demote it.
        time.after(.random(in: 0...(kind == .sentinel ? 3_000_000_000 : 1))) { [self] in
            if index != primary { demote() }
        }
    }

    func flush() {
        servers[primary].data = Data()
        replicate(primary)
    }

    func hang(_ index: Int, _ isHung: Bool) { servers[index].isHung = isHung }

    func setClock(_ index: Int, ahead milliseconds: UInt64) { servers[index].lead = milliseconds }
}
