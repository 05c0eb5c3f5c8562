internal import JOSE

/// The claims this library reads; every other claim of a token is passed through untouched.
package enum ClaimName: Int, CaseIterable, Sendable {
    case issuer, audience, subject, issuedAt, expiration, notBefore, tokenID, nonce
    case authorizedParty, accessTokenHash, confirmation
    case name, givenName, middleName, familyName, email, picture
    case userFriends, userBirthday, userAgeRange, userHometown, userLocation, userGender, userLink

    /// What each is called in a token, in the same order.
    fileprivate static let spellings = [
        "iss", "aud", "sub", "iat", "exp", "nbf", "jti", "nonce",
        "azp", "at_hash", "cnf",
        "name", "given_name", "middle_name", "family_name", "email", "picture",
        "user_friends", "user_birthday", "user_age_range", "user_hometown", "user_location", "user_gender", "user_link",
    ]

    /// What the claim is called in a token.
    package var spelling: String { Self.spellings[rawValue] }
}

/// Where the claims this library reads stand on the payload's tape.
struct PayloadClaims {
    private static let names = JSONNameTable(ClaimName.spellings)

    /// For each claim, in the order of `ClaimName`, the node of its value. Zero, which is the root's, for none.
    private var nodes = InlineArray<24, UInt32>(repeating: 0)

    init() {}

    /// Sorts the members of a payload, which is an object, in one pass.
    init(_ payload: borrowing JSONObject) {
        var span = nodes.mutableSpan
        payload.document.findMembers(
            of: payload.document.root,
            named: Self.names,
            in: payload.bytes.span,
            nodes: &span
        )
    }

    /// The node of a claim's value; nil for a claim that is not there.
    @inline(__always)
    subscript(claim: ClaimName) -> Int? {
        let node = nodes[claim.rawValue]
        return node == 0 ? nil : Int(node)
    }
}
