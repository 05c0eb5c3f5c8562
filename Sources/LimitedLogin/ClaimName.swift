internal import JOSE

/// The claims this library reads; every other claim of a token is passed through untouched.
package enum ClaimName: String, CaseIterable, Sendable {
    /// Who issued the token.
    case issuer = "iss"
    /// For which app.
    case audience = "aud"
    /// For which person: an ID that only this app knows.
    case subject = "sub"
    /// When.
    case issuedAt = "iat"
    /// Until when.
    case expiration = "exp"
    /// From when on.
    case notBefore = "nbf"
    /// The token's own name.
    case tokenID = "jti"
    /// The nonce of the login.
    case nonce
    /// To which app, where it is not `aud` alone.
    case authorizedParty = "azp"
    /// The hash of the access token issued at the same time.
    case accessTokenHash = "at_hash"
    /// The key that the token is bound to.
    case confirmation = "cnf"
    /// The full name.
    case name
    /// The first name.
    case givenName = "given_name"
    /// The middle name.
    case middleName = "middle_name"
    /// The last name.
    case familyName = "family_name"
    /// The e-mail address.
    case email
    /// The URL of the picture.
    case picture
    /// The friends who use the app.
    case userFriends = "user_friends"
    /// The birthday.
    case userBirthday = "user_birthday"
    /// The bracket of the age.
    case userAgeRange = "user_age_range"
    /// The home town.
    case userHometown = "user_hometown"
    /// The city the person lives in.
    case userLocation = "user_location"
    /// The gender.
    case userGender = "user_gender"
    /// The link to the person's page.
    case userLink = "user_link"
}

/// Where the claims this library reads stand on the payload's tape.
struct PayloadClaims {
    private static let names = JSONNameTable(ClaimName.allCases.map(\.rawValue))

    /// For each claim, in the order of `ClaimName`, the node of its value. Zero, which is the root's, for none.
    private var nodes = InlineArray<24, UInt32>(repeating: 0)

    /// Sorts the members of a payload in one pass; nil when the document's root is no object.
    init?(_ document: borrowing JSONDocument, in bytes: Span<UInt8>) {
        guard document.count > 0, document.isObject(document.root) else { return nil }
        var span = nodes.mutableSpan
        document.findMembers(of: document.root, named: Self.names, in: bytes, nodes: &span)
    }

    /// The node of a claim's value; nil for a claim that is not there.
    @inline(__always)
    subscript(claim: ClaimName) -> Int? {
        let node = nodes[claim.place]
        return node == 0 ? nil : Int(node)
    }
}

extension ClaimName {
    /// The position in `allCases`.
    @inline(__always)
    fileprivate var place: Int {
        switch self {
        case .issuer: 0
        case .audience: 1
        case .subject: 2
        case .issuedAt: 3
        case .expiration: 4
        case .notBefore: 5
        case .tokenID: 6
        case .nonce: 7
        case .authorizedParty: 8
        case .accessTokenHash: 9
        case .confirmation: 10
        case .name: 11
        case .givenName: 12
        case .middleName: 13
        case .familyName: 14
        case .email: 15
        case .picture: 16
        case .userFriends: 17
        case .userBirthday: 18
        case .userAgeRange: 19
        case .userHometown: 20
        case .userLocation: 21
        case .userGender: 22
        case .userLink: 23
        }
    }
}
