import LLHTTP
import LLStores
import LLTestSupport
import LimitedLogin

/// Two replicas of the service, Redis, Facebook's keys, and clients, in simulated time. Every choice follows from one seed.
///
/// Faults come for some 50 s; then the simulation asks whether new logins are accepted, and lets the clients end.
final class Simulation {
    /// The wall clock less the monotonic one, in nanoseconds.
    static let base: UInt64 = 1_800_000_000_000_000_000
    private static let second: UInt64 = 1_000_000_000
    /// The time from the last fault until every new login is accepted. With Sentinel a new memory begins 17 s later, and
    /// tokens from before are refused under `replay: reject`.
    private var recovery: UInt64 { (redis.kind == .sentinel ? 25 : 15) * Self.second }
    /// They are made before a seed gives the random numbers.
    private static let keys = [StandInKeys.current, StandInKeys.previous]
    /// Codes by which a genuine login may be told to log in anew.
    private static let anew: Set<String> = ["nonce_used", "nonce_expired", "login_revoked", "token_replayed"]

    struct Revoked {
        let moment: Int64
        let service: SimulatedService
        let at: UInt64
        /// The time of the answer 204.
        var toldAt: UInt64?
    }

    private let time: SimulatedTime
    private let redis: SimulatedRedis
    private let limits: ReplayLimits
    private let source = ScriptedSource([keys[0]])
    private var signer = keys[0]
    private var services: [SimulatedService?] = [nil, nil]
    /// The wall clocks of the services, less the monotonic one.
    private let leads: [Int64]
    /// `replay: reject`
    private let rejects: Bool
    private var revoked: [Int: [Revoked]] = [:]
    private var loggedIn: [Int: Int] = [:]
    private var accepted: [String: Int] = [:]
    /// The faults of the store: their beginnings and ends.
    private var storeFaults: [ClosedRange<UInt64>] = []
    private var lastFault: UInt64 = 0
    private var isEnding = false

    private(set) var log: [String] = []
    private(set) var fault: String?
    private(set) var logins = 0
    /// Every answer and its time.
    private(set) var answers: [String] = []

    /// Runs a seed whole.
    init(seed: UInt64, _ kind: SimulatedRedis.Kind, _ limits: ReplayLimits = ReplayLimits()) throws {
        time = SimulatedTime(seed: seed)
        defer { time.end() }
        time.now = 1_000 * Self.second
        leads = (0..<2).map { _ in Int64(Self.base) + .random(in: -2_000_000_000...2_000_000_000) }
        rejects = Int.random(in: 0..<3) == 0
        (self.limits, redis) = (limits, SimulatedRedis(kind, time))
        for index in 0..<2 { try begin(index) }
        live()
        let last = services
        services = [nil, nil]
        for service in last { service?.kill() }
    }

    private func begin(_ index: Int) throws {
        services[index] = try SimulatedService(
            redis.urls[index],
            limits,
            source,
            lead: leads[index],
            rejects: rejects,
            time
        )
    }

    private func after(seconds: ClosedRange<Double>, _ action: @escaping () -> Void) {
        time.after(UInt64(Double.random(in: seconds) * 1e9), action)
    }

    private func live() {
        for user in 0..<8 { after(seconds: 8...20) { self.logIn(user) } }
        after(seconds: 20...21) { self.disturb(until: self.time.now + 50 * Self.second) }
        while fault == nil {
            var next = time.settle()
            redis.takeInput()
            if services.reduce(false, { ($1?.work() ?? false) || $0 }) { continue }
            for service in services { next = min(next, service?.due.nanoseconds ?? .max) }
            next = min(next, time.firstEvent ?? .max)
            if next == .max || isEnding && loggedIn.values.allSatisfy({ $0 > 0 }) { return }
            if isEnding, time.now > lastFault + 120 * Self.second { return fail("no login for ever: \(loggedIn)") }
            time.now = max(next, time.now + 1_000)
            time.runEvents()
        }
    }

    private func fail(_ text: String) { fault = fault ?? "\(time.now / 1_000_000 - 1_000_000) ms: \(text)" }

    private func note(_ text: String) { log.append("\(time.now / 1_000_000 - 1_000_000) ms: \(text)") }

    // MARK: Clients

    private func send(_ index: Int, _ line: String, _ body: String = "", _ then: @escaping (TestResponse?) -> Void) {
        guard let service = services[index] else { return then(nil) }
        service.send(line, body) { [self] answer in
            answers.append("\(time.now) \(index) \(line.prefix(12)) \(answer?.status ?? 0)")
            then(answer)
        }
    }

    private struct Login {
        let user: Int
        let nonce: String
        let token: String
        let issuedAt: Int64
    }

