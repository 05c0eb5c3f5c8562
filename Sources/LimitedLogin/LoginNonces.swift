internal import LLBytes
internal import LLJOSE

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
    ///   - token: The id token as the app sent it.
    ///   - verifier: Judges the token.
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

/// The nonce that the login of an access token must have been begun with, its `auth_nonce`.
public struct NonceExpectation: Sendable, Redacted {
    private let nonce: Nonce?
    private let issuer: NonceIssuer?
    private let mustBeIssued: Bool
    /// True if a session is prolonged: the age of an issued nonce does not count, and it is not used up.
    private let isRefresh: Bool

    package init(_ nonce: Nonce?, _ issuer: NonceIssuer?, mustBeIssued: Bool, isRefresh: Bool = false) {
        (self.nonce, self.issuer) = (nonce, issuer)
        (self.mustBeIssued, self.isRefresh) = (mustBeIssued, isRefresh)
    }

    /// Exactly this nonce, which your session holds. Accept each nonce once. If `issuer` issued it for the credential's app,
    /// it must not have expired.
    public static func nonce(_ nonce: Nonce, issuer: NonceIssuer? = nil) -> NonceExpectation {
        NonceExpectation(nonce, issuer, mustBeIssued: false)
    }

    /// A nonce that this issuer issued for the credential's app, and that has not expired. Accept each nonce once.
    ///
    /// It does not tell which login the credential belongs to: give the nonce of your session if there is one.
    public static func issued(by issuer: NonceIssuer) -> NonceExpectation {
        NonceExpectation(nil, issuer, mustBeIssued: true)
    }

    /// Compares the received nonce, if there was one, in constant time; returns the facts of an issued one.
    func check(_ nonce: String?, appID: String, now: NumericDate) throws(Rejection) -> RecognizedNonce? {
        guard let nonce, !nonce.isEmpty else { throw .accessTokenNonceMismatch }
        let text = Array(nonce.utf8)
        if let expected = self.nonce {
            guard ConstantTime.areEqual(text.span, expected.value.utf8.span) else { throw .accessTokenNonceMismatch }
        }
        guard let facts = issuer?.recognize(text.span, appID: Array(appID.utf8).span) else {
            guard !mustBeIssued else { throw .accessTokenNonceNotIssued }
            return nil
        }
        guard !isRefresh else { return nil }
        guard now < facts.expiresAt else { throw .accessTokenNonceExpired }
        return facts
    }
}

/// The nonce of the login that an access token came from: the answer of `GET /oauth/access_token_info`, judged.
///
/// The web dialog takes a nonce as `auth_nonce`, together with `auth_type=reauthenticate` (Meta, "Re-authentication").
/// Facebook does not prevent a second use of a nonce. Judge `debug_token` and `/me` first: this answer names neither the
/// app nor the person.
public struct AccessTokenNonce: Equatable, Sendable, Redacted {
    /// The nonce.
    public let value: String
    package let issued: RecognizedNonce?

    /// Judges the body of Graph's answer about a token's login, as of `now`.
    /// - Throws: ``Rejection``: a missing nonce, or one that is no text, counts as a different one;
    ///   ``Unavailable/unreadableAnswer``, which is not the token's fault.
    public init(
        accessTokenInfo answer: [UInt8],
        of token: VerifiedAccessToken,
        expecting expectation: NonceExpectation,
        now: NumericDate
    ) throws {
        let json = try JSONObject.graph(answer)
        let nonce = json.string("auth_nonce")
        issued = try expectation.check(nonce, appID: token.inspection.appID, now: now)
        value = nonce ?? ""
    }
}
