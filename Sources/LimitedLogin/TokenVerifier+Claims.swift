internal import JOSE

/// The claims, once the signature is good.
extension TokenVerifier {
    func readPayload(_ buffers: inout TokenBuffers) throws(TokenRejection) -> PayloadClaims {
        // A JWS may carry nothing (RFC 7515 section 3); an id token has claims.
        guard !buffers.payload.isEmpty else { throw .malformedToken(.emptyPart(.payload)) }
        do throws(JSONError) {
            try buffers.payloadDocument.parse(buffers.payload)
        } catch {
            throw .malformedToken(.invalidJSON(.payload, reason: error.reason.rawValue))
        }
        guard let claims = PayloadClaims(buffers.payloadDocument, in: buffers.payload.span) else {
            throw .malformedToken(.notAnObject(.payload))
        }
        return claims
    }

    func checkIssuer(_ payload: PayloadClaims, _ buffers: inout TokenBuffers) throws(TokenRejection) {
        let issuer = try requireString(payload[.issuer], .issuer, &buffers)
        // Equality of the whole value: no prefix, no substring, no trailing slash (CVE-2024-53861).
        guard isMember(issuer, of: issuers, &buffers) else {
            throw .invalidIssuer(buffers.payloadString(issuer))
        }
    }

    func checkAudience(
        _ payload: PayloadClaims,
        _ appID: Span<UInt8>,
        _ buffers: inout TokenBuffers
    ) throws(TokenRejection) {
        let audience = try audienceNode(payload, &buffers)
        let isExpected =
            appID.isEmpty
            ? isMember(audience, of: apps, &buffers)
            : buffers.payloadDocument.string(audience, equals: appID, in: buffers.payload.span)
        guard isExpected else { throw .invalidAudience(.otherApp(buffers.payloadString(audience))) }
        // OpenID Connect Core section 3.1.3.7 step 5: `azp`, where there, is the client.
        guard let party = payload[.authorizedParty] else { return }
        guard buffers.payloadDocument.isString(party) else {
            throw .malformedClaim(.authorizedParty, .wrongType)
        }
        let name = buffers.payloadString(party)
        guard name.utf8.elementsEqual(buffers.payloadString(audience).utf8) else {
            throw .invalidAudience(.otherAuthorizedParty(name))
        }
    }

    /// The one audience: `aud` itself, or the only element of an array (RFC 7519 section 4.1.3). Further
    /// audiences would have to be trusted too (OpenID Connect Core section 3.1.3.7 step 3), and none is.
    func audienceNode(_ payload: PayloadClaims, _ buffers: inout TokenBuffers) throws(TokenRejection) -> Int {
        guard let node = payload[.audience], buffers.payloadDocument.kind(node) == .array else {
            return try requireString(payload[.audience], .audience, &buffers)
        }
        let first = buffers.payloadDocument.firstChild(node)
        let end = buffers.payloadDocument.next(node)
        guard first < end else { throw .malformedClaim(.audience, .empty) }
        let audience = try requireString(first, .audience, &buffers)
        guard buffers.payloadDocument.next(audience) == end else { throw .invalidAudience(.severalAudiences) }
        return audience
    }

    func checkTimes(
        _ payload: PayloadClaims,
        _ now: NumericDate,
        _ buffers: inout TokenBuffers
    ) throws(TokenRejection) -> (issuedAt: NumericDate, expiresAt: NumericDate) {
        // All sums below are of doubles up to 2⁵³ + 2³¹: they neither overflow nor saturate.
        let skew = Double(policy.clockSkewSeconds)
        let seconds = now.secondsSince1970
        let expiresAt = try requireDate(payload[.expiration], .expiration, &buffers)
        guard seconds < expiresAt.secondsSince1970 + skew else { throw .expired(at: expiresAt, now: now) }
        let issuedAt = try requireDate(payload[.issuedAt], .issuedAt, &buffers)
        guard issuedAt.secondsSince1970 <= seconds + skew else {
            throw .notYetValid(.issuedAt, at: issuedAt, now: now)
        }
        if payload[.notBefore] != nil {
            let notBefore = try requireDate(payload[.notBefore], .notBefore, &buffers)
            guard notBefore.secondsSince1970 <= seconds + skew else {
                throw .notYetValid(.notBefore, at: notBefore, now: now)
            }
        }
        if let maximum = policy.maximumTokenAgeSeconds {
            guard seconds - issuedAt.secondsSince1970 <= Double(maximum) + skew else {
                throw .tooOld(issuedAt: issuedAt, maximumAgeSeconds: maximum, now: now)
            }
        }
        return (issuedAt, expiresAt)
    }

    func checkIdentity(_ payload: PayloadClaims, _ buffers: inout TokenBuffers) throws(TokenRejection) {
        let subject = try requireString(payload[.subject], .subject, &buffers)
        // OpenID Connect Core section 2: at most 255 ASCII characters.
        guard buffers.isShortASCII(subject) else { throw .malformedClaim(.subject, .outOfShape) }
        _ = try requireString(payload[.tokenID], .tokenID, &buffers)
    }

    func checkTracking(
        _ payload: PayloadClaims,
        _ buffers: inout TokenBuffers
    ) throws(TokenRejection) -> LoginTracking {
        guard payload[.accessTokenHash] != nil else { return .limited }
        _ = try requireString(payload[.accessTokenHash], .accessTokenHash, &buffers)
        guard policy.tracking == .any else { throw .trackingNotAllowed }
        return .enabled
    }
}
