internal import LLBytes
internal import LLJOSE

/// The positions of an accepted token's claims in its payload, and its facts without a position: 72 bytes for any
/// token.
///
/// It has the decoded content of one token and no verdict on it: ``TokenVerifier/accept(_:of:_:now:workspace:)`` judges
/// that again each time. Checks with a result that depends on the bytes alone are not repeated: header and payload are
/// strict, every claim has its type, `sub` is short and `jti` exists.
package struct CachedClaims: Sendable {
    private let issuedAt: NumericDate
    private let expiresAt: NumericDate
    private let texts: InlineArray<12, PayloadRange>
    /// The payload in base64url, as a part of the token.
    @PayloadRange private var payload: Range<Int>?
    private let satisfiedPermissions: PermissionSet
    private let isLimited: Bool
    private let isBoundToKey: Bool

    /// Reads an accepted token. Nil for a token with `nbf`, which is read each time.
    package init?(_ claims: VerifiedClaims, of token: Span<UInt8>) {
        guard !claims.hasNotBefore, let jws = try? JWSCompactSerialization(splitting: token) else { return nil }
        (issuedAt, expiresAt, texts) = (claims.issuedAt, claims.expiresAt, claims.texts)
        (isLimited, isBoundToKey) = (claims.isLimited, claims.isBoundToKey)
        satisfiedPermissions = claims.satisfiedPermissions
        payload = jws.payload
    }

    /// Decodes the payload into `buffer`; nil if the token is not the one that this was read from.
    fileprivate func claims(of token: Span<UInt8>, into buffer: inout [UInt8]) -> VerifiedClaims? {
        guard let payload, payload.upperBound <= token.count, Base64URL.decode(token, payload, into: &buffer) else {
            return nil
        }
        var claims = VerifiedClaims(issuedAt: issuedAt, expiresAt: expiresAt)
        claims.texts = texts
        (claims.isLimited, claims.isBoundToKey) = (isLimited, isBoundToKey)
        claims.satisfiedPermissions = satisfiedPermissions
        return claims
    }
}

extension TokenVerifier {
    /// Judges a token that was accepted before, by its stored reading: everything except the bytes themselves is
    /// checked again.
    /// - Parameters:
    ///   - reading: Read from exactly this token, which has a good signature under a current key.
    ///   - workspace: Afterwards it has the payload, and no position of a claim that ``VerifiedClaims/Text`` lacks.
    /// - Returns: Nil if the token is refused or might be. It must then be judged as a whole, which finds the fault.
    package func accept(
        _ reading: CachedClaims,
        of token: Span<UInt8>,
        _ expectation: TokenExpectation,
        now: NumericDate,
        workspace: inout VerificationWorkspace
    ) -> VerifiedClaims? {
        workspace.recognizedNonce = nil
        // No configured app has a reverse solidus, so an audience with escapes is judged as a whole.
        guard acceptsUnbound, expectation.requiresAppAlone,
            let claims = reading.claims(of: token, into: &workspace.claimsSet.bytes),
            !policy.isExpired(claims.expiresAt, now), !policy.isAhead(claims.issuedAt, now),
            !policy.isTooOld(claims.issuedAt, now), policy.tracking == .any || claims.isLimited,
            apps.contains(workspace.claimsSet.bytes.span, claims.audience),
            expectation.appIDBytes.map({ workspace.claimsSet.bytes.span.equal(claims.audience, $0.span) }) ?? true
        else { return nil }
        let payload = workspace.payload
        workspace.scratch.removeAll(keepingCapacity: true)
        JSONText.append(payload.span, claims.issuer, to: &workspace.scratch)
        guard issuers.contains(workspace.scratch.span, 0..<workspace.scratch.count) else { return nil }
        return claims
    }
}
