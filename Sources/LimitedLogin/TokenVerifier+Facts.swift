internal import JOSE

/// What an accepted token tells about the person. A claim of the wrong type drops its fact, never the token, as
/// Facebook's SDK does it.
extension TokenVerifier {
    func facts(
        _ times: (issuedAt: NumericDate, expiresAt: NumericDate),
        isLimited: Bool,
        _ workspace: inout VerificationWorkspace
    ) -> VerifiedClaims {
        var claims = VerifiedClaims(issuedAt: times.issuedAt, expiresAt: times.expiresAt)
        claims.hasNotBefore = workspace.claims[.notBefore] != nil
        claims.isLimited = isLimited
        // All of these were found to be strings above.
        claims[.issuer] = workspace.text(workspace.claims[.issuer])
        claims[.audience] = workspace.text(try? workspace.requireAudience())
        claims[.subject] = workspace.text(workspace.claims[.subject])
        claims[.tokenID] = workspace.text(workspace.claims[.tokenID])
        claims[.nonce] = workspace.text(workspace.claims[.nonce])
        claims[.keyThumbprint] = workspace.fact(workspace.keyThumbprint)
        claims.isBoundToKey = workspace.claims[.confirmation] != nil

        claims[.name] = workspace.fact(workspace.claims[.name])
        claims[.firstName] = workspace.fact(workspace.claims[.givenName])
        claims[.middleName] = workspace.fact(workspace.claims[.middleName])
        claims[.lastName] = workspace.fact(workspace.claims[.familyName])
        claims[.imageURL] = workspace.fact(workspace.claims[.picture])
        claims[.email] = workspace.fact(workspace.claims[.email])
        claims.linkURL = workspace.fact(workspace.claims[.userLink])
        claims.gender = workspace.fact(workspace.claims[.userGender])
        claims.birthday = workspace.birthday(workspace.claims[.userBirthday])
        claims.ageRange = workspace.claims[.userAgeRange].flatMap { workspace.claimsSet.ageRange($0) }
        claims.hometown = workspace.place(workspace.claims[.userHometown])
        claims.location = workspace.place(workspace.claims[.userLocation])
        if let friends = workspace.claims[.userFriends], workspace.isArrayOfStrings(friends) {
            claims.friendIDs = workspace.claimsSet.document.range(friends)
        }
        note(&claims)
        return claims
    }

    private func note(_ claims: inout VerifiedClaims) {
        var granted: PermissionSet = []
        if claims[.name] != nil || claims[.firstName] != nil || claims[.middleName] != nil || claims[.lastName] != nil
            || claims[.imageURL] != nil
        {
            granted.insert(PermissionSet(.publicProfile))
        }
        if claims[.email] != nil { granted.insert(PermissionSet(.email)) }
        if claims.ageRange != nil { granted.insert(PermissionSet(.userAgeRange)) }
        if claims.birthday != nil { granted.insert(PermissionSet(.userBirthday)) }
        if claims.friendIDs != nil { granted.insert(PermissionSet(.userFriends)) }
        if claims.gender != nil { granted.insert(PermissionSet(.userGender)) }
        if claims.hometown != nil { granted.insert(PermissionSet(.userHometown)) }
        if claims.linkURL != nil { granted.insert(PermissionSet(.userLink)) }
        if claims.location != nil { granted.insert(PermissionSet(.userLocation)) }
        if claims[.name] != nil { granted.insert(PermissionSet(.gamingProfile)) }
        if claims[.imageURL] != nil { granted.insert(PermissionSet(.gamingUserPicture)) }
        claims.satisfiedPermissions = granted
    }
}

extension JSONObject {
    /// `{"min": number, "max": number}`; a member of the wrong type drops the whole.
    func ageRange(_ node: Int) -> AgeRange? {
        guard let minimum = bound("min", of: node), let maximum = bound("max", of: node) else { return nil }
        return AgeRange(minimum: minimum, maximum: maximum)
    }

    /// A whole number, or nothing; nil for any other value.
    private func bound(_ name: StaticString, of node: Int) -> Int?? {
        guard let bound = member(name, of: node) else { return .some(nil) }
        return document.wholeNumber(bound, in: bytes.span).map { .some($0) }
    }
}

extension VerificationWorkspace {
    /// The text of a string; nil for what is no string.
    fileprivate mutating func text(_ node: Int?) -> Range<Int>? {
        guard let node else { return nil }
        return claimsSet.document.stringRange(node)
    }

    /// The text of a string that is not empty; an empty one says nothing.
    fileprivate mutating func fact(_ node: Int?) -> Range<Int>? {
        text(node).flatMap { $0.isEmpty ? nil : $0 }
    }

    fileprivate mutating func birthday(_ node: Int?) -> Birthday? {
        guard let node, claimsSet.document.isString(node) else { return nil }
        return withValue(node) { bytes, range in Birthday(bytes, range) }
    }

    /// `{"id": string, "name": string}`; a place without both is none.
    fileprivate mutating func place(_ node: Int?) -> VerifiedClaims.Place? {
        guard let node, let id = fact(claimsSet.member("id", of: node)),
            let name = fact(claimsSet.member("name", of: node))
        else { return nil }
        return VerifiedClaims.Place(id: id, name: name)
    }

    fileprivate mutating func isArrayOfStrings(_ node: Int) -> Bool {
        guard claimsSet.document.kind(node) == .array else { return false }
        var element = claimsSet.document.firstChild(node)
        while element < claimsSet.document.next(node) {
            guard claimsSet.document.isString(element) else { return false }
            element = claimsSet.document.next(element)
        }
        return true
    }
}
