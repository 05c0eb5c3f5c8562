internal import Bytes
internal import JOSE
internal import OpenSSL

/// The claims, once the signature is good.
extension TokenVerifier {
    func readPayload(_ buffers: inout TokenBuffers) throws(Refusal) {
        // A JWS may carry nothing (RFC 7515 section 3); an id token has claims.
        guard !buffers.payload.bytes.isEmpty else { throw .malformedToken(.emptyPart(.payload)) }
        try read(.payload, &buffers.payload)
        buffers.claims = PayloadClaims(buffers.payload)
    }

    func checkIssuer(_ buffers: inout TokenBuffers) throws(Refusal) {
        let issuer = try buffers.requireString(.issuer)
        // Equality of the whole value: no prefix, no substring, no trailing slash (CVE-2024-53861).
        guard buffers.isMember(issuer, of: issuers) else { throw .invalidIssuer(buffers.payload.string(issuer)) }
    }

    func checkAudience(_ appID: Span<UInt8>, _ buffers: inout TokenBuffers) throws(Refusal) {
        let audience = try buffers.requireAudience()
        let isExpected =
            appID.isEmpty
            ? buffers.isMember(audience, of: apps)
            : buffers.payload.document.string(audience, equals: appID, in: buffers.payload.bytes.span)
        guard isExpected else { throw .invalidAudience(.otherApp(buffers.payload.string(audience))) }
        // OpenID Connect Core section 3.1.3.7 step 5: `azp`, where there, is the client.
        guard let party = buffers.claims[.authorizedParty] else { return }
        guard buffers.payload.document.isString(party) else { throw .malformedClaim(.authorizedParty, .wrongType) }
        let name = buffers.payload.string(party)
        guard name.utf8.elementsEqual(buffers.payload.string(audience).utf8) else {
            throw .invalidAudience(.otherAuthorizedParty(name))
        }
    }

    func checkTimes(
        _ now: NumericDate,
        _ buffers: inout TokenBuffers
    ) throws(Refusal) -> (issuedAt: NumericDate, expiresAt: NumericDate) {
        let expiresAt = try buffers.requireDate(.expiration)
        guard !policy.isExpired(expiresAt, now) else { throw .expired(at: expiresAt, now: now) }
        let issuedAt = try buffers.requireDate(.issuedAt)
        guard !policy.isAhead(issuedAt, now) else { throw .notYetValid(.issuedAt, at: issuedAt, now: now) }
        if buffers.claims[.notBefore] != nil {
            let notBefore = try buffers.requireDate(.notBefore)
            guard !policy.isAhead(notBefore, now) else { throw .notYetValid(.notBefore, at: notBefore, now: now) }
        }
        if let maximum = policy.maximumTokenAgeSeconds, policy.isTooOld(issuedAt, now) {
            throw .tooOld(issuedAt: issuedAt, maximumAgeSeconds: maximum, now: now)
        }
        return (issuedAt, expiresAt)
    }

    func checkIdentity(_ buffers: inout TokenBuffers) throws(Refusal) {
        let subject = try buffers.requireString(.subject)
        // OpenID Connect Core section 2: at most 255 ASCII characters.
        guard buffers.isShortASCII(subject) else { throw .malformedClaim(.subject, .outOfShape) }
        _ = try buffers.requireString(.tokenID)
    }

    func checkTracking(_ added: AddedExpectation, _ buffers: inout TokenBuffers) throws(Refusal) -> LoginTracking {
        guard buffers.claims[.accessTokenHash] != nil else {
            guard added.accessToken.isEmpty else { throw .accessTokenHashMismatch }
            return .limited
        }
        let node = try buffers.requireString(.accessTokenHash)
        guard policy.tracking == .any else { throw .trackingNotAllowed }
        guard !added.accessToken.isEmpty else { return .enabled }
        // OpenID Connect Core section 3.1.3.6: the left half of the access token's SHA-256, in base64url.
        guard let digest = buffers.sha256?.digest(of: added.accessToken.span) else { throw .keysUnavailable }
        let expected = Base64URL.encode((0..<16).map { digest.bytes[$0] })
        guard buffers.isEqual(node, expected.span) else { throw .accessTokenHashMismatch }
        return .enabled
    }
}

/// What a claim must be before its value is looked at. These are mutating so that the buffers are never copied.
extension TokenBuffers {
    /// A claim that must be there and be a string that is not empty. A wrong type is a fault, never an absence
    /// (CVE-2026-25537).
    mutating func requireString(_ claim: ClaimName) throws(Refusal) -> Int {
        guard let node = claims[claim] else { throw .missingClaim(claim) }
        return try requireString(node, claim)
    }

    private mutating func requireString(_ node: Int, _ claim: ClaimName) throws(Refusal) -> Int {
        guard let range = payload.document.stringRange(node) else { throw .malformedClaim(claim, .wrongType) }
        guard !range.isEmpty else { throw .malformedClaim(claim, .empty) }
        return node
    }

    /// The one audience: `aud` itself, or the only element of an array (RFC 7519 section 4.1.3). Further
    /// audiences would have to be trusted too (OpenID Connect Core section 3.1.3.7 step 3), and none is.
    mutating func requireAudience() throws(Refusal) -> Int {
        guard let node = claims[.audience], payload.document.kind(node) == .array else {
            return try requireString(.audience)
        }
        let first = payload.document.firstChild(node)
        let end = payload.document.next(node)
        guard first < end else { throw .malformedClaim(.audience, .empty) }
        let audience = try requireString(first, .audience)
        guard payload.document.next(audience) == end else { throw .invalidAudience(.severalAudiences) }
        return audience
    }

