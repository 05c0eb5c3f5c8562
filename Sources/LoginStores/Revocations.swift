package import Sockets
internal import Synchronization

/// What became of a revocation.
package enum RevocationAnswer: Equatable, Sendable {
    /// It holds here, and on every other replica within two seconds.
    case remembered
    /// It holds here. Redis could not be asked; it is told when it can be.
    case rememberedHereOnly
    /// Nothing holds: there is no room for another login.
    case full
}

/// A revocation on its way to Redis, and the callback of its caller.
struct WaitingRevocation: Sendable {
    let revocation: Revocation
    /// The login's revocation before, which Redis need not hold any longer.
    let replaced: Revocation?
    let completion: @Sendable (RevocationAnswer) -> Void
}

/// Remembers which logins were revoked, and when: this replica's own copy, which every verdict asks without a wait.
///
/// A revocation says that no token of a person and app is good that was issued up to its second, and lives for
/// ``lifetimeSeconds``. Without Redis this copy is all there is. With Redis ``RedisReplayStore`` reads and writes there; while
/// it cannot, the copy applies as it is.
package final class Revocations: Sendable {
    /// Most logins: 250,000, in a table of at most 12.6 MB. Beyond them the next revocation is refused; none is forgotten
    /// early for it.
    package static let defaultCapacity = 250_000
    /// How long a revocation is remembered: 90 days. Facebook's longest tokens live for 60.
    package static let lifetimeSeconds: Int64 = 90 * 86_400
    /// The farthest ahead of the clock that a revocation may lie: 300 s, the greatest skew. Facebook's clock dates its
    /// callbacks and its tokens alike, so a callback's own moment must stand.
    static let greatestLeadSeconds: Int64 = 300
    /// Revocations that wait for Redis. 8,192: what a second of a busy service asks.
    static let waitingLimit = 8_192
    /// Revocations dated ahead that are remembered as such: 16,384, half a megabyte.
    static let cutLimit = 16_384
    /// How often the expired are looked for, at the most.
    private static let sweepSeconds: Int64 = 3_600

    struct State {
        /// Stays as it is where there is no Redis.
        var link = RedisLink.connecting
        var waiting: [WaitingRevocation] = []
        /// What entries bear that Redis is known to hold; never 0, which those bear that it never confirmed.
        var mark: UInt64 = 1
        /// Whether there are entries without a mark that nobody waits for.
        var hasUnwritten = false
        /// Whether Redis holds more than fits here.
        var hasOverflown = false
        var sweptAt: Int64 = 0
        /// Revocations of Redis that were dated ahead and were cut when they were first read.
        var cut: Set<Revocation> = []
    }

    package let capacity: Int
    /// Most logins here with those of other replicas, which may fill the last places at once: the capacity, and what a
    /// second of a busy service revokes.
    var sharedCapacity: Int { capacity + Self.waitingLimit }
    let state = Locked(State())
    private let clock: @Sendable () -> Int64
    /// How far ahead of the clock a revocation of Redis may be dated, in whole seconds.
    let skewSeconds: Int64
    /// Nil without Redis: then this copy is the memory.
    private let wake: (@Sendable () -> Void)?
    /// Apart from the state, so that no reader waits for a walk over the table. Replaced with the state's lock held.
    fileprivate let published = Published(RevocationTable(capacity: 0))
    /// When everything in Redis was last known, in nanoseconds of the monotonic clock; 0 for never.
    private let readAt = Atomic<UInt64>(0)

    /// - Parameters:
    ///   - clock: whole seconds since 1970.
    ///   - skew: how far ahead of the clock a revocation of Redis may be dated.
    ///   - wake: tells the store's thread that something waits; nil without Redis.
    package init(
        capacity: Int = defaultCapacity,
        clock: @escaping @Sendable () -> Int64 = { WallClock.unixSeconds() },
        skew: Duration = ReplayLimits().revocationSkew,
        wake: (@Sendable () -> Void)? = nil
    ) {
        self.capacity = capacity
        self.clock = clock
        skewSeconds = skew.components.seconds
        self.wake = wake
    }

    /// Refuses every token of a person and app that was issued in the second of `moment` or before, from now on. From any
    /// thread, without a wait.
    ///
    /// An older moment never replaces a newer one, and one farther ahead than ``greatestLeadSeconds`` counts as that.
    /// - Parameters:
    ///   - moment: whole seconds since 1970.
    ///   - kind: the cause.
    ///   - completion: called once, at once or on the store's thread. Except for ``RevocationAnswer/full`` the revocation
    ///     is in force here before.
    package func revoke(
        app: Span<UInt8>,
        user: Span<UInt8>,
        at moment: Int64,
        kind: RevocationKind = .order,
        completion: @escaping @Sendable (RevocationAnswer) -> Void
    ) {
        let now = now
        guard let login = RevokedLogin(app: app, user: user) else { return completion(.full) }
        let moment = min(max(moment, 0), now + Self.greatestLeadSeconds)
        let revocation = Revocation(login: login, moment: moment, kind: kind)
        // Nil where the store's thread answers.
        let answer: RevocationAnswer? = state.withLock { state in
            let before = table.value(of: login)
            if let before, before.rank >= revocation.rank, wake == nil || before.mark == state.mark {
                return .remembered
            }
            if before == nil, table.count >= capacity {
                sweep(&state, now: now)
                guard table.count < capacity else { return .full }
            }
            let former = before.map { Revocation(login: login, $0) }
            let kept = former.flatMap { $0.rank > revocation.rank ? $0 : nil } ?? revocation
            set(RevocationValue(kept, mark: 0), of: login, now: now, &state)
            if wake == nil { return .remembered }
            guard state.link != .down, state.waiting.count < Self.waitingLimit else {
                state.hasUnwritten = true
                return .rememberedHereOnly
            }
            let replaced = former.flatMap { $0.rank < kept.rank ? $0 : nil }
            state.waiting.append(WaitingRevocation(revocation: kept, replaced: replaced, completion: completion))
            return nil
        }
        if let answer { completion(answer) } else { wake?() }
    }

    /// Gives a login its value, in a larger table where this one is full.
    func set(_ value: RevocationValue, of login: RevokedLogin, now: Int64, _ state: inout State) {
        if now - state.sweptAt > Self.sweepSeconds { sweep(&state, now: now) }
        if table.count >= table.capacity { published.publish(table.copy(capacity: table.capacity * 2)) }
        table.set(value, of: login)
    }

    private func sweep(_ state: inout State, now: Int64) {
        state.sweptAt = now
        let oldest = now - Self.lifetimeSeconds
        let table = table
        let expired = (0..<table.slotCount).count { table.entry(at: $0)?.value.moment ?? .max < oldest }
        guard expired > 0 else { return }
        state.hasOverflown = false
        published.publish(table.copy(capacity: table.count - expired + 1) { $0.moment >= oldest })
    }

    /// Whole seconds since 1970.
    var now: Int64 { clock() }

    // MARK: What readers ask

    /// Logins that are remembered as revoked.
    package var count: Int { table.count }

    /// How long ago all that replicas remember was known here; zero without Redis, nil where it never was.
    package func age(at now: MonotonicInstant) -> Duration? {
        if wake == nil { return .zero }
        let moment = readAt.load(ordering: .acquiring)
        return moment == 0 ? nil : now.duration(since: MonotonicInstant(nanoseconds: moment))
    }

    /// Whether the copy is whole, or was once: before, nobody can tell whether a login stands.
    package var isKnown: Bool { wake == nil || readAt.load(ordering: .acquiring) != 0 }

    var table: RevocationTable { published.value }

    /// Everything in Redis at this moment is known here.
    func didRead(at moment: MonotonicInstant) {
        guard !state.withLock({ $0.hasOverflown }) else { return }
        readAt.store(moment.nanoseconds, ordering: .releasing)
    }
}

