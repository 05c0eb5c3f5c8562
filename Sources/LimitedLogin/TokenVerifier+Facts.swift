internal import JOSE

/// What an accepted token tells about the person. A claim of the wrong type drops its fact, never the token, as
/// Facebook's SDK does it.
extension TokenVerifier {
    func facts(
        _ times: (issuedAt: NumericDate, expiresAt: NumericDate),
        _ tracking: LoginTracking,
        _ buffers: inout TokenBuffers
    ) -> VerifiedClaims {
        var claims = VerifiedClaims(issuedAt: times.issuedAt, expiresAt: times.expiresAt)
        claims.hasNotBefore = buffers.claims[.notBefore] != nil
        claims.tracking = tracking
        // All of these were found to be strings above.
        claims[.issuer] = buffers.text(buffers.claims[.issuer])
        claims[.audience] = buffers.text(try? buffers.requireAudience())
        claims[.subject] = buffers.text(buffers.claims[.subject])
        claims[.tokenID] = buffers.text(buffers.claims[.tokenID])
        claims[.nonce] = buffers.text(buffers.claims[.nonce])
        claims[.keyThumbprint] = buffers.fact(buffers.keyThumbprint)
        claims.isBoundToKey = buffers.claims[.confirmation] != nil

        claims[.name] = buffers.fact(buffers.claims[.name])
        claims[.firstName] = buffers.fact(buffers.claims[.givenName])
        claims[.middleName] = buffers.fact(buffers.claims[.middleName])
        claims[.lastName] = buffers.fact(buffers.claims[.familyName])
        claims[.imageURL] = buffers.fact(buffers.claims[.picture])
        claims[.email] = buffers.fact(buffers.claims[.email])
        claims.linkURL = buffers.fact(buffers.claims[.userLink])
        claims.gender = buffers.fact(buffers.claims[.userGender])
        claims.birthday = buffers.birthday(buffers.claims[.userBirthday])
        claims.ageRange = buffers.claims[.userAgeRange].flatMap { buffers.payload.ageRange($0) }
        claims.hometown = buffers.place(buffers.claims[.userHometown])
        claims.location = buffers.place(buffers.claims[.userLocation])
        if let friends = buffers.claims[.userFriends], buffers.isArrayOfStrings(friends) {
            claims.friendsNode = friends
            claims.friendIDs = buffers.payload.document.range(friends)
        }
        note(&claims)
        return claims
    }

    private func note(_ claims: inout VerifiedClaims) {
        var granted: PermissionSet = []
        if claims[.name] != nil || claims[.firstName] != nil || claims[.middleName] != nil || claims[.lastName] != nil
            || claims[.imageURL] != nil
        {
            granted.insert(Permission.publicProfile.bit)
        }
        if claims[.email] != nil { granted.insert(Permission.email.bit) }
        if claims.ageRange != nil { granted.insert(Permission.userAgeRange.bit) }
        if claims.birthday != nil { granted.insert(Permission.userBirthday.bit) }
        if claims.friendIDs != nil { granted.insert(Permission.userFriends.bit) }
        if claims.gender != nil { granted.insert(Permission.userGender.bit) }
        if claims.hometown != nil { granted.insert(Permission.userHometown.bit) }
        if claims.linkURL != nil { granted.insert(Permission.userLink.bit) }
        if claims.location != nil { granted.insert(Permission.userLocation.bit) }
        claims.permissions = granted
        if claims[.name] != nil { granted.insert(Permission.gamingProfile.bit) }
        if claims[.imageURL] != nil { granted.insert(Permission.gamingUserPicture.bit) }
        claims.satisfiedPermissions = granted
    }
}

extension TokenBuffers {
    /// The text of a string; nil for what is no string.
    fileprivate mutating func text(_ node: Int?) -> Range<Int>? {
        guard let node else { return nil }
        return payload.document.stringRange(node)
    }

    /// The text of a string that is not empty; an empty one says nothing.
    fileprivate mutating func fact(_ node: Int?) -> Range<Int>? {
        text(node).flatMap { $0.isEmpty ? nil : $0 }
    }

    fileprivate mutating func birthday(_ node: Int?) -> Birthday? {
        guard let node, payload.document.isString(node) else { return nil }
        return withValue(node) { bytes, range in Birthday(bytes, range) }
    }

    /// `{"id": string, "name": string}`; a place without both is none.
    fileprivate mutating func place(_ node: Int?) -> VerifiedClaims.Place? {
        guard let node, let id = fact(payload.member("id", of: node)), let name = fact(payload.member("name", of: node))
        else { return nil }
        return VerifiedClaims.Place(id: id, name: name)
    }

    fileprivate mutating func isArrayOfStrings(_ node: Int) -> Bool {
        guard payload.document.kind(node) == .array else { return false }
        var element = payload.document.firstChild(node)
        while element < payload.document.next(node) {
            guard payload.document.isString(element) else { return false }
            element = payload.document.next(element)
        }
        return true
    }
}
