internal import LLBytes
internal import LLJOSE

/// The positions of an accepted token's claims in its payload, and its facts without a position: 72 bytes for any
/// token.
///
/// It has the decoded content of one token and no verdict on it: ``TokenVerifier/accept(_:of:_:_:now:workspace:)``
/// judges that again each time. Checks with a result that depends on the bytes alone are not repeated: header and
/// payload are strict, every claim has its type, `sub` is short and `jti` exists.
package struct CachedClaims: Sendable {
    package typealias Text = VerifiedClaims.Text

    package struct Texts: OptionSet, Sendable {
        package let rawValue: UInt16

        package init(rawValue: UInt16) { self.rawValue = rawValue }
        package init(_ text: Text) { rawValue = 1 << UInt16(text.rawValue) }

        package static let all = Self(rawValue: .max)
        /// The texts that are compared each time.
        fileprivate static let judged: Self = [Self(.issuer), Self(.audience), Self(.subject)]
    }

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
        issuedAt = claims.issuedAt
        expiresAt = claims.expiresAt
        texts = claims.texts
        satisfiedPermissions = claims.satisfiedPermissions
        isLimited = claims.isLimited
        isBoundToKey = claims.isBoundToKey
        payload = jws.payload
    }

    /// True if the token's times are good for `policy` at this time.
    fileprivate func isTimely(_ policy: VerificationPolicy, _ now: NumericDate) -> Bool {
        !policy.isExpired(expiresAt, now) && !policy.isAhead(issuedAt, now) && !policy.isTooOld(issuedAt, now)
            && (policy.tracking == .any || isLimited)
    }

    /// Decodes the wanted texts, and the issuer, audience and subject, into `buffer`; the claims' ranges are positions
    /// in it. Nil if the token is not the one that this was read from.
    fileprivate func claims(_ wanted: Texts, of token: Span<UInt8>, into buffer: inout [UInt8]) -> VerifiedClaims? {
        guard let payload, payload.upperBound <= token.count else { return nil }
        buffer.removeAll(keepingCapacity: true)
        var claims = VerifiedClaims(issuedAt: issuedAt, expiresAt: expiresAt)
        var rest = wanted.union(.judged).rawValue
        while let text = Text(rawValue: rest.trailingZeroBitCount) {
            rest &= rest - 1
            guard let bytes = texts[text.rawValue].wrappedValue else { continue }
            guard let range = Base64URL.append(bytes, of: token, payload, to: &buffer) else { return nil }
            claims[text] = range
        }
        claims.isLimited = isLimited
        claims.isBoundToKey = isBoundToKey
        claims.satisfiedPermissions = satisfiedPermissions
        return claims
    }
}

extension TokenVerifier {
    /// Judges a token that was accepted before, by its stored reading: everything except the bytes themselves is
    /// checked again.
    /// - Parameters:
    ///   - reading: Read from exactly this token, which has a good signature under a current key.
    ///   - expectation: The requirements.
    ///   - texts: The texts to return; others may be missing.
    ///   - workspace: Afterwards its payload has the texts of the claims and is not JSON.
    /// - Returns: Nil if the token is refused or might be. It must then be judged as a whole, which finds the fault.
    package func accept(
        _ reading: CachedClaims,
        of token: Span<UInt8>,
        _ expectation: TokenExpectation,
        _ texts: CachedClaims.Texts,
        now: NumericDate,
        workspace: inout VerificationWorkspace
    ) -> VerifiedClaims? {
        guard acceptsUnbound, expectation.requiresAppAlone, reading.isTimely(policy, now) else { return nil }
        workspace.recognizedNonce = nil
        // No configured app has a reverse solidus, so an audience with escapes is judged as a whole.
        guard let claims = reading.claims(texts, of: token, into: &workspace.claimsSet.bytes),
            apps.contains(workspace.claimsSet.bytes.span, claims.audience),
            expectation.appIDBytes.map({ workspace.claimsSet.bytes.span.equal(claims.audience, $0.span) }) ?? true
        else { return nil }
        let payload = workspace.claimsSet.bytes
        workspace.scratch.removeAll(keepingCapacity: true)
        JSONText.append(payload.span, claims.issuer, to: &workspace.scratch)
        guard issuers.contains(workspace.scratch.span, 0..<workspace.scratch.count) else { return nil }
        return claims
    }
}