/// A login's entry in the table, in one word: its moment and kind, and what is known of Redis.
struct RevocationValue: Equatable {
    private static let markBits: UInt64 = 23

    /// The moment in the upper 40 bits (seconds, until the year 36,812), then the kind in one, the mark in the others.
    let bits: UInt64

    /// As ``Revocation/rank``.
    var rank: Int64 { Int64(bits >> Self.markBits) }
    var moment: Int64 { rank >> 1 }
    var kind: RevocationKind { rank & 1 == RevocationKind.order.rawValue ? .order : .callback }
    var mark: UInt64 { bits & Self.markLimit }

    static let markLimit: UInt64 = 1 << markBits - 1
    /// The latest moment that fits: in the year 36,812.
    static let greatestMoment: Int64 = 1 << 40 - 1
}

extension RevocationValue {
    init(_ revocation: Revocation, mark: UInt64) { bits = UInt64(max(0, revocation.rank)) << Self.markBits | mark }
}

extension Revocation {
    init(login: RevokedLogin, _ value: RevocationValue) {
        self.init(login: login, moment: value.moment, kind: value.kind)
    }
}

/// One worker's way to the revocations: two atomic loads where there are none.
package final class RevocationReader {
    private let revocations: Revocations
    private var copy: Published<RevocationTable>.Copy

    package init(_ revocations: Revocations) {
        self.revocations = revocations
        copy = Published.Copy(revocations.published)
    }

    /// Whether anybody can tell: not before what other replicas remember was read for the first time.
    package var isKnown: Bool { revocations.isKnown }

    /// Whether no login at all was revoked.
    package func isEmpty() -> Bool {
        if copy.isOld { copy = copy.renewed }
        return copy.value.count == 0
    }

    /// Whether a login was revoked in the second in which its token was issued, or after.
    /// - Parameters:
    ///   - app, user: the token's `aud` and `sub`, escapes decoded.
    ///   - issuedAt: its `iat` in whole seconds since 1970.
    package func isRevoked(app: Span<UInt8>, user: Span<UInt8>, issuedAt: Int64) -> Bool {
        latest(app: app, user: user).map { issuedAt <= $0.moment } ?? false
    }

    /// The latest revocation of a login: its moment in whole seconds since 1970, and its kind. Nil where there is none.
    package func latest(app: Span<UInt8>, user: Span<UInt8>) -> (moment: Int64, kind: RevocationKind)? {
        if isEmpty() { return nil }
        // Where OpenSSL fails nothing can be looked up, and nothing may be accepted.
        guard let login = RevokedLogin(app: app, user: user) else { return (RevocationValue.greatestMoment, .order) }
        return copy.value.value(of: login).map { ($0.moment, $0.kind) }
    }
}
