import LLHTTP

@testable import LimitedLoginKeys

/// Runs the pure state machine with a simulated source and a clock of its own, so that hours pass at once.
struct StateDriver {
    /// How a fetch ends.
    enum Outcome {
        case replaced(JWKSetFreshness)
        case unchanged(JWKSetFreshness)
        case failed(retryAfterSeconds: Int?)
    }

    var state: JWKSetCacheState
    var now = MonotonicInstant(nanoseconds: 1_000_000_000)
    /// How long each fetch takes.
    var latency = Duration.milliseconds(100)
    /// The source's answer to a fetch that ends at this time.
    var source: (MonotonicInstant) -> Outcome = { _ in .unchanged(.init()) }
    private(set) var fetches: [(at: MonotonicInstant, reason: JWKSetEvent.Reason)] = []
    private var endsAt: MonotonicInstant?

    init(limits: JWKSetCacheLimits = .init()) {
        var limits = limits
        limits.jitter = 0.5
        state = JWKSetCacheState(limits: limits)
    }

    /// A driver that holds keys and runs no fetch.
    static func settled(limits: JWKSetCacheLimits = .init()) -> StateDriver {
        var driver = StateDriver(limits: limits)
        driver.source = { _ in .replaced(.init()) }
        driver.start()
        driver.advance(by: .seconds(1))
        driver.source = { _ in .unchanged(.init()) }
        return driver
    }

    mutating func start() {
        if state.begin(at: now) { noteFetch(.start) }
    }

    /// Asks about a key ID, or about nil if there are no keys, like a request that arrives now.
    mutating func ask(_ hash: UInt64?, since: MonotonicInstant? = nil, mayWait: Bool = true) -> MissingKeyAnswer {
        let result = state.missingKey(hash: hash, since: since ?? now, mayWait: mayWait, at: now)
        if result.begins { noteFetch(.unknownKeyID) }
        return result.answer
    }

    /// Moves the clock and runs everything that falls due.
    mutating func advance(by duration: Duration) {
        let target = now + duration
        while let next = nextEvent(), next <= target {
            now = max(now, next)
            if let end = endsAt, end <= now {
                endsAt = nil
                switch source(now) {
                case .replaced(let freshness): state.confirm(freshness, isReplaced: true, at: now)
                case .unchanged(let freshness): state.confirm(freshness, isReplaced: false, at: now)
                case .failed(let seconds): state.fail(retryAfter: seconds.map { .seconds($0) }, at: now)
                }
            } else if let reason = state.wake(at: now) {
                noteFetch(reason)
            }
        }
        now = target
    }

    func phase() -> JWKSetCachePhase { state.phase(at: now) }

    private func nextEvent() -> MonotonicInstant? { [endsAt, state.nextWake(after: now)].compactMap { $0 }.min() }

    private mutating func noteFetch(_ reason: JWKSetEvent.Reason) {
        fetches.append((now, reason))
        endsAt = now + latency
    }
}
