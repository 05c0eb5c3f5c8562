internal import JOSE

extension VerifiedToken {
    /// Copies the judged facts out of the workspace.
    init(_ token: String, _ claims: VerifiedClaims, _ workspace: VerificationWorkspace) {
        let payload = workspace.payload
        func text(_ range: Range<Int>) -> String { JSONText.value(payload.span, range) }
        func place(_ place: VerifiedClaims.Place?) -> Profile.Place? {
            place.map { Profile.Place(id: text($0.id), name: text($0.name)) }
        }
        self.init(
            authenticationToken: AuthenticationToken(
                tokenString: token,
                issuer: text(claims.issuer),
                audience: text(claims.audience),
                subject: text(claims.subject),
                tokenID: text(claims.tokenID),
                nonce: claims.nonce.map(text),
                issuedAt: claims.issuedAt,
                expiresAt: claims.expiresAt,
                keyID: String(decoding: workspace.keyID, as: UTF8.self),
                tracking: claims.tracking
            ),
            profile: Profile(
                userID: text(claims.subject),
                name: claims.name.map(text),
                firstName: claims.firstName.map(text),
                middleName: claims.middleName.map(text),
                lastName: claims.lastName.map(text),
                email: claims.email.map(text),
                imageURL: claims.imageURL.map(text),
                linkURL: claims.linkURL.map(text),
                friendIDs: claims.friendsNode.map { workspace.buffers.strings(in: $0) },
                birthday: claims.birthday,
                ageRange: claims.ageRange,
                hometown: place(claims.hometown),
                location: place(claims.location),
                gender: claims.gender.map(text),
                permissions: claims.permissions.permissions,
                isLimited: claims.tracking == .limited
            ),
            claims: AuthenticationTokenClaims(
                json: String(decoding: payload, as: UTF8.self),
                confirmationKeyThumbprint: workspace.buffers.confirmationKeyThumbprint
            ),
            satisfiedPermissions: claims.satisfiedPermissions
        )
    }
}

extension TokenBuffers {
    /// The values of an array of strings.
    fileprivate func strings(in node: Int) -> [String] {
        var strings: [String] = []
        var element = payloadDocument.firstChild(node)
        while element < payloadDocument.next(node) {
            strings.append(payloadString(element))
            element = payloadDocument.next(element)
        }
        return strings
    }

    /// `cnf.jkt` (RFC 7800 section 3.1, RFC 9449 section 6.1), where it is a string.
    fileprivate var confirmationKeyThumbprint: String? {
        guard let confirmation = member("cnf", of: payloadDocument.root),
            let thumbprint = member("jkt", of: confirmation),
            payloadDocument.isString(thumbprint)
        else { return nil }
        return payloadString(thumbprint)
    }
}
