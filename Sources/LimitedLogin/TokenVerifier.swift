public import JOSE

/// Decides whether an id token is genuine, meant for this app, fresh, and tied to this login.
public struct TokenVerifier: Sendable {
    /// What is accepted.
    public let policy: VerificationPolicy

    /// A verifier for one policy.
    public init(policy: VerificationPolicy) {
        self.policy = policy
    }

    /// Judges a token given as bytes, allocating nothing when it is good.
    ///
    /// - Parameters:
    ///   - value: the nonce, raw nonce or subject the binding compares with; empty for `.unbound`.
    ///   - appID: the one app the token must be for; empty for any configured app.
    package func judge(
        _ token: Span<UInt8>,
        binding: BindingKind,
        value: Span<UInt8>,
        appID: Span<UInt8>,
        keys: VerificationKeys,
        now: NumericDate,
        workspace: VerificationWorkspace
    ) throws(TokenRejection) -> VerifiedClaims {
        throw .unknownKey(keyID: "")
    }

    /// Verifies a token against a JWK Set.
    public func verify(
        _ token: String,
        expecting expectation: TokenExpectation,
        keys: JSONWebKeySet,
        now: NumericDate
    ) throws(TokenRejection) -> VerifiedToken {
        throw .unknownKey(keyID: "")
    }
}
