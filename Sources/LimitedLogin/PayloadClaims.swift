internal import JOSE

/// Where the claims this library reads stand on the payload's tape; nil for a claim that is not there.
struct PayloadClaims {
    var issuer: Int?
    var audience: Int?
    var subject: Int?
    var issuedAt: Int?
    var expiration: Int?
    var notBefore: Int?
    var tokenID: Int?
    var nonce: Int?
    var authorizedParty: Int?
    var accessTokenHash: Int?
    var name: Int?
    var givenName: Int?
    var middleName: Int?
    var familyName: Int?
    var email: Int?
    var picture: Int?
    var userFriends: Int?
    var userBirthday: Int?
    var userAgeRange: Int?
    var userHometown: Int?
    var userLocation: Int?
    var userGender: Int?
    var userLink: Int?

    /// Sorts the members of a payload in one pass; nil when the document's root is no object.
    init?(_ document: borrowing JSONDocument, in bytes: Span<UInt8>) {
        guard document.count > 0, document.kind(document.root) == .object else { return nil }
        let end = document.next(document.root)
        var name = document.firstChild(document.root)
        while name < end {
            note(name, document, bytes)
            name = document.next(name + 1)
        }
    }

    /// Notes a member by its name. An escaped name is compared with all, any other with those of its length.
    private mutating func note(_ name: Int, _ document: borrowing JSONDocument, _ bytes: Span<UInt8>) {
        let claim =
            document.isEscaped(name)
            ? ClaimName(decoding: document.string(name, in: bytes))
            : ClaimName(bytes, document.range(name))
        guard let claim else { return }
        let value = name + 1
        switch claim {
        case .issuer: issuer = value
        case .audience: audience = value
        case .subject: subject = value
        case .issuedAt: issuedAt = value
        case .expiration: expiration = value
        case .notBefore: notBefore = value
        case .tokenID: tokenID = value
        case .nonce: nonce = value
        case .authorizedParty: authorizedParty = value
        case .accessTokenHash: accessTokenHash = value
        case .name: self.name = value
        case .givenName: givenName = value
        case .middleName: middleName = value
        case .familyName: familyName = value
        case .email: email = value
        case .picture: picture = value
        case .userFriends: userFriends = value
        case .userBirthday: userBirthday = value
        case .userAgeRange: userAgeRange = value
        case .userHometown: userHometown = value
        case .userLocation: userLocation = value
        case .userGender: userGender = value
        case .userLink: userLink = value
        }
    }
}