    /// A claim that must be there and be a NumericDate (RFC 7519 section 2): a JSON number, from 0 to 2⁵³.
    mutating func requireDate(_ claim: ClaimName) throws(Refusal) -> NumericDate {
        guard let node = claims[claim] else { throw .missingClaim(claim) }
        guard payload.document.isNumber(node) else { throw .malformedClaim(claim, .wrongType) }
        guard let date = NumericDate(payload.document, node, in: payload.bytes.span) else {
            throw .malformedClaim(claim, .outOfRange)
        }
        return date
    }

    /// Whether the value of a string is a member of the set.
    mutating func isMember(_ node: Int, of set: ByteStringSet) -> Bool {
        withValue(node) { bytes, range in set.contains(bytes, range) }
    }

    /// Whether a payload's string is ASCII and no longer than a subject may be.
    mutating func isShortASCII(_ node: Int) -> Bool {
        withValue(node) { bytes, range in
            range.count <= VerificationLimits.subjectByteCount && bytes.isASCII(range)
        }
    }

    /// Whether a payload's string has exactly this value, compared in constant time: the nonce is a secret
    /// between this login's app and backend. An empty claim equals nothing.
    mutating func isEqual(_ node: Int, _ expected: Span<UInt8>) -> Bool {
        guard !expected.isEmpty else { return false }
        return withValue(node) { bytes, range in ConstantTime.areEqual(bytes.extracting(range), expected) }
    }
}

/// What ties the token to the login.
extension TokenVerifier {
    func checkBinding(
        _ binding: BindingKind,
        _ value: Span<UInt8>,
        _ added: AddedExpectation,
        _ now: NumericDate,
        _ buffers: inout TokenBuffers
    ) throws(Refusal) {
        // With every binding, a nonce that is there is a string (OpenID Connect Core section 2).
        if let nonce = buffers.claims[.nonce], !buffers.payload.document.isString(nonce) {
            throw .malformedClaim(.nonce, .wrongType)
        }
        switch binding {
        case .nonce: try checkNonce(value, &buffers)
        case .rawNonce: try checkRawNonce(value, &buffers)
        case .issuedNonce: try checkIssuedNonce(added, now, &buffers)
        case .subject: try checkSubject(value, &buffers)
        case .unbound: break
        }
        if !added.subject.isEmpty { try checkSubject(added.subject.span, &buffers) }
        if !added.keyThumbprint.isEmpty { try checkKeyThumbprint(added.keyThumbprint.span, &buffers) }
    }

    private func checkNonce(_ expected: Span<UInt8>, _ buffers: inout TokenBuffers) throws(Refusal) {
        guard let nonce = buffers.claims[.nonce] else { throw .missingClaim(.nonce) }
        if buffers.isEqual(nonce, expected) { return }
        let digest = buffers.sha256?.digest(of: expected)
        let isHashed = digest.map { buffers.isEqual(nonce, $0.hexadecimalBytes.span) } == true
        throw .nonceMismatch(buffers.isEmpty(nonce) ? .empty : isHashed ? .hashed : .different)
    }

    private func checkRawNonce(_ raw: Span<UInt8>, _ buffers: inout TokenBuffers) throws(Refusal) {
        guard let nonce = buffers.claims[.nonce] else { throw .missingClaim(.nonce) }
        guard let expected = buffers.sha256?.digest(of: raw)?.hexadecimalBytes else { throw .keysUnavailable }
        if buffers.isEqual(nonce, expected.span) { return }
        let isRaw = buffers.isEqual(nonce, raw)
        throw .nonceMismatch(buffers.isEmpty(nonce) ? .empty : isRaw ? .notHashed : .different)
    }

    /// The tag says who issued the nonce and for which app; the audience was checked before.
    private func checkIssuedNonce(
        _ added: AddedExpectation,
        _ now: NumericDate,
        _ buffers: inout TokenBuffers
    ) throws(Refusal) {
        guard let nonces else { throw .noNonceIssuer }
        guard let node = buffers.claims[.nonce] else { throw .missingClaim(.nonce) }
        let appID = Array(buffers.payload.string(try buffers.requireAudience()).utf8)
        buffers.decodeToScratch(node)
        guard !buffers.scratch.isEmpty else { throw .nonceMismatch(.empty) }
        guard let nonce = nonces.recognize(buffers.scratch.span, appID: appID.span) else { throw .nonceNotIssued }
        // A refreshed token bears the nonce of its login, which was used then and may have expired since.
        guard added.subject.isEmpty else { return }
        guard now < nonce.expiresAt else { throw .nonceExpired(.over(at: nonce.expiresAt, now: now)) }
        buffers.recognizedNonce = nonce
    }

    private func checkSubject(_ expected: Span<UInt8>, _ buffers: inout TokenBuffers) throws(Refusal) {
        guard let subject = buffers.claims[.subject], buffers.isEqual(subject, expected) else { throw .subjectMismatch }
    }

    /// `cnf.jkt` (RFC 7800 section 3.1, RFC 9449 section 6.1) is the key of the device that logged in.
    private func checkKeyThumbprint(_ expected: Span<UInt8>, _ buffers: inout TokenBuffers) throws(Refusal) {
        guard let node = buffers.keyThumbprint, buffers.isEqual(node, expected) else { throw .keyThumbprintMismatch }
    }
}

extension TokenBuffers {
    /// Whether a payload's string is empty.
    fileprivate func isEmpty(_ node: Int) -> Bool { payload.document.range(node).isEmpty }
}
