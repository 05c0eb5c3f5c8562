internal import LLBytes
package import LLHTTP
internal import Synchronization

/// A revocation on its way to Redis, and the callback of its caller.
typealias WaitingRevocation = (revocation: Revocation, completion: @Sendable (_ isRemembered: Bool) -> Void)

/// This replica's own copy of the revoked logins, which every verdict reads without waiting.
///
/// A revocation invalidates every token of a person and app that was issued up to its second. With Redis,
/// ``RedisReplayStore`` reads and writes the shared set; while it cannot, the copy applies unchanged.
///
/// The rule for clocks: a moment never becomes earlier, whatever a clock does, so no revocation is forgotten.
package final class Revocations: Sendable {
    /// Most logins: 250,000, in a table of about 17 MB. No revocation is forgotten early to make room for the next.
    package static let defaultCapacity = 250_000
    /// The lifetime of a revocation: 90 days. Facebook's longest tokens live for 60 days.
    package static let lifetimeSeconds: Int64 = 90 * 86_400
    /// The greatest lead of a revocation over the clock: 300 s, the greatest skew. Facebook's clock dates both its
    /// callbacks and its tokens, so a callback's own moment must be kept.
    static let greatestLeadSeconds: Int64 = 300
    /// Revocations that wait for Redis. 8,192: the revocations of one second of a busy service.
    static let waitingLimit = 8_192
    /// Revocations dated ahead that are remembered as such: 16,384, in a megabyte.
    private static let cutLimit = 16_384
    /// The least pause between two searches for expired revocations.
    private static let sweepSeconds: Int64 = 3_600

    private struct State {
        /// The last revocation of each login, by its rank, and the mark of an entry that Redis held when it was last read
        /// or written; 0 if Redis never confirmed it.
        var table: [ReplayKey: (rank: Int64, mark: UInt32)] = [:]
        /// The mark of entries that Redis is known to hold.
        var mark: UInt32 = 1
        var link = RedisLink.connecting
        var waiting: [WaitingRevocation] = []
        /// True if there may be entries without that mark for which no caller waits.
        var hasUnwritten = false
        /// True if Redis holds more revocations than fit here.
        var hasOverflown = false
        var sweptAt: Int64 = 0
        /// Revocations in Redis that were dated ahead and were cut when first read.
        var cut: Set<Revocation> = []
        /// Revocations that were dated ahead, as they count here.
        var ahead: Set<Revocation> = []
        /// The time of the last report that revocations were dated ahead.
        var reportedAt: MonotonicInstant?
    }

    package let capacity: Int
    /// Most logins including those of other replicas: the capacity plus the revocations of one second of a busy
    /// service. Several replicas may fill the last places at once.
    var sharedCapacity: Int { capacity + Self.waitingLimit }
    private let state = Locked(State())
    /// The number of entries: no verdict takes the lock while no login is revoked.
    private let filled = Atomic<Int>(0)
    /// The last time at which all revocations in Redis were known here, in nanoseconds; 0 for never.
    private let readAt = Atomic<UInt64>(0)
    private let clock: @Sendable () -> Int64
    private let observe: @Sendable (ReplayStoreEvent) -> Void
    /// The greatest lead of a revocation from Redis over the clock, in whole seconds.
    private let skewSeconds: Int64
    /// Wakes the store's thread; nil without Redis, when this copy is the only memory.
    private let wake: (@Sendable () -> Void)?

    /// - Parameters:
    ///   - clock: whole seconds since 1970.
    ///   - observe: called on the threads that ask; it must not wait.
    package init(
        capacity: Int = defaultCapacity,
        clock: @escaping @Sendable () -> Int64 = { WallClock.unixSeconds() },
        skew: Duration = ReplayLimits().revocationSkew,
        observe: @escaping @Sendable (ReplayStoreEvent) -> Void = { _ in },
        wake: (@Sendable () -> Void)? = nil
    ) {
        self.capacity = capacity
        self.clock = clock
        self.observe = observe
        skewSeconds = skew.components.seconds
        self.wake = wake
    }

    /// Refuses from now on every token of a person and app that was issued in the second of `moment` or before. It does
    /// not wait. An older moment never replaces a newer one.
    /// - Parameters:
    ///   - moment: whole seconds since 1970, cut to ``greatestLeadSeconds`` ahead.
    ///   - completion: called once, at once or on the store's thread. True if the revocation applies here, and on every
    ///     other replica within two seconds. False if it applies only here, and Redis receives it later, or if there is no
    ///     room for another login.
    package func revoke(
        app: Span<UInt8>,
        user: Span<UInt8>,
        at moment: Int64,
        kind: RevocationKind = .order,
        completion: @escaping @Sendable (_ isRemembered: Bool) -> Void
    ) {
        let now = clock()
        guard let login = ReplayKey(app: app, user: user) else { return completion(false) }
        let moment = min(max(moment, 0), now + Self.greatestLeadSeconds)
        let revocation = Revocation(login: login, moment: moment, kind: kind)
        // Nil if the store's thread will answer.
        let answer: Bool? = state.withLock { state in
            let value = state.table[login]
            if let value, value.rank >= revocation.rank, wake == nil || value.mark == state.mark { return true }
            if value == nil, state.table.count >= capacity {
                // A full table is searched once a second, since every verdict waits for the search.
                if now != state.sweptAt { sweep(&state, now) }
                guard state.table.count < capacity else { return false }
            }
            let latest = Revocation(login, rank: max(value?.rank ?? 0, revocation.rank))
            set(latest, mark: 0, now, &state)
            if wake == nil { return true }
            guard state.link != .down, state.waiting.count < Self.waitingLimit else {
                state.hasUnwritten = true
                return false
            }
            state.waiting.append((latest, completion))
            return nil
        }
        if let answer { completion(answer) } else { wake?() }
    }

    private func set(_ revocation: Revocation, mark: UInt32, _ now: Int64, _ state: inout State) {
        if now - state.sweptAt > Self.sweepSeconds { sweep(&state, now) }
        state.table[revocation.login] = (revocation.rank, mark)
        filled.store(state.table.count, ordering: .releasing)
    }

    private func sweep(_ state: inout State, _ now: Int64) {
        state.sweptAt = now
        let (oldest, count) = (now - Self.lifetimeSeconds, state.table.count)
        for login in state.table.filter({ $0.value.rank >> 1 < oldest }).keys { state.table[login] = nil }
        filled.store(state.table.count, ordering: .releasing)
        state.ahead = state.ahead.filter { $0.moment + Int64(ReplayLimits.clockMargin / 1_000) >= now }
        if state.table.count < count { state.hasOverflown = false }
    }

    package var count: Int { filled.load(ordering: .acquiring) }

    /// The time since all revocations in Redis were known here; zero without Redis, nil if they never were.
    package func age(at now: MonotonicInstant) -> Duration? {
        guard wake != nil else { return .zero }
        let readAt = readAt.load(ordering: .acquiring)
        return readAt == 0 ? nil : now.duration(since: MonotonicInstant(nanoseconds: readAt))
    }

    /// True if the copy was complete once. Before that, the state of a login is unknown.
    package var isKnown: Bool { wake == nil || readAt.load(ordering: .acquiring) > 0 }

    /// The latest revocation of a login; nil if there is none.
    /// - Parameter app, user: the token's `aud` and `sub` with escapes decoded.
    package func latest(app: Span<UInt8>, user: Span<UInt8>) -> Revocation? {
        if count == 0 { return nil }
        // If OpenSSL fails, the login cannot be looked up, so every token is refused.
        guard let login = ReplayKey(app: app, user: user) else {
            return Revocation(login: ReplayKey(high: 0, low: 0), moment: 1 << 40)
        }
        return state.withLock { $0.table[login] }.map { Revocation(login, rank: $0.rank) }
    }

    /// True if it cannot be known which tokens are older than a revocation: its moment lies in the future, since the clock
    /// that dated it was ahead. It stays so until a new login has a later time. Facebook dates both its callbacks and its
    /// tokens.
    package func isInDoubt(_ revocation: Revocation) -> Bool {
        let (now, steady, margin) = (clock(), MonotonicClock.now(), Int64(ReplayLimits.clockMargin / 1_000))
        guard revocation.kind == .order, revocation.moment + margin >= now else { return false }
        let isNews: Bool? = state.withLock { state in
            if revocation.moment > now + margin, state.ahead.count < Self.cutLimit { state.ahead.insert(revocation) }
            guard revocation.moment > now + margin || state.ahead.contains(revocation) else { return nil }
            let isNews = state.reportedAt.map { steady > $0 + .milliseconds(ReplayLimits.reportPause) } ?? true
            if isNews { state.reportedAt = steady }
            return isNews
        }
        if isNews == true { observe(.revokedAhead(until: UInt64(revocation.moment) * 1_000)) }
        return isNews != nil
    }
}

