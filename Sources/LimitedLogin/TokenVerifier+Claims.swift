internal import LLBytes
internal import LLJOSE

extension TokenVerifier {
    func checkAudience(_ appID: [UInt8]?, _ workspace: inout VerificationWorkspace) throws(Rejection) {
        let audience = try workspace.requireAudience()
        let isExpected =
            if let appID {
                workspace.withValue(audience) { bytes, range in bytes.equal(range, appID.span) }
            } else { workspace.isMember(audience, of: apps) }
        guard isExpected else { throw .otherAudience(workspace.claimsSet.string(audience)) }
        // OpenID Connect Core section 3.1.3.7 step 5: `azp`, if it exists, is the client.
        guard let party = workspace.claims[.authorizedParty] else { return }
        guard workspace.claimsSet.document.isString(party) else { throw .malformedClaim(.authorizedParty, .wrongType) }
        let name = workspace.claimsSet.string(party)
        guard name.utf8.elementsEqual(workspace.claimsSet.string(audience).utf8) else {
            throw .otherAuthorizedParty(name)
        }
    }

    func checkTracking(_ accessToken: [UInt8]?, _ workspace: inout VerificationWorkspace) throws(Rejection) -> Bool {
        guard workspace.claims[.accessTokenHash] != nil else {
            guard accessToken == nil else { throw Rejection(.accessTokenHashMismatch) }
            return true
        }
        let node = try workspace.requireString(.accessTokenHash)
        guard policy.tracking == .any else { throw Rejection(.trackingNotAllowed) }
        guard let accessToken else { return false }
        // OpenID Connect Core section 3.1.3.6: the left half of the access token's SHA-256, in base64url.
        guard let digest = try? SHA256.digest(of: accessToken.span) else { throw .cryptographyFailed }
        let expected = Base64URL.encode((0..<16).map { digest.bytes[$0] })
        guard workspace.isEqual(node, expected.utf8.span) else { throw Rejection(.accessTokenHashMismatch) }
        return false
    }
}

extension VerificationWorkspace {
    mutating func checkIssuer(_ issuers: ByteStringSet) throws(Rejection) {
        let issuer = try requireString(.issuer)
        // Equality of the whole value: no prefix, no substring, no trailing slash (CVE-2024-53861).
        guard isMember(issuer, of: issuers) else { throw .invalidIssuer(claimsSet.string(issuer)) }
    }

    /// - Parameter isOwn: True if this program issued the token by its own clock, so that `exp` has no skew.
    mutating func checkTimes(
        _ policy: VerificationPolicy,
        _ now: NumericDate,
        isOwn: Bool = false
    ) throws(Rejection) -> (issuedAt: NumericDate, expiresAt: NumericDate) {
        let expiresAt = try requireDate(.expiration)
        guard isOwn ? now < expiresAt : !policy.isExpired(expiresAt, now) else {
            throw .expired(at: expiresAt, now: now)
        }
        let issuedAt = try requireDate(.issuedAt)
        guard !policy.isAhead(issuedAt, now) else { throw .notYetValid(.issuedAt, at: issuedAt, now: now) }
        if claims[.notBefore] != nil {
            let notBefore = try requireDate(.notBefore)
            guard !policy.isAhead(notBefore, now) else { throw .notYetValid(.notBefore, at: notBefore, now: now) }
        }
        if let maximum = policy.maximumTokenAge, !isOwn, policy.isTooOld(issuedAt, now) {
            throw .tooOld(issuedAt: issuedAt, maximumAge: maximum, now: now)
        }
        return (issuedAt, expiresAt)
    }

    mutating func checkIdentity() throws(Rejection) {
        let subject = try requireString(.subject)
        // OpenID Connect Core section 2: at most 255 ASCII characters.
        let isShort = withValue(subject) { bytes, range in
            range.count <= VerificationLimits.subjectByteCount && range.allSatisfy { bytes[$0] < 0x80 }
        }
        guard isShort else { throw .malformedClaim(.subject, .outOfShape) }
        _ = try requireString(.tokenID)
    }

    /// A claim that must be a string and not empty. A wrong type does not count as absence (CVE-2026-25537).
    mutating func requireString(_ claim: ClaimName, at node: Int? = nil) throws(Rejection) -> Int {
        guard let node = node ?? claims[claim] else { throw .missingClaim(claim) }
        guard let range = claimsSet.document.stringRange(node) else { throw .malformedClaim(claim, .wrongType) }
        guard !range.isEmpty else { throw .malformedClaim(claim, .empty) }
        return node
    }

