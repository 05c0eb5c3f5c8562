internal import JOSE

/// What an accepted token tells about the person. A claim of the wrong type drops its fact, never the token, as
/// Facebook's SDK does it.
extension TokenVerifier {
    func facts(
        _ payload: PayloadClaims,
        _ times: (issuedAt: NumericDate, expiresAt: NumericDate),
        _ tracking: LoginTracking,
        _ header: JOSEHeader,
        _ buffers: inout TokenBuffers
    ) -> VerifiedClaims {
        var claims = VerifiedClaims(issuedAt: times.issuedAt, expiresAt: times.expiresAt)
        claims.hasNotBefore = payload[.notBefore] != nil
        claims.tracking = tracking
        // All of these were found to be strings above.
        claims[.issuer] = buffers.text(payload[.issuer])
        claims[.audience] = buffers.text(try? audienceNode(payload, &buffers))
        claims[.subject] = buffers.text(payload[.subject])
        claims[.tokenID] = buffers.text(payload[.tokenID])
        claims[.nonce] = buffers.text(payload[.nonce])
        if let keyID = header.keyID { claims.keyID = buffers.headerDocument.range(keyID) }
        claims[.keyThumbprint] = buffers.fact(buffers.keyThumbprint(payload))
        claims.isBoundToKey = payload[.confirmation] != nil

        claims[.name] = buffers.fact(payload[.name])
        claims[.firstName] = buffers.fact(payload[.givenName])
        claims[.middleName] = buffers.fact(payload[.middleName])
        claims[.lastName] = buffers.fact(payload[.familyName])
        claims[.imageURL] = buffers.fact(payload[.picture])
        claims[.email] = buffers.fact(payload[.email])
        claims.linkURL = buffers.fact(payload[.userLink])
        claims.gender = buffers.fact(payload[.userGender])
        claims.birthday = buffers.birthday(payload[.userBirthday])
        claims.ageRange = buffers.ageRange(payload[.userAgeRange])
        claims.hometown = buffers.place(payload[.userHometown])
        claims.location = buffers.place(payload[.userLocation])
        if let friends = payload[.userFriends], buffers.isArrayOfStrings(friends) {
            claims.friendsNode = friends
            claims.friendIDs = buffers.payloadDocument.range(friends)
        }
        note(&claims)
        return claims
    }

    /// Infers from each fact the permission that yields it.
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
    fileprivate func text(_ node: Int?) -> Range<Int>? {
        guard let node else { return nil }
        return payloadDocument.stringRange(node)
    }

    /// The text of a string that is not empty; an empty one says nothing.
    fileprivate func fact(_ node: Int?) -> Range<Int>? {
        text(node).flatMap { $0.isEmpty ? nil : $0 }
    }

    fileprivate mutating func birthday(_ node: Int?) -> Birthday? {
        guard let node, let range = payloadDocument.stringRange(node) else { return nil }
        guard payloadDocument.isEscaped(node) else { return Birthday(payload.span, range) }
        decodeToScratch(node)
        return Birthday(scratch.span, 0..<scratch.count)
    }

    /// `{"min": number, "max": number}`; a member of the wrong type drops the whole.
    fileprivate func ageRange(_ node: Int?) -> AgeRange? {
        guard let node, payloadDocument.isObject(node) else { return nil }
        let bounds = members(Self.bounds, of: node)
        var minimum: Int?
        var maximum: Int?
        if let bound = bounds.first {
            guard let value = payloadDocument.wholeNumber(bound, in: payload.span) else { return nil }
            minimum = value
        }
        if let bound = bounds.second {
            guard let value = payloadDocument.wholeNumber(bound, in: payload.span) else { return nil }
            maximum = value
        }
        return AgeRange(minimum: minimum, maximum: maximum)
    }

    /// `{"id": string, "name": string}`; a place without both is none.
    fileprivate func place(_ node: Int?) -> VerifiedClaims.Place? {
        guard let node, payloadDocument.isObject(node) else { return nil }
        let parts = members(Self.placeParts, of: node)
        guard let id = fact(parts.first), let name = fact(parts.second) else { return nil }
        return VerifiedClaims.Place(id: id, name: name)
    }

    private static let bounds = JSONNameTable(["min", "max"])
    private static let placeParts = JSONNameTable(["id", "name"])

    /// The values of an object's members with the two names of the table.
    private func members(_ names: JSONNameTable, of node: Int) -> (first: Int?, second: Int?) {
        // Zero is the root's node, so none of a member's value.
        var nodes = InlineArray<2, UInt32>(repeating: 0)
        var span = nodes.mutableSpan
        payloadDocument.findMembers(of: node, named: names, in: payload.span, nodes: &span)
        return (nodes[0] == 0 ? nil : Int(nodes[0]), nodes[1] == 0 ? nil : Int(nodes[1]))
    }

    fileprivate func isArrayOfStrings(_ node: Int) -> Bool {
        guard payloadDocument.kind(node) == .array else { return false }
        var element = payloadDocument.firstChild(node)
        while element < payloadDocument.next(node) {
            guard payloadDocument.isString(element) else { return false }
            element = payloadDocument.next(element)
        }
        return true
    }
}