/// The part of the copy that the store's thread uses.
extension Revocations {
    /// True if a revocation must be written.
    var hasWork: Bool { state.withLock { !$0.waiting.isEmpty || $0.hasUnwritten } }

    func takeWaiting(atMost count: Int) -> [WaitingRevocation] { state.withLock { $0.waiting.take(atMost: count) } }

    /// Sets the state of the connection. Unless it is up, waiting revocations are answered now and written later.
    func setLink(_ link: RedisLink) {
        let waiting = state.withLock { state in
            state.link = link
            return link == .up ? [] : state.waiting.take(atMost: .max)
        }
        if !waiting.isEmpty { fail(waiting) }
    }

    /// These wait for the answer of a write that failed. It is made again later.
    func fail(_ waiting: [WaitingRevocation]) {
        state.withLock { $0.hasUnwritten = true }
        for one in waiting { one.completion(false) }
    }

    /// Everything in Redis at this moment is known here.
    /// - Parameter isWhole: true if the whole set was read, so that it shows which entries Redis lacks.
    func didRead(at moment: MonotonicInstant, isWhole: Bool = false) {
        state.withLock { state in
            if isWhole { state.hasUnwritten = true }
            if !state.hasOverflown { readAt.store(moment.nanoseconds, ordering: .releasing) }
        }
    }

