internal import LLBytes
internal import LLJOSE

/// The positions of an accepted token's claims in its payload, and its facts without a position: 96 bytes for any token.
/// ``TokenVerifier/accept(_:of:_:_:now:workspace:)`` judges them again each time, except for the facts of the bytes
/// alone: header and payload are strict, every claim has its type, `sub` is short and `jti` exists.
package struct CachedClaims: Sendable {
    private let issuedAt: NumericDate
    private let expiresAt: NumericDate
    private var texts = InlineArray<16, PayloadRange>(repeating: PayloadRange())
    /// The payload in base64url, as a part of the token.
    private var payload = PayloadRange()
    private let satisfiedPermissions: PermissionSet
    private let isLimited: Bool
    private let isBoundToKey: Bool

    /// Reads an accepted token. Nil for a token with `nbf`, which is read each time.
    package init?(_ claims: VerifiedClaims, of token: Span<UInt8>) {
        guard !claims.hasNotBefore, let jws = JWSCompactSerialization(splitting: token) else { return nil }
        (issuedAt, expiresAt) = (claims.issuedAt, claims.expiresAt)
        (isLimited, isBoundToKey) = (claims.isLimited, claims.isBoundToKey)
        satisfiedPermissions = claims.satisfiedPermissions
        payload.range = jws.payload
        for index in texts.indices { texts[index] = claims.texts[index] }
    }

    /// Decodes the wanted texts into `buffer`, and those that are judged; nil for another token than the one that was read.
    fileprivate func claims(_ wanted: ClaimSet, of token: Span<UInt8>, into buffer: inout [UInt8]) -> VerifiedClaims? {
        guard let payload = payload.range, payload.upperBound <= token.count else { return nil }
        buffer.removeAll(keepingCapacity: true)
        var claims = VerifiedClaims(issuedAt: issuedAt, expiresAt: expiresAt)
        var rest = wanted.union(.judged).rawValue
        while rest != 0 {
            let index = rest.trailingZeroBitCount
            rest &= rest - 1
            guard let bytes = texts[index].range else { continue }
            guard let range = Base64URL.append(bytes, of: token, payload, to: &buffer) else { return nil }
            claims.texts[index].range = range
        }
        (claims.isLimited, claims.isBoundToKey) = (isLimited, isBoundToKey)
        claims.satisfiedPermissions = satisfiedPermissions
        return claims
    }
}

/// Text claims that a route tells. The first sixteen of ``ClaimName`` can be members, among them all that are told.
package struct ClaimSet: OptionSet, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }
    package init(_ claim: ClaimName) { rawValue = 1 << UInt16(claim.rawValue) }

    package static let all = ClaimSet(rawValue: .max)
    fileprivate static let judged: ClaimSet = [
        ClaimSet(.issuer), ClaimSet(.audience), ClaimSet(.subject), ClaimSet(.confirmation),
    ]
}

extension TokenVerifier {
    /// Judges a token that was accepted before, by the reading of exactly this token. The payload of the workspace then has
    /// the wanted texts and is not JSON. Nil if the token might be refused: it is then judged as a whole.
    package func accept(
        _ reading: CachedClaims,
        of token: Span<UInt8>,
        _ expectation: TokenExpectation,
        _ wanted: ClaimSet,
        now: NumericDate,
        workspace: inout VerificationWorkspace
    ) -> VerifiedClaims? {
        workspace.recognizedNonce = nil
        // No configured app has a reverse solidus, so an audience with escapes is judged as a whole.
        guard acceptsUnbound, expectation.requiresAppAlone,
            let claims = reading.claims(wanted, of: token, into: &workspace.claimsSet.bytes),
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
