internal import LLBytes
internal import LLJOSE

/// The positions of an accepted token's claims in its payload, and its facts without a position: 50 bytes for any
/// token.
///
/// It has the decoded content of one token and no verdict on it: ``TokenVerifier/accept(_:of:_:now:workspace:)`` judges
/// that again each time. Checks with a result that depends on the bytes alone are not repeated: header and payload are
/// strict, every claim has its type, `sub` is short and `jti` exists.
package struct CachedClaims: Sendable {
    package typealias Text = VerifiedClaims.Text

    /// A subset of the texts.
    package struct Texts: Sendable, Equatable {
        fileprivate var bits: UInt16 = 0

        package init() {}

        package static var all: Texts {
            var all = Texts()
            for text in Text.allCases { all.insert(text) }
            return all
        }

        package mutating func insert(_ text: Text) { bits |= 1 << UInt16(text.rawValue) }
    }

    /// Seconds since 1970.
    private let issuedAt: UInt32
    private let expiresAt: UInt32
    private let satisfiedPermissions: UInt16
    /// The length of the header in base64url.
    private let headerDigitCount: UInt16
    /// The first byte of each text in the payload (13 bits) and its length (11 bits), the low half and the high one.
    private var low = InlineArray<12, UInt16>(repeating: .max)
    private var high = InlineArray<12, UInt8>(repeating: .max)
    private let isLimited: Bool
    private let isBoundToKey: Bool

    /// The start of an absent claim. A text must start below this value.
    private static let absent = 0x1FFF
    private static let greatestLength = 0x7FE

    /// Reads an accepted token. Nil for a token that does not fit this form: one with `nbf`, fractions of a second, a
    /// time after 2106, a text of 2 KiB, or a text beyond the first 8,190 bytes, for example after the IDs of many
    /// friends. Such a token is read each time.
    package init?(_ claims: VerifiedClaims, of token: Span<UInt8>) {
        guard let issuedAt = UInt32(exactly: claims.issuedAt.secondsSince1970),
            let expiresAt = UInt32(exactly: claims.expiresAt.secondsSince1970),
            let headerDigitCount = UInt16(exactly: token.firstOffset(of: UInt8(ascii: "."), from: 0)),
            !claims.hasNotBefore
        else { return nil }
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
        self.headerDigitCount = headerDigitCount
        satisfiedPermissions = claims.satisfiedPermissions.rawValue
        isLimited = claims.isLimited
        isBoundToKey = claims.isBoundToKey
        for index in claims.texts.indices {
            let range = claims.texts[index]
            guard range.start != .max else { continue }
            guard range.start < Self.absent, range.count <= Self.greatestLength else { return nil }
            let place = Int(range.start) | Int(range.count) << 13
            low[index] = UInt16(truncatingIfNeeded: place)
            high[index] = UInt8(truncatingIfNeeded: place >> 16)
        }
    }

    /// True if the token's times are good for `policy` at this time.
    fileprivate func isTimely(_ policy: VerificationPolicy, _ now: NumericDate) -> Bool {
        !policy.isExpired(moment(expiresAt), now) && !policy.isAhead(moment(issuedAt), now)
            && !policy.isTooOld(moment(issuedAt), now) && (policy.tracking == .any || isLimited)
    }

    private func moment(_ seconds: UInt32) -> NumericDate { NumericDate(milliseconds: UInt64(seconds) * 1_000) }

    /// Decodes the wanted texts, and the issuer, audience and subject, into `payload`; the claims' ranges are positions
    /// in it. Nil if the token is not the one that this was read from.
    fileprivate func claims(
        _ wanted: Texts,
        of signingInput: Span<UInt8>,
        into payload: inout [UInt8]
    ) -> VerifiedClaims? {
        let (start, end) = (Int(headerDigitCount) + 1, signingInput.count)
        guard start <= end else { return nil }
        var wanted = wanted
        wanted.insert(.issuer)
        wanted.insert(.audience)
        wanted.insert(.subject)
        payload.removeAll(keepingCapacity: true)
        var claims = VerifiedClaims(issuedAt: moment(issuedAt), expiresAt: moment(expiresAt))
        var rest = wanted.bits
        while rest != 0 {
            let index = rest.trailingZeroBitCount
            rest &= rest - 1
            let place = Int(low[index]) | Int(high[index]) << 16
            guard place & Self.absent != Self.absent, let text = Text(rawValue: index) else { continue }
            let first = place & Self.absent
            guard
                let range = Base64URL.append(first..<first + place >> 13, of: signingInput, start..<end, to: &payload)
            else { return nil }
            claims[text] = range
        }
        claims.isLimited = isLimited
        claims.isBoundToKey = isBoundToKey
        claims.satisfiedPermissions = PermissionSet(rawValue: satisfiedPermissions)
        return claims
    }
}

extension TokenVerifier {
    /// Judges a token that was accepted before, by its stored reading: everything except the bytes themselves is
    /// checked again.
    /// - Parameters:
    ///   - reading: Read from exactly this signing input, which has a good signature under a current key.
    ///   - expectation: The requirements.
    ///   - texts: The texts to return; others may be missing.
    ///   - workspace: Afterwards its payload has the texts of the claims and is not JSON.
    /// - Returns: Nil if the token is refused or might be. It must then be judged as a whole, which finds the fault.
    package func accept(
        _ reading: CachedClaims,
        of signingInput: Span<UInt8>,
        _ expectation: TokenExpectation,
        _ texts: CachedClaims.Texts,
        now: NumericDate,
        workspace: inout VerificationWorkspace
    ) -> VerifiedClaims? {
        guard acceptsUnbound, expectation.requiresAppAlone, reading.isTimely(policy, now) else { return nil }
        workspace.recognizedNonce = nil
        // No configured app has a reverse solidus, so an audience with escapes is judged as a whole.
        guard let claims = reading.claims(texts, of: signingInput, into: &workspace.claimsSet.bytes),
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