    /// Begins to read the whole set again. No entry counts as held by Redis any longer.
    func beginReading() {
        state.withLock { state in
            state.mark += 1
            state.hasOverflown = false
        }
    }

    /// Takes over a page of revocations from Redis.
    /// - Parameter serverTime: the server's clock in whole seconds since 1970.
    /// - Returns: The revocations of the page for logins with a newer revocation here.
    func merge(_ page: [Revocation], serverTime: Int64 = 0) -> [Revocation] {
        let now = clock()
        return state.withLock { state in
            var superseded: [Revocation] = []
            // A day: a clock that is meant to be right is never farther ahead.
            let possible = now - Self.lifetimeSeconds...now + 86_400
            for written in page where possible.contains(written.moment) {
                guard let revocation = cut(written, max(now, serverTime), &state) else { continue }
                let value = state.table[revocation.login]
                if value == nil, state.table.count >= sharedCapacity {
                    state.hasOverflown = true
                } else if value?.rank ?? .min < revocation.rank {
                    set(revocation, mark: state.mark, now, &state)
                } else if let value, value.rank > revocation.rank {
                    superseded.append(revocation)
                } else if value?.mark != 0 {
                    // An entry that was written without an answer is written again, because other replicas may have
                    // read past it.
                    state.table[revocation.login]?.mark = state.mark
                }
            }
            return superseded
        }
    }

    /// A revocation as it is accepted here. A replica with a wrong clock may date one ahead, and it would refuse new
    /// logins until then. It is therefore cut to the present plus the skew when first read, and skipped from then on.
    /// - Parameter now: the later of this machine's clock and the server's, because this machine's clock may be the
    ///   late one.
    private func cut(_ written: Revocation, _ now: Int64, _ state: inout State) -> Revocation? {
        if state.cut.contains(written) { return nil }
        let latest = now + skewSeconds
        let isOwn = state.table[written.login].map { $0.rank >> 1 >= written.moment } ?? false
        guard written.moment > latest, !isOwn else { return written }
        // A revocation beyond the limit is cut again at each reading, which refuses more tokens but never fewer.
        var believed = written
        believed.moment = latest
        if state.cut.count < Self.cutLimit {
            state.cut.insert(written)
            state.ahead.insert(believed)
        }
        return believed
    }

    func confirm(_ all: [Revocation]) {
        state.withLock { state in
            for revocation in all where state.table[revocation.login]?.rank == revocation.rank {
                state.table[revocation.login]?.mark = state.mark
            }
        }
    }

