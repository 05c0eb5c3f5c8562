internal import Bytes
internal import JOSE
internal import OpenSSL

/// The claims, once the signature is good.
extension TokenVerifier {
    func readPayload(_ buffers: inout TokenBuffers) throws(Refusal) -> PayloadClaims {
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

    func checkIssuer(_ payload: PayloadClaims, _ buffers: inout TokenBuffers) throws(Refusal) {
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
    ) throws(Refusal) {
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
    func audienceNode(_ payload: PayloadClaims, _ buffers: inout TokenBuffers) throws(Refusal) -> Int {
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
    ) throws(Refusal) -> (issuedAt: NumericDate, expiresAt: NumericDate) {
        let expiresAt = try requireDate(payload[.expiration], .expiration, &buffers)
        guard !policy.isExpired(expiresAt, now) else { throw .expired(at: expiresAt, now: now) }
        let issuedAt = try requireDate(payload[.issuedAt], .issuedAt, &buffers)
        guard !policy.isAhead(issuedAt, now) else {
            throw .notYetValid(.issuedAt, at: issuedAt, now: now)
        }
        if payload[.notBefore] != nil {
            let notBefore = try requireDate(payload[.notBefore], .notBefore, &buffers)
            guard !policy.isAhead(notBefore, now) else {
                throw .notYetValid(.notBefore, at: notBefore, now: now)
            }
        }
        if let maximum = policy.maximumTokenAgeSeconds, policy.isTooOld(issuedAt, now) {
            throw .tooOld(issuedAt: issuedAt, maximumAgeSeconds: maximum, now: now)
        }
        return (issuedAt, expiresAt)
    }

    func checkIdentity(_ payload: PayloadClaims, _ buffers: inout TokenBuffers) throws(Refusal) {
        let subject = try requireString(payload[.subject], .subject, &buffers)
        // OpenID Connect Core section 2: at most 255 ASCII characters.
        guard buffers.isShortASCII(subject) else { throw .malformedClaim(.subject, .outOfShape) }
        _ = try requireString(payload[.tokenID], .tokenID, &buffers)
    }

    func checkTracking(
        _ payload: PayloadClaims,
        _ added: AddedExpectation,
        _ buffers: inout TokenBuffers
    ) throws(Refusal) -> LoginTracking {
        guard payload[.accessTokenHash] != nil else {
            guard added.accessToken.isEmpty else { throw .accessTokenHashMismatch }
            return .limited
        }
        let node = try requireString(payload[.accessTokenHash], .accessTokenHash, &buffers)
        guard policy.tracking == .any else { throw .trackingNotAllowed }
        guard !added.accessToken.isEmpty else { return .enabled }
        // OpenID Connect Core section 3.1.3.6: the left half of the access token's SHA-256, in base64url.
        guard let digest = buffers.sha256?.digest(of: added.accessToken.span) else { throw .keysUnavailable }
        let expected = Base64URL.encode((0..<16).map { digest.bytes[$0] })
        guard isEqual(node, expected.span, &buffers) else { throw .accessTokenHashMismatch }
        return .enabled
    }
}

/// What a claim must be before its value is looked at.
extension TokenVerifier {
    /// A claim that must be there and be a string that is not empty. A wrong type is a fault, never an absence
    /// (CVE-2026-25537).
    func requireString(
        _ node: Int?,
        _ claim: ClaimName,
        _ buffers: inout TokenBuffers
    ) throws(Refusal) -> Int {
        guard let node else { throw .missingClaim(claim) }
        guard let range = buffers.payloadDocument.stringRange(node) else { throw .malformedClaim(claim, .wrongType) }
        guard !range.isEmpty else { throw .malformedClaim(claim, .empty) }
        return node
    }

    /// A claim that must be there and be a NumericDate (RFC 7519 section 2): a JSON number, from 0 to 2⁵³.
    func requireDate(
        _ node: Int?,
        _ claim: ClaimName,
        _ buffers: inout TokenBuffers
    ) throws(Refusal) -> NumericDate {
        guard let node else { throw .missingClaim(claim) }
        guard buffers.payloadDocument.isNumber(node) else { throw .malformedClaim(claim, .wrongType) }
        guard let date = NumericDate(buffers.payloadDocument, node, in: buffers.payload.span) else {
            throw .malformedClaim(claim, .outOfRange)
        }
        return date
    }

    /// Whether the value of a string is a member of the set.
    func isMember(_ node: Int, of set: ByteStringSet, _ buffers: inout TokenBuffers) -> Bool {
        guard buffers.payloadDocument.isEscaped(node) else {
            return set.contains(buffers.payload.span, buffers.payloadDocument.range(node))
        }
        buffers.decodeToScratch(node)
        return set.contains(buffers.scratch.span, 0..<buffers.scratch.count)
    }
}

extension TokenBuffers {
    /// Whether a payload's string is ASCII and no longer than a subject may be.
    mutating func isShortASCII(_ node: Int) -> Bool {
        if payloadDocument.isEscaped(node) {
            decodeToScratch(node)
            return scratch.count <= VerificationLimits.subjectByteCount && scratch.span.isASCII(0..<scratch.count)
        }
        let range = payloadDocument.range(node)
        return range.count <= VerificationLimits.subjectByteCount && payload.span.isASCII(range)
    }
}

/// What ties the token to the login.
extension TokenVerifier {
    func checkBinding(
        _ payload: PayloadClaims,
        _ binding: BindingKind,
        _ value: Span<UInt8>,
        _ added: AddedExpectation,
        _ now: NumericDate,
        _ buffers: inout TokenBuffers
    ) throws(Refusal) {
        // With every binding, a nonce that is there is a string (OpenID Connect Core section 2).
        if let nonce = payload[.nonce], !buffers.payloadDocument.isString(nonce) {
            throw .malformedClaim(.nonce, .wrongType)
        }
        switch binding {
        case .nonce: try checkNonce(payload, value, &buffers)
        case .rawNonce: try checkRawNonce(payload, value, &buffers)
        case .issuedNonce: try checkIssuedNonce(payload, added, now, &buffers)
        case .subject: try checkSubject(payload, value, &buffers)
        case .unbound: break
        }
        if !added.subject.isEmpty { try checkSubject(payload, added.subject.span, &buffers) }
        if !added.keyThumbprint.isEmpty { try checkKeyThumbprint(payload, added.keyThumbprint.span, &buffers) }
    }

    private func checkNonce(
        _ payload: PayloadClaims,
        _ expected: Span<UInt8>,
        _ buffers: inout TokenBuffers
    ) throws(Refusal) {
        guard let nonce = payload[.nonce] else { throw .missingClaim(.nonce) }
        if isEqual(nonce, expected, &buffers) { return }
        let isHashed = buffers.sha256?.digest(of: expected).map { digest in
            isEqual(nonce, digest.hexadecimalBytes.span, &buffers)
        }
        throw .nonceMismatch(nonceFault(nonce, isHashed == true ? .hashed : .different, &buffers))
    }

    private func checkRawNonce(
        _ payload: PayloadClaims,
        _ raw: Span<UInt8>,
        _ buffers: inout TokenBuffers
    ) throws(Refusal) {
        guard let nonce = payload[.nonce] else { throw .missingClaim(.nonce) }
        guard let digest = buffers.sha256?.digest(of: raw) else { throw .keysUnavailable }
        let expected = digest.hexadecimalBytes
        if isEqual(nonce, expected.span, &buffers) { return }
        let isRaw = isEqual(nonce, raw, &buffers)
        throw .nonceMismatch(nonceFault(nonce, isRaw ? .notHashed : .different, &buffers))
    }

    /// The tag says who issued the nonce and for which app; the audience was checked before.
    private func checkIssuedNonce(
        _ payload: PayloadClaims,
        _ added: AddedExpectation,
        _ now: NumericDate,
        _ buffers: inout TokenBuffers
    ) throws(Refusal) {
        guard let nonces else { throw .noNonceIssuer }
        guard let node = payload[.nonce] else { throw .missingClaim(.nonce) }
        let appID = Array(buffers.payloadString(try audienceNode(payload, &buffers)).utf8)
        buffers.decodeToScratch(node)
        guard !buffers.scratch.isEmpty else { throw .nonceMismatch(.empty) }
        guard let nonce = nonces.recognize(buffers.scratch.span, appID: appID.span) else { throw .nonceNotIssued }
        // A refreshed token bears the nonce of its login, which was used then and may have expired since.
        guard added.subject.isEmpty else { return }
        guard now < nonce.expiresAt else { throw .nonceExpired(.over(at: nonce.expiresAt, now: now)) }
        buffers.recognizedNonce = nonce
    }

    private func checkSubject(
        _ payload: PayloadClaims,
        _ expected: Span<UInt8>,
        _ buffers: inout TokenBuffers
    ) throws(Refusal) {
        guard let subject = payload[.subject], isEqual(subject, expected, &buffers) else { throw .subjectMismatch }
    }

    /// `cnf.jkt` (RFC 7800 section 3.1, RFC 9449 section 6.1) is the key of the device that logged in.
    private func checkKeyThumbprint(
        _ payload: PayloadClaims,
        _ expected: Span<UInt8>,
        _ buffers: inout TokenBuffers
    ) throws(Refusal) {
        guard let node = buffers.keyThumbprint(payload), isEqual(node, expected, &buffers) else {
            throw .keyThumbprintMismatch
        }
    }

    /// Whether a payload's string has exactly this value, compared in constant time: the nonce is a secret
    /// between this login's app and backend. An empty claim equals nothing.
    private func isEqual(_ node: Int, _ expected: Span<UInt8>, _ buffers: inout TokenBuffers) -> Bool {
        guard !expected.isEmpty else { return false }
        guard buffers.payloadDocument.isEscaped(node) else {
            let range = buffers.payloadDocument.range(node)
            return ConstantTime.areEqual(buffers.payload.span.extracting(range), expected)
        }
        buffers.decodeToScratch(node)
        return ConstantTime.areEqual(buffers.scratch.span, expected)
    }

    private func nonceFault(
        _ nonce: Int,
        _ otherwise: Refusal.NonceFault,
        _ buffers: inout TokenBuffers
    ) -> Refusal.NonceFault {
        buffers.payloadDocument.range(nonce).isEmpty ? .empty : otherwise
    }
}
