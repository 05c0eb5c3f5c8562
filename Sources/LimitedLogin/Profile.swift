internal import LLBytes
internal import LLJOSE

/// The person as an accepted token describes them, in the form of Facebook's SDK. Facts that are not in the token are nil.
///
/// Only a verifier makes a profile; ``LoginRecord`` is the copy to store.
public struct Profile: Equatable, Sendable, Redacted {
    /// A place with its page.
    public struct Place: Equatable, Hashable, Codable, Sendable, Redacted {
        /// The ID of the place's page.
        public let id: String
        /// The name of the place.
        public let name: String
    }

    /// The person, under an ID that only this app knows.
    public let userID: String
    /// The full name.
    public internal(set) var name: String?
    /// The first name.
    public internal(set) var firstName: String?
    /// The middle name.
    public internal(set) var middleName: String?
    /// The last name.
    public internal(set) var lastName: String?
    /// The e-mail address on the person's profile; Facebook does not say that it is confirmed.
    public internal(set) var email: String?
    /// The URL of the picture. It is signed and valid for about a month.
    public internal(set) var imageURL: String?
    /// The link to the person's page.
    public internal(set) var linkURL: String?
    /// The IDs of the friends that granted the app `user_friends` too; empty if there are none.
    public internal(set) var friendIDs: [String]?
    /// The birthday.
    public internal(set) var birthday: Birthday?
    /// The bracket of the age.
    public internal(set) var ageRange: AgeRange?
    /// The home town.
    public internal(set) var hometown: Place?
    /// The city the person lives in.
    public internal(set) var location: Place?
    /// The gender, in Facebook's words.
    public internal(set) var gender: String?
    /// The permissions with a claim in the token. It does not list grants, so a granted one may be missing.
    public let permissions: [Permission]
    /// True if the login was a Limited Login, as far as the token shows.
    public let isLimited: Bool
}

/// The claims that this library reads; every other claim of a token is passed through unchanged.
package enum ClaimName: Int, CaseIterable, Sendable {
    case issuer, audience, subject, tokenID, nonce, confirmation
    case name, givenName, middleName, familyName, email, picture
    case userLink, userFriends, userBirthday, userAgeRange, userHometown, userLocation, userGender
    case issuedAt, expiration, notBefore, authorizedParty, accessTokenHash

    package var spelling: String { Self.spellings[rawValue] }

    private static let spellings =
        ["iss", "aud", "sub", "jti", "nonce", "cnf"] + PersonalClaim.table.map { "\($0.name)" }
        + ["iat", "exp", "nbf", "azp", "at_hash"]
    static let names = spellings.map { JSONName($0) }
}

