internal import JOSE

/// Where the claims this library reads stand on the payload's tape.
struct PayloadClaims {
    private static let names = JSONNameTable(ClaimName.allCases.map(\.rawValue))

    /// For each claim, in the order of `ClaimName`, the node of its value. Zero, which is the root's, for none.
    private var nodes = InlineArray<23, UInt32>(repeating: 0)

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
        case .name: 10
        case .givenName: 11
        case .middleName: 12
        case .familyName: 13
        case .email: 14
        case .picture: 15
        case .userFriends: 16
        case .userBirthday: 17
        case .userAgeRange: 18
        case .userHometown: 19
        case .userLocation: 20
        case .userGender: 21
        case .userLink: 22
        }
    }
}