    /// The one audience: `aud` itself, or the only element of an array (RFC 7519 section 4.1.3). Further audiences
    /// would have to be trusted too (OpenID Connect Core section 3.1.3.7 step 3), and none is.
    mutating func requireAudience() throws(Rejection) -> Int {
        guard let node = claims[.audience], claimsSet.document.kind(node) == .array else {
            return try requireString(.audience)
        }
        let first = claimsSet.document.firstChild(node)
        let end = claimsSet.document.next(node)
        guard first < end else { throw .malformedClaim(.audience, .empty) }
        let audience = try requireString(.audience, at: first)
        guard claimsSet.document.next(audience) == end else { throw .severalAudiences }
        return audience
    }

    /// A claim that must be a NumericDate (RFC 7519 section 2).
    mutating func requireDate(_ claim: ClaimName) throws(Rejection) -> NumericDate {
        guard let node = claims[claim] else { throw .missingClaim(claim) }
        guard claimsSet.document.isNumber(node) else { throw .malformedClaim(claim, .wrongType) }
        guard let date = claimsSet.date(node) else { throw .malformedClaim(claim, .outOfRange) }
        return date
    }

    mutating func isMember(_ node: Int, of set: ByteStringSet) -> Bool {
        withValue(node) { bytes, range in set.contains(bytes, range) }
    }

    /// True if a payload's string has exactly this value, which is not empty. The comparison takes constant time: the nonce
    /// is a secret between this login's app and backend.
    mutating func isEqual(_ node: Int, _ expected: Span<UInt8>) -> Bool {
        guard !expected.isEmpty else { return false }
        return withValue(node) { bytes, range in ConstantTime.areEqual(bytes.extracting(range), expected) }
    }
}

extension TokenVerifier {
    func checkBinding(
        _ expectation: TokenExpectation,
        _ now: NumericDate,
        _ workspace: inout VerificationWorkspace
    ) throws(Rejection) {
        // With every binding, an existing nonce must be a string (OpenID Connect Core section 2).
        if let nonce = workspace.claims[.nonce], !workspace.claimsSet.document.isString(nonce) {
            throw .malformedClaim(.nonce, .wrongType)
        }
        let binding = expectation.binding
        if let nonce = binding.nonce { try checkNonce(nonce.span, isRaw: binding.isRaw, &workspace) }
        try checkIssue(binding, now, &workspace)
        if let subject = binding.subject {
            guard let node = workspace.claims[.subject], workspace.isEqual(node, subject.span) else {
                throw .subjectMismatch
            }
        }
        // `cnf.jkt` (RFC 7800 section 3.1, RFC 9449 section 6.1) is the key of the device that logged in.
        if let thumbprint = expectation.keyThumbprintBytes {
            guard let node = workspace.keyThumbprint(), workspace.isEqual(node, thumbprint.span) else {
                throw Rejection(.keyThumbprintMismatch)
            }
        }
    }

    /// - Parameter isRaw: True if the token has the lower-case hexadecimal SHA-256 of the nonce.
    private func checkNonce(
        _ given: Span<UInt8>,
        isRaw: Bool,
        _ workspace: inout VerificationWorkspace
    ) throws(Rejection) {
        guard let nonce = workspace.claims[.nonce] else { throw .missingClaim(.nonce) }
        let isGiven = workspace.isEqual(nonce, given)
        if isGiven, !isRaw { return }
        guard let digest = (try? SHA256.digest(of: given))?.hexadecimal else { throw .cryptographyFailed }
        let isHashed = workspace.isEqual(nonce, digest.utf8.span)
        if isHashed, isRaw { return }
        if isHashed { throw .hashedNonce }
        if isGiven { throw .nonceNotHashed }
        workspace.decodeToScratch(nonce)
        throw .otherNonce(workspace.scratch)
    }

    /// The tag proves the issuer of the nonce and its app; the audience was checked before.
    private func checkIssue(
        _ binding: TokenBinding,
        _ now: NumericDate,
        _ workspace: inout VerificationWorkspace
    ) throws(Rejection) {
        let isRequired = binding.issue == .required
        if isRequired, binding.nonce == nil {
            guard let node = workspace.claims[.nonce] else { throw .missingClaim(.nonce) }
            workspace.decodeToScratch(node)
            guard !workspace.scratch.isEmpty else { throw .emptyNonce }
        }
        // If the client hashes its nonce, the given one is the raw one.
        let text = binding.nonce ?? (isRequired ? workspace.scratch : nil)
        var issued: RecognizedNonce?
        if let nonces, let text, isRequired || binding.issue == .recognized && NonceFormat.hasLength(text) {
            let appID = Array(workspace.claimsSet.string(try workspace.requireAudience()).utf8)
            issued = nonces.recognize(text.span, appID: appID.span)
        }
        guard let nonce = issued else {
            if isRequired { throw .nonceNotIssued }
            return
        }
        // A refreshed token has the nonce of its login, which was used then and may have expired since.
        if binding.isRefresh { return }
        guard now < nonce.expiresAt else { throw .nonceExpired(at: nonce.expiresAt, now: now) }
        workspace.recognizedNonce = nonce
    }
}

