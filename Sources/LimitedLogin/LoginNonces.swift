internal import LLBytes

/// The nonces of logins that have begun, in the memory of one process: it issues them, compares them and uses them up.
///
/// ```swift
/// let nonce = logins.begin(session.id)  // Give it to the app.
/// let login = try await logins.finish(session.id, with: token, by: verifier)
/// ```
///
/// Each login has an ID of your own, such as the session's: a random text that only the client of that login knows. A
/// refused token, an outage or a stranger's attempt uses no nonce up.
public final class LoginNonces: Sendable, Redacted {
    private typealias Login = (nonce: Nonce, end: MonotonicInstant)

    /// Two halves, so that each step is short: once the young one is full or old, it replaces the other.
    private struct State {
        var (young, old): ([String: Login], [String: Login]) = ([:], [:])
        var turn = MonotonicInstant(nanoseconds: 0)
    }

    /// The default lifetime of a nonce: ten minutes.
    public static let defaultLifetime = NonceIssuer.defaultLifetime

    private let capacity: Int
    private let lifetime: Duration
    private let clock: @Sendable () -> MonotonicInstant
    private let state = Locked(State())

    /// An empty memory of logins.
    /// - Parameters:
    ///   - capacity: The greatest number of logins, at least 2. If more begin within a lifetime, the oldest ones are
    ///     forgotten, and these people have to begin again. The default takes about 20 MB when it is full.
    ///   - lifetime: The time from the beginning of a login to its token; at most a day.
    ///   - clock: The time since any fixed moment, which never goes back; nil for the system's monotonic clock.
    public init(
        capacity: Int = 65_536,
        lifetime: Duration = defaultLifetime,
        clock: (@Sendable () -> Duration)? = nil
    ) {
        self.capacity = max(2, capacity)
        self.lifetime = min(max(.zero, lifetime), NonceIssuer.greatestLifetime)
        self.clock = { clock.map { MonotonicInstant($0()) } ?? MonotonicClock.now() }
    }

    /// Begins a login, and issues its nonce for the app. An earlier nonce of the same ID is good no more.
    /// - Parameter id: Your ID of the login.
    public func begin(_ id: String) -> Nonce {
        let (nonce, now) = (Nonce.generate(), clock())
        state.withLock { state in
            if state.young.count >= capacity / 2 || now >= state.turn {
                (state.old, state.young, state.turn) = (state.young, [:], now + lifetime)
            }
            state.old[id] = nil
            state.young[id] = (nonce, now + lifetime)
        }
        return nonce
    }

    /// Ends a login: verifies its token with the nonce that this login began with, and then uses the nonce up.
    /// - Parameters:
    ///   - id: Your ID of the login, from the session and never from the token.
    ///   - appID: The one app that the token must be for, one of the policy's; nil for any of them.
    /// - Throws: The same errors as ``LoginVerifier/verify(_:nonce:appID:)``; also ``Rejection/Code/nonceUsed`` if no such
    ///   login is under way, because its nonce was used, expired, or never issued.
    public nonisolated(nonsending) func finish(
        _ id: String,
        with token: String,
        by verifier: LoginVerifier,
        appID: String? = nil
    ) async throws -> VerifiedToken {
        guard let nonce = nonce(of: id) else { throw Self.noLogin }
        let login = try await verifier.verify(token, nonce: nonce.value, appID: appID)
        // Another request may have used the nonce, or begun the login anew, while this one waited for keys.
        guard nonce == self.nonce(of: id, usingUp: nonce) else { throw Self.noLogin }
        return login
    }

    private static let noLogin = Rejection(
        .nonceUsed,
        "No login with this ID is under way: its nonce was used, expired, or never issued.",
        hint: "Begin the login anew."
    )

    /// The nonce of a login, which is used up if it is the given one; nil if there is none or if it has expired.
    private func nonce(of id: String, usingUp used: Nonce? = nil) -> Nonce? {
        let now = clock()
        return state.withLock { state in
            guard let login = state.young[id] ?? state.old[id], now < login.end else { return nil }
            if login.nonce == used { (state.young[id], state.old[id]) = (nil, nil) }
            return login.nonce
        }
    }
}
