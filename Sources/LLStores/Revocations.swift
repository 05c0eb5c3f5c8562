package import LLSockets
internal import Synchronization

/// The result of a revocation.
package enum RevocationAnswer: Equatable, Sendable {
    /// The revocation applies here, and on every other replica within two seconds.
    case remembered
    /// The revocation applies here. Redis could not be reached and receives it later.
    case rememberedHereOnly
    /// The revocation does not apply, because there is no room for another login.
    case full
}

/// A revocation on its way to Redis, and the callback of its caller.
struct WaitingRevocation: Sendable {
    let revocation: Revocation
    /// The login's earlier revocation, which Redis need not hold any longer.
    let replaced: Revocation?
    let completion: @Sendable (RevocationAnswer) -> Void
}

/// Remembers the revoked logins and their moments. It is this replica's own copy, which every verdict reads without
/// waiting.
///
/// A revocation invalidates every token of a person and app that was issued up to its second. It lives for
/// ``lifetimeSeconds``. Without Redis this copy is the only one. With Redis, ``RedisReplayStore`` reads and writes the
/// shared set; while it cannot, the copy applies unchanged.
package final class Revocations: Sendable {
    /// Most logins: 250,000, in a table of at most 12.6 MB. Beyond this the next revocation is refused; no revocation
    /// is forgotten early to make room.
    package static let defaultCapacity = 250_000
    /// The lifetime of a revocation: 90 days. Facebook's longest tokens live for 60 days.
    package static let lifetimeSeconds: Int64 = 90 * 86_400
    /// The greatest lead of a revocation over the clock: 300 s, the greatest skew. Facebook's clock dates both its
    /// callbacks and its tokens, so a callback's own moment must be kept.
    static let greatestLeadSeconds: Int64 = 300
    /// Revocations that wait for Redis. 8,192: the revocations of one second of a busy service.
    static let waitingLimit = 8_192
    /// Revocations dated ahead that are remembered as such: 16,384, in half a megabyte.
    static let cutLimit = 16_384
    /// The least pause between two searches for expired revocations.
    private static let sweepSeconds: Int64 = 3_600

    struct State {
        /// The state of the connection to Redis. It never changes without Redis.
        var link = RedisLink.connecting
        var waiting: [WaitingRevocation] = []
        /// The mark of entries that Redis is known to hold; never 0. Entries that Redis never confirmed have the mark
        /// 0.
        var mark: UInt64 = 1
        /// True if there are entries without a mark for which no caller waits.
        var hasUnwritten = false
        /// True if Redis holds more revocations than fit here.
        var hasOverflown = false
        var sweptAt: Int64 = 0
        /// Revocations in Redis that were dated ahead and were cut when first read.
        var cut: Set<Revocation> = []
        /// The dates that were given here, and those of the cut revocations.
        var ownDates = RevocationDates()
        var cutDates = RevocationDates()
        /// The time of the last report that revocations were dated ahead.
        var toldAt: MonotonicInstant?
    }

    package let capacity: Int
    /// Most logins including those of other replicas: the capacity plus the revocations of one second of a busy
    /// service. Several replicas may fill the last places at once.
    var sharedCapacity: Int { capacity + Self.waitingLimit }
    let state = Locked(State())
    private let clock: @Sendable () -> Int64
    private let steady: @Sendable () -> MonotonicInstant
    private let observe: @Sendable (ReplayStoreEvent) -> Void
    /// The greatest lead of a revocation from Redis over the clock, in whole seconds.
    let skewSeconds: Int64
    /// Wakes the store's thread; nil without Redis, when this copy is the only memory.
    private let wake: (@Sendable () -> Void)?
    /// The table is outside the state, so that no reader waits for a walk over it. It is replaced only under the
    /// state's lock.
    fileprivate let published = Published(RevocationTable(capacity: 0))
    /// The last time at which all revocations in Redis were known here, in nanoseconds of the monotonic clock; 0 for
    /// never.
    private let readAt = Atomic<UInt64>(0)

    /// - Parameters:
    ///   - clock: whole seconds since 1970.
    ///   - steady: the monotonic clock.
    ///   - skew: the greatest lead of a revocation from Redis over the clock.
    ///   - observe: called on the threads that ask; it must not wait.
    ///   - wake: tells the store's thread that work waits; nil without Redis.
    package init(
        capacity: Int = defaultCapacity,
        clock: @escaping @Sendable () -> Int64 = { WallClock.unixSeconds() },
        steady: @escaping @Sendable () -> MonotonicInstant = { MonotonicClock.now() },
        skew: Duration = ReplayLimits().revocationSkew,
        observe: @escaping @Sendable (ReplayStoreEvent) -> Void = { _ in },
        wake: (@Sendable () -> Void)? = nil
    ) {
        self.capacity = capacity
        self.clock = clock
        self.steady = steady
        self.observe = observe
        skewSeconds = skew.components.seconds
        self.wake = wake
    }

    /// Refuses from now on every token of a person and app that was issued in the second of `moment` or before. It may
    /// be called from any thread and does not wait.
    ///
    /// An older moment never replaces a newer one. A moment more than ``greatestLeadSeconds`` ahead is cut to that
    /// lead.
    /// - Parameters:
    ///   - moment: whole seconds since 1970.
    ///   - kind: the cause.
    ///   - completion: called once, at once or on the store's thread. The revocation already applies here by then,
    ///     except for ``RevocationAnswer/full``.
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
        // Nil if the store's thread will answer.
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
            if kind == .order { state.ownDates.note(moment, offset: offset(now)) }
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

    /// Sets the value of a login, in a larger table if this one is full.
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

    /// The wall clock less the monotonic clock, in seconds.
    func offset(_ now: Int64) -> Int64 { now - Int64(steady().nanoseconds / 1_000_000_000) }

    // MARK: What readers ask

    /// The number of logins that are remembered as revoked.
    package var count: Int { table.count }

    /// The time since all revocations in Redis were known here; zero without Redis, nil if they never were.
    package func age(at now: MonotonicInstant) -> Duration? {
        if wake == nil { return .zero }
        let moment = readAt.load(ordering: .acquiring)
        return moment == 0 ? nil : now.duration(since: MonotonicInstant(nanoseconds: moment))
    }

    /// True if the copy is complete or was complete once. Before that, the state of a login is unknown.
    package var isKnown: Bool { wake == nil || readAt.load(ordering: .acquiring) != 0 }

    /// True if the order of a revocation and a token is unknown: the clock that dated the revocation was ahead, and is
    /// set back. Facebook dates both its callbacks and its tokens.
    /// - Parameter issuedAt: the token's `iat` in whole seconds since 1970, at or before the revocation's moment.
    func isInDoubt(_ moment: Int64, _ kind: RevocationKind, issuedAt: Int64) -> Bool {
        guard kind == .order else { return false }
        let (present, offset) = (steady(), self.offset(self.now))
        let (isInDoubt, isNews) = state.withLock { state in
            let lead = max(
                state.ownDates.lead(of: moment, offset: offset),
                state.cutDates.lead(of: moment, offset: offset)
            )
            guard issuedAt > moment - lead else { return (false, false) }
            let isNews = state.toldAt.map { present > $0 + .milliseconds(ReplayLimits.tellingPause) } ?? true
            if isNews { state.toldAt = present }
            return (true, isNews)
        }
        if isNews { observe(.revokedAhead(until: UInt64(max(0, moment)) * 1_000)) }
        return isInDoubt
    }

    var table: RevocationTable { published.value }

    /// Records that everything in Redis at this moment is known here.
    func didRead(at moment: MonotonicInstant) {
        guard !state.withLock({ $0.hasOverflown }) else { return }
        readAt.store(moment.nanoseconds, ordering: .releasing)
    }
}

