internal import JOSE

extension ClaimName {
    /// The claim of this name, given escapes decoded; nil for every other claim.
    init?(decoding name: String) {
        let bytes = Array(name.utf8)
        self.init(bytes.span, 0..<bytes.count)
    }

    /// The claim whose name is exactly the bytes in `range`; nil for every other claim.
    init?(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        let candidate: ClaimName?
        switch range.count {
        case 3: candidate = Self.ofThreeBytes(bytes, range)
        case 4: candidate = .name
        case 5: candidate = bytes[range.lowerBound] == UInt8(ascii: "n") ? .nonce : .email
        case 7: candidate = bytes[range.lowerBound] == UInt8(ascii: "p") ? .picture : .accessTokenHash
        case 9: candidate = .userLink
        case 10: candidate = .givenName
        case 11: candidate = Self.ofElevenBytes(bytes, range)
        case 12: candidate = .userFriends
        case 13: candidate = Self.ofThirteenBytes(bytes, range)
        case 14: candidate = .userAgeRange
        default: candidate = nil
        }
        // The switch only narrows down; this comparison decides.
        guard let candidate, candidate.spelling.matches(bytes, range) else { return nil }
        self = candidate
    }

    private static func ofThreeBytes(_ bytes: Span<UInt8>, _ range: Range<Int>) -> ClaimName? {
        switch (bytes[range.lowerBound], bytes[range.lowerBound + 1]) {
        case (UInt8(ascii: "i"), UInt8(ascii: "s")): .issuer
        case (UInt8(ascii: "i"), _): .issuedAt
        case (UInt8(ascii: "a"), UInt8(ascii: "u")): .audience
        case (UInt8(ascii: "a"), _): .authorizedParty
        case (UInt8(ascii: "s"), _): .subject
        case (UInt8(ascii: "e"), _): .expiration
        case (UInt8(ascii: "n"), _): .notBefore
        case (UInt8(ascii: "j"), _): .tokenID
        default: nil
        }
    }

    private static func ofElevenBytes(_ bytes: Span<UInt8>, _ range: Range<Int>) -> ClaimName? {
        switch bytes[range.lowerBound] {
        case UInt8(ascii: "f"): .familyName
        case UInt8(ascii: "m"): .middleName
        case UInt8(ascii: "u"): .userGender
        default: nil
        }
    }

    private static func ofThirteenBytes(_ bytes: Span<UInt8>, _ range: Range<Int>) -> ClaimName? {
        switch bytes[range.lowerBound + 5] {
        case UInt8(ascii: "b"): .userBirthday
        case UInt8(ascii: "h"): .userHometown
        case UInt8(ascii: "l"): .userLocation
        default: nil
        }
    }

    /// The name as a literal, whose bytes need no string.
    private var spelling: StaticString {
        switch self {
        case .issuer: "iss"
        case .audience: "aud"
        case .subject: "sub"
        case .issuedAt: "iat"
        case .expiration: "exp"
        case .notBefore: "nbf"
        case .tokenID: "jti"
        case .nonce: "nonce"
        case .authorizedParty: "azp"
        case .accessTokenHash: "at_hash"
        case .name: "name"
        case .givenName: "given_name"
        case .middleName: "middle_name"
        case .familyName: "family_name"
        case .email: "email"
        case .picture: "picture"
        case .userFriends: "user_friends"
        case .userBirthday: "user_birthday"
        case .userAgeRange: "user_age_range"
        case .userHometown: "user_hometown"
        case .userLocation: "user_location"
        case .userGender: "user_gender"
        case .userLink: "user_link"
        }
    }
}
