public import LLJOSE

/// Verifies id tokens with keys from a provider: the usual entry point for an app's own server.
///
/// ```swift
/// let verified = try await verifier.verify(token, nonce: nonce)
/// ```
///
/// It adds no check and no leniency to a ``TokenVerifier``. Make one and keep it: it holds prepared keys and buffers. Any
/// number of tasks may use it at once.
public struct LoginVerifier: Sendable {
    /// Judges a token when its keys are there.
    public let verifier: TokenVerifier
    /// Provides the keys of the policy's issuers alone.
    public let keys: any JWKSetProvider
    private let clock: @Sendable () -> Double

    /// A verifier of one policy.
    /// - Parameters:
    ///   - policy: The rules of the verdict.
    ///   - keys: The keys of the policy's issuers: a `JWKSetCache` of the `LimitedLoginKeys` library, or a `JWKSet`.
    ///   - nonces: Issued the nonces of logins bound by ``TokenBinding/issuedNonce``; nil if none are issued.
    ///   - clock: Returns the seconds since 1970. If they are negative or not a number, no token is judged.
    public init(
        policy: VerificationPolicy,
        keys: any JWKSetProvider,
        nonces: NonceIssuer? = nil,
        clock: @escaping @Sendable () -> Double = NumericDate.systemSeconds
    ) {
        verifier = TokenVerifier(policy: policy, nonces: nonces)
        self.keys = keys
        self.clock = clock
    }

    /// Verifies the token of a login that was begun with `nonce`.
    /// - Parameters:
    ///   - token: The id token as the app sent it.
    ///   - nonce: The nonce that your server gave to the app, from your own session or store: one from the client proves
    ///     nothing. Forget it when its token was accepted or refused, and keep it after an ``Unavailable``.
    ///   - appID: The one app that the token must be for, one of the policy's; nil for any of them.
    /// - Throws: ``Rejection``, the one reason for the refusal; ``Unavailable`` if the token cannot be judged, also after a
    ///   cancellation of the task: ``Unavailable/underlyingError`` is a `CancellationError` then.
    public nonisolated(nonsending) func verify(
        _ token: String,
        nonce: String,
        appID: String? = nil
    ) async throws -> VerifiedToken {
        try await verify(token, expecting: TokenExpectation(binding: .nonce(Self.nonce(nonce)), appID: appID))
    }

    /// Verifies the token of a login for which the client gave Facebook the lower-case hexadecimal SHA-256 of `rawNonce`,
    /// the nonce in your own session or store; else it is ``verify(_:nonce:appID:)``.
    public nonisolated(nonsending) func verify(
        _ token: String,
        rawNonce: String,
        appID: String? = nil
    ) async throws -> VerifiedToken {
        try await verify(token, expecting: TokenExpectation(binding: .rawNonce(Self.nonce(rawNonce)), appID: appID))
    }

    /// Verifies a refreshed token of a session that already exists. It may prolong that session, but never start one: at a
    /// login it would accept a stolen token.
    ///
    /// `user` is the session's user, ``Profile/userID`` of the login that began it, and never a value from the client.
    /// `nonce` is that login's, which the SDK's refresh in the background keeps; nil if it is no longer known. The errors are
    /// those of ``verify(_:nonce:appID:)``.
    public nonisolated(nonsending) func verifyRefresh(
        _ token: String,
        ofSessionOf user: String,
        nonce: String? = nil,
        appID: String? = nil
    ) async throws -> VerifiedToken {
        let login = try nonce.map { TokenBinding.nonce(try Self.nonce($0)) }
        let binding = login?.refreshing(user) ?? .refresh(ofSessionOf: user)
        return try await verify(token, expecting: TokenExpectation(binding: binding, appID: appID))
    }

    /// Verifies a token of the expected login, with the errors of ``verify(_:nonce:appID:)``.
    public nonisolated(nonsending) func verify(
        _ token: String,
        expecting expectation: TokenExpectation
    ) async throws -> VerifiedToken {
        guard let now = NumericDate(secondsSince1970: clock()) else { throw Unavailable.clock }
        let keyID = try verifier.keyID(of: token, expectation)
        let keySet: JWKSet
        do {
            keySet = try await keys.keySet(containing: keyID)
        } catch {
            // A provider may throw another error after a cancellation.
            throw Unavailable.keys(Task.isCancelled ? CancellationError() : error)
        }
        // The token may have expired during a wait for keys.
        let later = max(now, NumericDate(secondsSince1970: clock()) ?? now)
        return try verifier.verify(token, expecting: expectation, keys: keySet, now: later)
    }

    private static func nonce(_ text: String) throws -> Nonce {
        guard let nonce = Nonce(text) else { throw Rejection.invalidNonce.error }
        return nonce
    }
}