/// The facts of an accepted token about the person. As in Facebook's SDK a claim with the wrong type is left out.
extension VerificationWorkspace {
    mutating func verifiedClaims(
        _ times: (issuedAt: NumericDate, expiresAt: NumericDate),
        isLimited: Bool = true,
        _ rows: [PersonalClaim]
    ) -> VerifiedClaims {
        var facts = VerifiedClaims(issuedAt: times.issuedAt, expiresAt: times.expiresAt)
        facts.isLimited = isLimited
        facts.hasNotBefore = claims[.notBefore] != nil
        // All of these were found to be strings above.
        facts[.issuer] = text(claims[.issuer])
        facts[.audience] = text(try? requireAudience())
        facts[.subject] = text(claims[.subject])
        facts[.tokenID] = text(claims[.tokenID])
        facts[.nonce] = text(claims[.nonce])
        facts[.confirmation] = keyThumbprint().flatMap { claimsSet.textRange($0) }
        facts.isBoundToKey = claims[.confirmation] != nil
        for index in rows.indices {
            guard let node = claims[rows[index].claim] else { continue }
            if read(rows[index].claim, rows[index].kind, node, into: &facts) {
                facts.satisfiedPermissions.formUnion(rows[index].permissions)
            }
        }
        return facts
    }

    @inline(__always)
    private mutating func read(
        _ claim: ClaimName,
        _ kind: PersonalClaim.Kind,
        _ node: Int,
        into facts: inout VerifiedClaims
    ) -> Bool {
        switch kind {
        case .text:
            facts[claim] = claimsSet.textRange(node)
            return facts[claim] != nil
        case .list:
            if claimsSet.isArrayOfStrings(node) { facts[claim] = claimsSet.document.range(node) }
            return facts[claim] != nil
        case .birthday:
            if claimsSet.document.isString(node) { facts.birthday = withValue(node) { Birthday($0, $1) } }
            return facts.birthday != nil
        case .ageRange:
            facts.ageRange = claimsSet.ageRange(node)
            return facts.ageRange != nil
        case .place:
            let place = claimsSet.place(node)
            if case .userHometown = claim { facts.hometown = place } else { facts.location = place }
            return place != nil
        }
    }

    private func text(_ node: Int?) -> Range<Int>? { node.flatMap { claimsSet.document.stringRange($0) } }
}

extension JSONObject {
    /// The range of a string that is not empty.
    func textRange(_ node: Int) -> Range<Int>? { document.stringRange(node).flatMap { $0.isEmpty ? nil : $0 } }

    func text(_ node: Int) -> String? { textRange(node) == nil ? nil : string(node) }

    func isArrayOfStrings(_ node: Int) -> Bool {
        guard document.kind(node) == .array else { return false }
        var element = document.firstChild(node)
        while element < document.next(node) {
            guard document.isString(element) else { return false }
            element = document.next(element)
        }
        return true
    }

    /// `{"id": string, "name": string}`; nil if one of them is missing or empty.
    func place(_ node: Int) -> VerifiedClaims.Place? {
        guard let id = member("id", of: node).flatMap({ textRange($0) }),
            let name = member("name", of: node).flatMap({ textRange($0) })
        else { return nil }
        return VerifiedClaims.Place(id: id, name: name)
    }

    /// `{"min": number, "max": number}`; a member of the wrong type makes the whole nil.
    func ageRange(_ node: Int) -> AgeRange? {
        let (least, greatest) = (member("min", of: node), member("max", of: node))
        let minimum = least.flatMap { document.wholeNumber($0, in: bytes.span) }
        let maximum = greatest.flatMap { document.wholeNumber($0, in: bytes.span) }
        guard (least == nil) == (minimum == nil), (greatest == nil) == (maximum == nil) else { return nil }
        return AgeRange(minimum: minimum, maximum: maximum)
    }
}