    /// A nonce, the person's time with Facebook, and a token.
    private func prepare(
        _ user: Int,
        at index: Int,
        within wait: ClosedRange<Double>,
        _ then: @escaping (Login?) -> Void
    ) {
        send(index, "POST /nonces") { [self] answer in
            guard let nonce = answer?.object["nonce"] as? String else { return then(nil) }
            after(seconds: wait) { [self] in
                let now = Int64((time.now + Self.base) / Self.second)
                var claims = Tokens.claims(nonce: nonce, issuedAt: now)
                claims.subject = "\(1_000 + user)"
                guard let token = try? signer.mint(claims) else { return fail("no token") }
                then(Login(user: user, nonce: nonce, token: token, issuedAt: now))
            }
        }
    }

    /// - Parameter user: from 100 on one in a hurry, as they come in a crowd when a server is replaced.
    private func logIn(_ user: Int) {
        guard !isEnding || loggedIn[user, default: 0] == 0 else { return }
        loggedIn[user] = 0
        let pace = user < 100 ? 1 : 0.05
        prepare(user, at: .random(in: 0..<2), within: 0.1 * pace...9 * pace) { [self] login in
            guard let login else { return after(seconds: 0.5...2) { self.logIn(user) } }
            switch isEnding ? 0 : pace < 1 ? 1 : Int.random(in: 0..<5) {
            // The request is repeated, or a thief of the token comes before or after its owner.
            case 1, 2: after(seconds: 0...3 * pace) { self.verify(login, at: .random(in: 0..<2)) { _ in } }
            case 3:
                let binding = #""issued_nonce":true"#
                after(seconds: 0...3) { self.verify(login, at: .random(in: 0..<2), binding: binding) { _ in } }
            case 4: revoke(user)
            default: break
            }
            after(seconds: 0...pace) { self.present(login, attempts: 4) }
        }
    }

    private func present(_ login: Login, attempts: Int) {
        verify(login, at: .random(in: 0..<2)) { [self] answer in
            switch answer?.status {
            case 200:
                loggedIn[login.user] = 1
                use(login, times: .random(in: 0...4))
            case nil, 429, 503:
                if attempts == 0 { return logIn(login.user) }
                after(seconds: 0.5...1.5) { self.present(login, attempts: attempts - 1) }
            default:
                guard let code = answer?.code, Self.anew.contains(code) else {
                    return fail("a genuine login is refused: \(answer?.status ?? 0) \(answer?.code ?? "")")
                }
                after(seconds: 0.5...3) { self.logIn(login.user) }
            }
        }
    }

    /// Asks about a token, and judges the answer.
    /// - Parameter binding: in place of the login's nonce.
    private func verify(
        _ login: Login,
        at index: Int,
        binding: String? = nil,
        isRefresh: Bool = false,
        _ then: @escaping (TestResponse?) -> Void
    ) {
        let (begun, service) = (time.now, services[index])
        let binding = binding ?? #""nonce":"\#(login.nonce)""#
        send(index, "POST /verify", #"{"id_token":"\#(login.token)",\#(binding)}"#) { [self] answer in
            if answer?.status == 200 {
                logins += 1
                judge(login, begun, service)
                if !isRefresh { accepted[login.nonce, default: 0] += 1 }
                if accepted[login.nonce, default: 0] > 1 { fail("a nonce is accepted twice") }
            }
            then(answer)
        }
    }

    /// The session's requests at a gateway, and the refresh of its token.
    private func use(_ login: Login, times: Int) {
        guard times > 0 else { return after(seconds: 1...6) { if login.user < 100 { self.logIn(login.user) } } }
        after(seconds: 1...4) { [self] in
            let (begun, index) = (time.now, Int.random(in: 0..<2))
            let service = services[index]
            if Bool.random() {
                let binding = #""nonce":"\#(login.nonce)","subject":"\#(1_000 + login.user)""#
                verify(login, at: index, binding: binding, isRefresh: true) { _ in }
            } else {
                send(index, "GET /auth HTTP/1.1\r\nAuthorization: Bearer \(login.token)\r\nX-End:") { [self] answer in
                    if answer?.status == 200 { judge(login, begun, service) }
                }
            }
            use(login, times: times - 1)
        }
    }

    // MARK: Revocations

    private func revoke(_ user: Int) {
        after(seconds: 0...12) { [self] in
            let index = Int.random(in: 0..<2)
            guard let service = services[index] else { return }
            let moment = (Int64(time.now) + leads[index]) / Int64(Self.second)
            let place = revoked[user, default: []].count
            revoked[user, default: []].append(Revoked(moment: moment, service: service, at: time.now))
            send(index, "POST /revocations", #"{"user_id":"\#(1_000 + user)"}"#) { [self] answer in
                if answer?.status == 204 { revoked[user]?[place].toldAt = time.now }
            }
        }
    }