/// A claim about the person, with its names and readers. Everything that reads or writes such a claim follows ``rows``. A new
/// claim has a case of ``ClaimName``, a row here, and a property of ``Profile``.
package struct PersonalClaim: Sendable {
    /// The property of the profile, by the type of its value.
    enum Fact: Sendable {
        case text(any WritableKeyPath<Profile, String?> & Sendable)
        case list(any WritableKeyPath<Profile, [String]?> & Sendable)
        case birthday(any WritableKeyPath<Profile, Birthday?> & Sendable)
        case ageRange(any WritableKeyPath<Profile, AgeRange?> & Sendable)
        case place(any WritableKeyPath<Profile, Profile.Place?> & Sendable)

        fileprivate var kind: Kind {
            switch self {
            case .text: .text
            case .list: .list
            case .birthday: .birthday
            case .ageRange: .ageRange
            case .place: .place
            }
        }
    }

    package enum Kind: Sendable {
        case text, list, birthday, ageRange, place
    }

    package let claim: ClaimName
    /// The name in a token, at `/introspect`, and in `auth_headers` and `token_claims`.
    package let name: StaticString
    /// The member of the JSON of a ``Profile``.
    package let member: StaticString
    /// The field of Graph's `/me`.
    let field: StaticString
    package let kind: Kind
    /// The permissions that the claim shows as granted; Graph tells the field for the first one.
    let permissions: PermissionSet
    let permission: Permission

    private static func row(
        _ claim: ClaimName,
        _ name: StaticString,
        as member: StaticString? = nil,
        _ fact: Fact,
        of permission: Permission,
        _ other: Permission? = nil,
        field: StaticString? = nil
    ) -> (claim: PersonalClaim, fact: Fact) {
        let row = PersonalClaim(
            claim: claim,
            name: name,
            member: member ?? name,
            field: field ?? member ?? name,
            kind: fact.kind,
            permissions: PermissionSet([permission, other].compactMap { $0 }),
            permission: permission
        )
        return (row, fact)
    }

    /// The claims that are also told at `/introspect` and `/auth`, and to the consumers of own tokens.
    static let toldRows = [
        row(.name, "name", .text(\.name), of: .publicProfile, .gamingProfile),
        row(.givenName, "given_name", as: "first_name", .text(\.firstName), of: .publicProfile),
        row(.middleName, "middle_name", .text(\.middleName), of: .publicProfile),
        row(.familyName, "family_name", as: "last_name", .text(\.lastName), of: .publicProfile),
        row(.email, "email", .text(\.email), of: .email),
        row(
            .picture,
            "picture",
            as: "image_url",
            .text(\.imageURL),
            of: .publicProfile,
            .gamingUserPicture,
            field: "picture"
        ),
    ]

    /// The rows, in the order of ``ClaimName`` and of the members of a profile.
    static let rows =
        toldRows + [
            row(.userLink, "user_link", as: "link_url", .text(\.linkURL), of: .userLink, field: "link"),
            row(.userFriends, "user_friends", as: "friend_ids", .list(\.friendIDs), of: .userFriends, field: "friends"),
            row(.userBirthday, "user_birthday", as: "birthday", .birthday(\.birthday), of: .userBirthday),
            row(.userAgeRange, "user_age_range", as: "age_range", .ageRange(\.ageRange), of: .userAgeRange),
            row(.userHometown, "user_hometown", as: "hometown", .place(\.hometown), of: .userHometown),
            row(.userLocation, "user_location", as: "location", .place(\.location), of: .userLocation),
            row(.userGender, "user_gender", as: "gender", .text(\.gender), of: .userGender),
        ]

    /// The rows without their properties. A request copies them, so they hold no reference.
    package static let table = rows.map(\.claim)
    package static let told = toldRows.map(\.claim)
}

extension Profile {
    /// Reads a fact in a token's payload or in Graph's answer; a value of the wrong type is none.
    mutating func read(_ fact: PersonalClaim.Fact, _ node: Int, in json: borrowing JSONObject) {
        switch fact {
        case .text(let fact): self[keyPath: fact] = json.text(node)
        case .list(let fact): self[keyPath: fact] = json.isArrayOfStrings(node) ? json.strings(node) : nil
        case .birthday(let fact):
            self[keyPath: fact] = json.text(node).flatMap { Birthday($0.utf8.span, 0..<$0.utf8.count) }
        case .ageRange(let fact): self[keyPath: fact] = json.ageRange(node)
        case .place(let fact):
            guard let place = json.place(node) else { return }
            let (id, name) = (JSONText.value(json.bytes.span, place.id), JSONText.value(json.bytes.span, place.name))
            self[keyPath: fact] = Place(id: id, name: name)
        }
    }

    package var told: [TokenIssuer.Claim: String] {
        var told: [TokenIssuer.Claim: String] = [:]
        for (row, fact) in PersonalClaim.toldRows {
            if case .text(let fact) = fact { told[TokenIssuer.Claim(row.claim)] = self[keyPath: fact] }
        }
        return told
    }

