internal import LLJOSE

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