/// A login's entry in the table as one word: its moment, its kind, and its mark for Redis.
struct RevocationValue: Equatable {
    private static let markBits: UInt64 = 23

    /// The moment in the upper 40 bits (seconds, until the year 36,812), the kind in the next bit, the mark in the
    /// rest.
    let bits: UInt64

    /// The same as ``Revocation/rank``.
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

/// One worker's access to the revocations. It costs two atomic loads if there are none.
package final class RevocationReader {
    private let revocations: Revocations
    private var copy: Published<RevocationTable>.Copy

    package init(_ revocations: Revocations) {
        self.revocations = revocations
        copy = Published.Copy(revocations.published)
    }

    /// True if the answers are reliable: false until the revocations of other replicas were read for the first time.
    package var isKnown: Bool { revocations.isKnown }

    /// True if no login at all was revoked.
    package func isEmpty() -> Bool {
        if copy.isOld { copy = copy.renewed }
        return copy.value.count == 0
    }

    /// True if the order of a revocation and a token is unknown.
    /// - Parameter issuedAt: the token's `iat`, or its estimate, in whole seconds since 1970.
    package func isInDoubt(_ revocation: (moment: Int64, kind: RevocationKind), issuedAt: Int64) -> Bool {
        revocations.isInDoubt(revocation.moment, revocation.kind, issuedAt: issuedAt)
    }

    /// The latest revocation of a login: its moment in whole seconds since 1970, and its kind. Nil if there is none. It reaches
    /// every token that was issued in its second or before.
    /// - Parameter app, user: the token's `aud` and `sub` with escapes decoded.
    package func latest(app: Span<UInt8>, user: Span<UInt8>) -> (moment: Int64, kind: RevocationKind)? {
        if isEmpty() { return nil }
        // If OpenSSL fails, the login cannot be looked up, so every token is refused.
        guard let login = RevokedLogin(app: app, user: user) else { return (RevocationValue.greatestMoment, .order) }
        return copy.value.value(of: login).map { ($0.moment, $0.kind) }
    }
}