    /// Appends the profile as a member of the object that the buffer ends with.
    package func write(_ permissions: [String], to body: inout [UInt8]) {
        JSONWriter.name("profile", to: &body)
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("user_id", userID, to: &body)
        for (row, fact) in PersonalClaim.rows {
            switch fact {
            case .text(let fact): JSONWriter.member(row.member, self[keyPath: fact], to: &body)
            case .list(let fact): JSONWriter.member(row.member, self[keyPath: fact], to: &body)
            case .birthday(let fact): JSONWriter.member(row.member, self[keyPath: fact]?.description, to: &body)
            case .ageRange(let fact):
                guard let range = self[keyPath: fact] else { continue }
                JSONWriter.name(row.member, to: &body)
                JSONWriter.raw("{", to: &body)
                JSONWriter.member("min", range.minimum, to: &body)
                JSONWriter.member("max", range.maximum, to: &body)
                JSONWriter.raw("}", to: &body)
            case .place(let fact):
                guard let place = self[keyPath: fact] else { continue }
                JSONWriter.name(row.member, to: &body)
                JSONWriter.raw("{", to: &body)
                JSONWriter.member("id", place.id, to: &body)
                JSONWriter.member("name", place.name, to: &body)
                JSONWriter.raw("}", to: &body)
            }
            // Facebook does not say that it confirmed the address.
            if row.claim == .email, email != nil { JSONWriter.member("email_verified", false, to: &body) }
        }
        JSONWriter.member("permissions", permissions, to: &body)
        JSONWriter.member("is_limited", isLimited, to: &body)
        JSONWriter.raw("}", to: &body)
    }
}

/// The JSON of the member `profile` of the HTTP API.
extension Profile: Encodable {
    /// Reads the profile of a ``LoginRecord``. Permissions that this version does not know are left out.
    init(stored decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: MemberName.self)
        self.init(
            userID: try members.decode(String.self, forKey: "user_id"),
            permissions: try members.decode([String].self, forKey: "permissions").compactMap(Permission.init),
            isLimited: try members.decode(Bool.self, forKey: "is_limited")
        )
        for (row, fact) in PersonalClaim.rows {
            let key = MemberName(row.member)
            switch fact {
            case .text(let fact): self[keyPath: fact] = try members.decodeIfPresent(String.self, forKey: key)
            case .list(let fact): self[keyPath: fact] = try members.decodeIfPresent([String].self, forKey: key)
            case .birthday(let fact): self[keyPath: fact] = try members.decodeIfPresent(Birthday.self, forKey: key)
            case .ageRange(let fact): self[keyPath: fact] = try members.decodeIfPresent(AgeRange.self, forKey: key)
            case .place(let fact): self[keyPath: fact] = try members.decodeIfPresent(Place.self, forKey: key)
            }
        }
    }

    /// Writes the profile as the service does.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: MemberName.self)
        try members.encode(userID, forKey: "user_id")
        for (row, fact) in PersonalClaim.rows {
            let key = MemberName(row.member)
            switch fact {
            case .text(let fact): try members.encodeIfPresent(self[keyPath: fact], forKey: key)
            case .list(let fact): try members.encodeIfPresent(self[keyPath: fact], forKey: key)
            case .birthday(let fact): try members.encodeIfPresent(self[keyPath: fact], forKey: key)
            case .ageRange(let fact): try members.encodeIfPresent(self[keyPath: fact], forKey: key)
            case .place(let fact): try members.encodeIfPresent(self[keyPath: fact], forKey: key)
            }
        }
        // Without this member a reader might assume that the address is confirmed.
        if email != nil { try members.encode(false, forKey: "email_verified") }
        try members.encode(permissions, forKey: "permissions")
        try members.encode(isLimited, forKey: "is_limited")
    }
}

/// The bracket of a person's age in years. It has at least one bound, and the lower is less than the upper.
public struct AgeRange: Equatable, Hashable, Sendable {
    /// The least age; nil if there is none.
    public let minimum: Int?
    /// The greatest age; nil if there is none.
    public let maximum: Int?

    /// A bracket; nil without any bound, with a negative one, and if the minimum is not less than the maximum.
    public init?(minimum: Int?, maximum: Int?) {
        guard minimum != nil || maximum != nil, minimum ?? 0 >= 0, maximum ?? 0 >= 0 else { return nil }
        if let minimum, let maximum, minimum >= maximum { return nil }
        self.minimum = minimum
        self.maximum = maximum
    }
}

