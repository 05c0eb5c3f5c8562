public import JOSE

/// The door for callers who want values of their own rather than speed.
extension TokenVerifier {
    /// Verifies a token: the same verdict as every other door's, with owned values.
    ///
    /// - Parameters:
    ///   - token: the id token as the app sent it.
    ///   - expectation: the login it should belong to.
    ///   - keys: the JWK Set of the policy's issuers.
    ///   - now: the time to judge as of.
    /// - Throws: the one reason it was refused for.
    public func verify(
        _ token: String,
        expecting expectation: TokenExpectation,
        keys: JSONWebKeySet,
        now: NumericDate
    ) throws(TokenRejection) -> VerifiedToken {
        try verify(
            token,
            expecting: expectation,
            keys: VerificationKeys(keys),
            now: now,
            workspace: VerificationWorkspace()
        )
    }

    /// Verifies a token with keys that are ready and buffers that are reused: for many tokens on one thread.
    public func verify(
        _ token: String,
        expecting expectation: TokenExpectation,
        keys: VerificationKeys,
        now: NumericDate,
        workspace: VerificationWorkspace
    ) throws(TokenRejection) -> VerifiedToken {
        let (kind, value) = Self.parts(expectation.binding)
        // An app ID that is given but empty is none of the policy's; the byte door would read it as none given.
        if let appID = expectation.appID, appID.isEmpty { throw .unknownApp }
        let bytes = Array(token.utf8)
        let claims = try judge(
            bytes.span,
            binding: kind,
            value: value.utf8.span,
            appID: (expectation.appID ?? "").utf8.span,
            keys: keys,
            now: now,
            workspace: workspace
        )
        return VerifiedToken(token, claims, workspace)
    }

    private static func parts(_ binding: TokenBinding) -> (BindingKind, String) {
        switch binding {
        case .nonce(let nonce): (.nonce, nonce.value)
        case .rawNonce(let nonce): (.rawNonce, nonce.value)
        case .issuedNonce: (.issuedNonce, "")
        case .subject(let subject): (.subject, subject)
        case .unbound: (.unbound, "")
        }
    }
}