    /// Entries that Redis may lack. The others are found by the next search, because these are confirmed by then.
    func lacking(atMost count: Int) -> [Revocation] {
        let oldest = clock() - Self.lifetimeSeconds
        return state.withLock { state in
            guard state.hasUnwritten else { return [] }
            let mark = state.mark
            var found: [Revocation] = []
            for (login, value) in state.table where value.mark != mark && value.rank >> 1 >= oldest {
                if found.count == count { break }
                found.append(Revocation(login, rank: value.rank))
            }
            state.hasUnwritten = found.count == count
            // The mark stays 0 until Redis confirms this very write: an entry found by a reading may have a wrong
            // score.
            for revocation in found { state.table[revocation.login]?.mark = 0 }
            return found
        }
    }

    /// The revocations that Redis need not hold, because it holds a newer one of the same login.
    func superseded(among all: some Sequence<Revocation>) -> [Revocation] {
        state.withLock { state in
            all.filter { old in
                state.table[old.login].map { $0.mark == state.mark && $0.rank > old.rank } ?? false
            }
        }
    }
}

extension ReplayKey {
    /// The first bit of a hash.
    fileprivate static let hashMark: UInt64 = 1 << 63

    /// The name of a login among the revocations: the numbers of the person and the app, or a hash of 127 bits if one of
    /// the ids is no number. Nil if OpenSSL fails.
    init?(app: Span<UInt8>, user: Span<UInt8>) {
        if let userNumber = DecimalNumber.parse(user, user.indices), userNumber > 0,
            let appNumber = DecimalNumber.parse(app, app.indices), appNumber > 0
        {
            self.init(high: UInt64(userNumber), low: UInt64(appNumber))
        } else {
            guard let hash = ReplayKey(.login, scope: app, user) else { return nil }
            self.init(high: hash.high | Self.hashMark, low: hash.low)
        }
    }
}

/// The cause of a revocation. It matters for access tokens for which Graph does not report the time of issue.
package enum RevocationKind: Int64, Sendable {
    /// Facebook's own callback reported it. From then on Graph calls no earlier token valid.
    case callback = 0
    /// An operator or backend ordered it here. Graph may still call earlier tokens valid.
    case order = 1
}

/// A revocation: every token of the login that was issued in this second or before is refused.
package struct Revocation: Hashable, Sendable {
    let login: ReplayKey
    /// Whole seconds since 1970.
    package var moment: Int64
    package var kind = RevocationKind.order

    /// The order among the revocations of one login. A later one wins; within one second `order` wins over `callback`.
    var rank: Int64 { moment << 1 | kind.rawValue }
}

extension Revocation {
    init(_ login: ReplayKey, rank: Int64) {
        self.init(login: login, moment: rank >> 1, kind: rank & 1 == RevocationKind.order.rawValue ? .order : .callback)
    }
}

/// The form of a revocation in Redis: `app:user:moment` in decimal, or with `#` and 32 hexadecimal digits for the
/// login. A revocation from a callback ends with `:c`.
extension Revocation {
    var member: String {
        let isHash = login.high & ReplayKey.hashMark != 0
        let name = isHash ? "#\(login.hexadecimal)" : "\(login.low):\(login.high)"
        return "\(name):\(moment)\(kind == .callback ? ":c" : "")"
    }

    /// The revocation of a member; nil for bytes that ``member`` would not have written.
    init?(member: [UInt8]) {
        var parts = member.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        if parts.last == [UInt8(ascii: "c")] {
            kind = .callback
            parts.removeLast()
        }
        guard let last = parts.last, let moment = DecimalNumber.parse(last) else { return nil }
        if member.first == UInt8(ascii: "#") {
            guard parts.count == 2, parts[0].count == 33, let bytes = Hexadecimal.decode(parts[0].dropFirst())
            else { return nil }
            login = ReplayKey(bytes.span)
            guard login.high & ReplayKey.hashMark != 0 else { return nil }
        } else {
            guard parts.count == 3, let app = DecimalNumber.parse(parts[0]), let user = DecimalNumber.parse(parts[1]),
                app > 0, user > 0
            else { return nil }
            login = ReplayKey(high: UInt64(user), low: UInt64(app))
        }
        self.moment = Int64(moment)
    }
}