/// The shared parts of a person's birthday: a date, a day of the year, or a year.
@nonexhaustive  // SE-0487
public enum Birthday: Equatable, Hashable, Sendable, CustomStringConvertible {
    /// The whole date: year 1 to 9999, a day that exists.
    case date(year: Int, month: Int, day: Int)
    /// The day of the year, without the year.
    case dayOfYear(month: Int, day: Int)
    /// The year alone.
    case year(Int)

    /// Reads Facebook's three spellings: `MM/DD/YYYY`, `MM/DD` and `YYYY`; nil for any other text.
    init?(_ text: Span<UInt8>, _ range: Range<Int>) {
        let (text, slash) = (text.extracting(range), UInt8(ascii: "/"))
        guard text.count != 4 else {
            guard let year = Self.number(text, 0..<4), year >= 1 else { return nil }
            self = .year(year)
            return
        }
        let hasYear = text.count == 10 && text[5] == slash
        // Without a year, 29 February is accepted.
        guard hasYear || text.count == 5, text[2] == slash,
            let year = hasYear ? Self.number(text, 6..<10) : 4, year >= 1,
            let month = Self.number(text, 0..<2), (1...12).contains(month),
            let day = Self.number(text, 3..<5), day >= 1, day <= Self.dayCount(ofMonth: month, year: year)
        else { return nil }
        self = hasYear ? .date(year: year, month: month, day: day) : .dayOfYear(month: month, day: day)
    }

    /// The birthday in the form of `birthdate` in OpenID Connect Core section 5.1: `YYYY-MM-DD`, `0000-MM-DD` without a
    /// year, or `YYYY`.
    public var description: String { String(capacity: 10) { write(to: &$0) } }

    /// Appends ``description``, at most 10 bytes. Of a number outside its range it writes the last digits.
    package func write(to bytes: inout OutputSpan<UInt8>) {
        let (year, day): (Int, (month: Int, day: Int)?) =
            switch self {
            case .date(let year, let month, let day): (year, (month, day))
            case .dayOfYear(let month, let day): (0, (month, day))
            case .year(let year): (year, nil)
            }
        Self.twoDigits(year / 100, &bytes)
        Self.twoDigits(year, &bytes)
        guard let day else { return }
        bytes.append(UInt8(ascii: "-"))
        Self.twoDigits(day.month, &bytes)
        bytes.append(UInt8(ascii: "-"))
        Self.twoDigits(day.day, &bytes)
    }

    private static func twoDigits(_ value: Int, _ bytes: inout OutputSpan<UInt8>) {
        let digits = value.magnitude % 100
        bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digits / 10))
        bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digits % 10))
    }

    private static func dayCount(ofMonth month: Int, year: Int) -> Int {
        let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return month == 2 ? (isLeapYear ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    }

    private static func number(_ text: Span<UInt8>, _ range: Range<Int>) -> Int? {
        var value = 0
        for offset in range {
            guard let digit = ASCII.digit(text[offset]) else { return nil }
            // At most four digits are read.
            value = value * 10 + digit
        }
        return value
    }
}

extension AgeRange: Codable {
    private enum CodingKeys: String, CodingKey {
        case minimum = "min"
        case maximum = "max"
    }

    /// Reads a bracket; throws without any bound and for bounds out of range.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let minimum = try members.decodeIfPresent(Int.self, forKey: .minimum)
        let maximum = try members.decodeIfPresent(Int.self, forKey: .maximum)
        guard let range = AgeRange(minimum: minimum, maximum: maximum) else {
            throw DecodingError.unfit("no bracket of ages", decoder)
        }
        self = range
    }
}

/// The text has the form of `birthdate` in OpenID Connect Core section 5.1; see ``Birthday/description``.
extension Birthday: Codable {
    /// Reads a birthday; throws for any text outside the three spellings.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        // Facebook's spelling has the year at its end, if at all; its parser decides if the date exists.
        let facebook = (parts.dropFirst() + parts.prefix(1).filter { $0 != "0000" }).joined(separator: "/")
        guard let birthday = Birthday(facebook.utf8.span, 0..<facebook.utf8.count), birthday.description == text
        else { throw DecodingError.unfit("no birthday", decoder) }
        self = birthday
    }

    /// Writes ``description``.
    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        try value.encode(description)
    }
}
