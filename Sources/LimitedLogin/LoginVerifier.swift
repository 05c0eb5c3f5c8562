public import LLJOSE

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// Decides about id tokens with keys that somebody else keeps: the door for an app's own server.
///
/// ```swift
/// let verified = try await verifier.verify(token, nonce: nonce)
/// ```
///
/// It puts a ``TokenVerifier`` and a provider of keys together and adds no check and no leniency of its own.
public struct LoginVerifier<Keys: JSONWebKeySetProvider>: Sendable {
    /// Judges what the keys were found for.
    public let verifier: TokenVerifier
    /// Gives the keys of the policy's issuers, and no others.
    public let keys: Keys
    private let clock: @Sendable () -> Double

    /// A verifier of one policy.
    /// - Parameters:
    ///   - policy: what is accepted.
    ///   - keys: the keys of the policy's issuers: a `JWKSetCache` of the `LimitedLoginKeys` library, or a `JSONWebKeySet`.
    ///   - nonces: issued the nonces of logins bound by ``TokenBinding/issuedNonce``; nil where none are.
    ///   - clock: the present in seconds since 1970; the system's clock unless a test gives another. Without such a time
    ///     (it is negative, or not a number) nothing is judged: ``VerificationUnavailable/clock``.
    public init(
        policy: VerificationPolicy,
        keys: Keys,
        nonces: NonceIssuer? = nil,
        clock: @escaping @Sendable () -> Double = SystemClock.secondsSince1970
    ) {
        verifier = TokenVerifier(policy: policy, nonces: nonces)
        self.keys = keys
        self.clock = clock
    }

    /// Verifies the token of a login that was begun with `nonce`.
    /// - Parameters:
    ///   - token: the id token as the app sent it.
    ///   - nonce: the nonce your server gave to the app, taken from your own session or store. Every token shows its nonce,
    ///     so one that comes with the token proves nothing. Forget it once its token was accepted or refused; keep it when
    ///     a ``VerificationUnavailable`` is thrown, for the same token may come again.
    ///   - appID: the one app the token must be for, one of the policy's; nil for any of them.
    /// - Throws: ``TokenRejection``, the one reason it was refused for; ``VerificationUnavailable`` where it cannot be told,
    ///   also because the task was cancelled. That is no fault of the token: try again rather than end a session.
    public func verify(
        _ token: String,
        nonce: String,
        appID: String? = nil
    ) async throws -> VerifiedToken {
        guard let nonce = Nonce(nonce) else { throw Refusal.invalidNonce.error }
        return try await verify(token, expecting: TokenExpectation(binding: .nonce(nonce), appID: appID))
    }

    /// Verifies the token of a login whose client gave Facebook the SHA-256 of `rawNonce`.
    /// - Parameters:
    ///   - token: the id token as the app sent it.
    ///   - rawNonce: the nonce itself, taken from your own session or store; the token's is the lower-case hexadecimal of
    ///     its SHA-256.
    ///   - appID: the one app the token must be for, one of the policy's; nil for any of them.
    /// - Throws: as ``verify(_:nonce:appID:)``.
    public func verify(
        _ token: String,
        rawNonce: String,
        appID: String? = nil
    ) async throws -> VerifiedToken {
        guard let nonce = Nonce(rawNonce) else { throw Refusal.invalidNonce.error }
        return try await verify(token, expecting: TokenExpectation(binding: .rawNonce(nonce), appID: appID))
    }

    /// Verifies a refreshed token of a session that already exists. It may prolong that session, never start one.
    /// - Parameters:
    ///   - token: the id token as the app sent it.
    ///   - subject: the session's user, ``Profile/userID`` of the login that began it, whatever the client says.
    ///   - nonce: the nonce of the login that began it, which the SDK's refresh in the background keeps; nil where it is
    ///     not known any more.
    ///   - appID: the one app the token must be for, one of the policy's; nil for any of them.
    /// - Throws: as ``verify(_:nonce:appID:)``.
    public func verify(
        _ token: String,
        subject: String,
        nonce: String? = nil,
        appID: String? = nil
    ) async throws -> VerifiedToken {
        var binding = TokenBinding.subject(subject)
        if let nonce {
            guard let nonce = Nonce(nonce) else { throw Refusal.invalidNonce.error }
            binding = .nonce(nonce).refreshing(subject)
        }
        return try await verify(token, expecting: TokenExpectation(binding: binding, appID: appID))
    }

    /// Verifies a token.
    /// - Parameters:
    ///   - token: the id token as the app sent it.
    ///   - expectation: the login it should belong to.
    /// - Throws: as ``verify(_:nonce:appID:)``.
    public func verify(
        _ token: String,
        expecting expectation: TokenExpectation
    ) async throws -> VerifiedToken {
        guard let now = NumericDate(secondsSince1970: clock()) else { throw VerificationUnavailable.clock }
        let keyID = try keyID(of: token, expectation, now)
        guard keyID.utf8.count <= JSONWebKey.Limits.keyIDByteCount else {
            // No set holds a longer one, so asking for it would be in vain.
            throw Refusal.unknownKey(keyID.utf8).error
        }
        guard let keySet = try? await keys.keySet(containing: keyID) else { throw VerificationUnavailable.keys }
        // The token may have expired during a wait for keys.
        let later = max(now, NumericDate(secondsSince1970: clock()) ?? now)
        return try verifier.verify(token, expecting: expectation, keys: keySet, now: later)
    }

    /// The key ID of a token that is worth looking for keys; whatever else is wrong before the key is looked up is told
    /// at once.
    private func keyID(of token: String, _ expectation: TokenExpectation, _ now: NumericDate) throws -> String {
        var workspace = VerificationWorkspace()
        do throws(Refusal) {
            // Without a key nothing can be accepted: the verdict ends where the key would be found.
            _ = try verifier.verify(
                token,
                expecting: expectation,
                keys: VerificationKeys(JSONWebKeySet(keys: [])),
                now: now,
                workspace: &workspace
            )
        } catch {
            guard error == .keysUnavailable else { throw error.error }
        }
        return String(decoding: workspace.keyID, as: UTF8.self)
    }
}

/// The system's clock. The verdict itself never asks it: the time is an argument there.
@usableFromInline
enum SystemClock {
    /// The present in seconds since 1970.
    @usableFromInline
    static func secondsSince1970() -> Double {
        var time = timespec()
        // CLOCK_REALTIME is always there; where it were not, the time would be 1970, when no token was valid.
        guard unsafe clock_gettime(CLOCK_REALTIME, &time) == 0 else { return 0 }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000
    }
}
