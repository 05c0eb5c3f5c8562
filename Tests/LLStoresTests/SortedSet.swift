import LLHTTP

@testable import LLStores

/// A server's sorted set of revocations, with a clock that a test sets.
final class SortedSet {
    /// Microseconds since 1970.
    var clock = UInt64(Replica.now) * 1_000_000
    var members: [(score: Double, member: [UInt8])] = []
    var texts: Set<String> { Set(members.map { String(decoding: $0.member, as: UTF8.self) }) }
    /// Answers a command that reads, in place of the set.
    var page: (([String]) -> RedisReply)?
    /// Refuses each command that writes.
    var refusal: RedisReply?

    func answer(_ commands: [[String]]) -> [RedisReply] {
        commands.map { words in
            switch words[0] {
            case "TIME":
                return .array([clock / 1_000_000, clock % 1_000_000].map { .string(Array("\($0)".utf8)) })
            case "ZADD":
                if let refusal { return refusal }
                for index in stride(from: 2, to: words.count, by: 2) {
                    let member = Array(words[index + 1].utf8)
                    members.removeAll { $0.member == member }
                    members.append((Double(words[index]) ?? .nan, member))
                }
            case "ZREMRANGEBYSCORE": members.removeAll { $0.score < Double(words[3].dropFirst()) ?? .nan }
            case "ZREM": members.removeAll { words[2...].contains(String(decoding: $0.member, as: UTF8.self)) }
            case "ZRANGEBYSCORE": return page?(words) ?? read(from: Double(words[2]) ?? .nan, Int(words[6]) ?? 0)
            default: break
            }
            return .integer(0)
        }
    }

    private func read(from score: Double, _ skipped: Int) -> RedisReply {
        let found = members.filter { $0.score >= score }.sorted { left, right in
            (left.score, String(decoding: left.member, as: UTF8.self))
                < (right.score, String(decoding: right.member, as: UTF8.self))
        }
        return .array(
            found.dropFirst(skipped).prefix(RedisRevocations.pageCount).flatMap { score, member -> [RedisReply] in
                [.string(member), .string(Array("\(UInt64(score))".utf8))]
            }
        )
    }
}

/// A replica's exchanges with that set, without a connection, and with a clock that a test moves.
final class Replica {
    /// The replicas' wall clock, in whole seconds since 1970.
    static let now: Int64 = 1_700_000_000

    let revocations: Revocations
    private let server: SortedSet
    private var exchanges: RedisRevocations
    private var moment = MonotonicInstant(nanoseconds: 1_000_000_000_000)
    private let given = Locked<[Bool]>([])
    private(set) var failures: [RedisFailure] = []

    init(_ server: SortedSet, capacity: Int = Revocations.defaultCapacity) {
        self.server = server
        revocations = Revocations(capacity: capacity, clock: { Self.now }, wake: {})
        exchanges = RedisRevocations(revocations, limits: ReplayLimits())
        renew()
    }

    var answers: [Bool] { given.withLock { $0 } }

    /// Connects for the first time or again.
    /// - Parameter run: The identity of the server's run.
    func renew(run: String = "a") {
        let start = MemoryStart(completeSince: 1, isAfterLoss: false)
        revocations.setLink(.up)
        exchanges.begin(run, start, ServerClock(milliseconds: server.clock / 1_000, at: moment))
    }

    func revoke(_ user: String, at moment: Int64 = now, kind: RevocationKind = .order) {
        revocations.revoke(app: "42".utf8.span, user: user.utf8.span, at: moment, kind: kind) { [given] answer in
            given.withLock { $0.append(answer) }
        }
    }

    func kind(of user: String) -> RevocationKind? {
        revocations.latest(app: "42".utf8.span, user: user.utf8.span)?.kind
    }

    func isRevoked(_ user: String) -> Bool {
        revocations.isRevoked(app: "42".utf8.span, user: user.utf8.span, issuedAt: Self.now)
    }

    /// Sends all commands that are due, and handles the answers.
    /// - Parameter limit: The greatest number of exchanges. Fewer are due at one moment, even with hostile answers.
    func turn(atMost limit: Int = 10_000) {
        for _ in 0..<limit {
            guard let commands = exchanges.next(moment) else { return }
            do throws(RedisFailure) {
                try exchanges.finish(server.answer(commands), moment)
            } catch {
                failures.append(error)
                exchanges.hold(moment)
            }
        }
    }

    /// Lets time pass for the server and these replicas, and lets them work. Other replicas stand still.
    static func pass(_ duration: Duration, _ replicas: Replica...) {
        var left = duration
        while left > .zero {
            left -= .milliseconds(50)
            replicas[0].server.clock += 50_000
            for replica in replicas {
                replica.moment = replica.moment + .milliseconds(50)
                replica.turn()
            }
        }
    }
}