    /// A revocation holds at once where it was told, and everywhere two seconds after its answer, unless the store was
    /// disturbed just before.
    private func judge(_ login: Login, _ begun: UInt64, _ service: SimulatedService?) {
        for one in revoked[login.user] ?? [] where login.issuedAt <= one.moment {
            if one.service === service, begun > one.at { fail("a revoked login is accepted where it was revoked") }
            let isDisturbed = storeFaults.contains { $0.contains(begun) }
            if let told = one.toldAt, begun > told + 2 * Self.second, !isDisturbed {
                fail("a revoked login is accepted")
            }
        }
    }

    // MARK: Faults

    private func disturb(until end: UInt64) {
        guard time.now < end else { return time.after(recovery, heal) }
        let place = Int.random(in: 0..<12)
        let length = place < 9 ? disturbStore(place) : place == 9 ? restartService() : disturbKeys()
        lastFault = max(lastFault, time.now + length)
        if place < 9 { storeFaults.append(time.now...time.now + length + recovery) }
        let pause = place == 9 ? 16.0...20.0 : 0.3...9.0
        time.after(length) { self.after(seconds: pause) { self.disturb(until: end) } }
    }

    /// - Returns: the time until its last effect.
    private func disturbStore(_ place: Int) -> UInt64 {
        let isGroup = redis.kind == .sentinel || redis.kind == .cluster
        let (primary, length) = (redis.primary, UInt64.random(in: 1...11 * Self.second))
        switch place {
        case 0:
            redis.cut(primary)
            note("connections cut")
            return 0
        case 1:
            redis.hang(primary, true)
            time.after(length / 3) { [self] in redis.hang(primary, false) }
            note("server hangs for \(length / 3_000_000) ms")
            return length / 3
        case 2:
            redis.flush()
            note("FLUSHALL")
            return 0
        // Two replicas that notice the jump at once may begin a memory an hour ahead, which refuses earlier tokens.
        case 3 where !rejects && services.allSatisfy { $0?.store.isUp == true }:
            redis.setClock(primary, ahead: 3_600_000)
            time.after(length) { [self] in redis.setClock(primary, ahead: 0) }
            note("clock an hour ahead for \(length / 1_000_000) ms")
            return length
        case 3...5 where !isGroup, 4 where isGroup:
            let data = [nil, redis.servers[primary].data, SimulatedRedis.Data()][.random(in: 0..<3)]
            time.after(length / 4) { [self] in redis.kill(primary) }
            time.after(length / 2) { [self] in redis.restart(primary, with: data) }
            note("restart with \(data.map { "\($0.strings.count) old entries" } ?? "all entries")")
            return length / 2
        case 5 where isGroup:
            redis.kill(primary)
            time.after(length / 4) { [self] in redis.takeOver() }
            time.after(length / 2) { [self] in redis.restart(primary, with: nil) }
            note("killed, taken over after \(length / 4_000_000) ms")
            return length / 2 + 3 * Self.second
        case 6... where isGroup:
            redis.takeOver()
            for user in 0..<12 { after(seconds: 0...4) { self.logIn(100 + self.storeFaults.count * 12 + user) } }
            time.after(length) { [self] in redis.demote() }
            note("taken over, demoted after \(length / 1_000_000) ms")
            return length
        default: return 0
        }
    }

    /// A replica is killed, and another process begins in its place.
    private func restartService() -> UInt64 {
        let index = Int.random(in: 0..<2)
        let pause = UInt64.random(in: 1...3 * Self.second)
        // A revocation is lost if its replica ends before it has told it again to a server that lost it.
        guard !storeFaults.contains(where: { $0.contains(time.now) }) else { return 0 }
        let former = services[index]
        services[index] = nil
        former?.kill()
        time.after(pause) { [self] in do { try begin(index) } catch { fail("\(error)") } }
        note("service \(index) restarts")
        return pause
    }

    /// Facebook signs with another key, or gives no keys for a while.
    private func disturbKeys() -> UInt64 {
        let length = UInt64.random(in: 1...9 * Self.second)
        if Bool.random() {
            source.publish([StandInKeys.previous, StandInKeys.current])
            time.after(length / 4) { [self] in signer = StandInKeys.previous }
            note("new key")
            return length / 4
        }
        source.publish(nil)
        time.after(length) { [self] in source.publish([StandInKeys.previous, StandInKeys.current]) }
        note("no keys for \(length / 1_000_000) ms")
        return length
    }

    /// After the last fault every new login is accepted at once.
    private func heal() {
        isEnding = true
        for pair in 0..<4 {
            loggedIn[-1 - pair] = 0
            prepare(1_000 + pair, at: pair % 2, within: 0.1...2) { [self] login in
                guard let login else { return fail("no nonce after the last fault") }
                verify(login, at: pair / 2) { [self] answer in
                    loggedIn[-1 - pair] = 1
                    if answer?.status != 200 { fail("refused after the last fault: \(answer?.text ?? "")") }
                }
            }
        }
    }
}
