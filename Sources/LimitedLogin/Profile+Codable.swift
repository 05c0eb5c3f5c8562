/// The JSON of the member `profile` of the HTTP API.
extension Profile: Codable {
    private enum CodingKeys: String, CodingKey {
        case userID = "user_id"
        case name
        case firstName = "first_name"
        case middleName = "middle_name"
        case lastName = "last_name"
        case email
        case emailVerified = "email_verified"
        case imageURL = "image_url"
        case linkURL = "link_url"
        case friendIDs = "friend_ids"
        case birthday
        case ageRange = "age_range"
        case hometown, location, gender, permissions
        case isLimited = "is_limited"
    }

    /// Reads a profile. Permissions that this version does not know are left out.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            userID: try members.decode(String.self, forKey: .userID),
            name: try members.decodeIfPresent(String.self, forKey: .name),
            firstName: try members.decodeIfPresent(String.self, forKey: .firstName),
            middleName: try members.decodeIfPresent(String.self, forKey: .middleName),
            lastName: try members.decodeIfPresent(String.self, forKey: .lastName),
            email: try members.decodeIfPresent(String.self, forKey: .email),
            imageURL: try members.decodeIfPresent(String.self, forKey: .imageURL),
            linkURL: try members.decodeIfPresent(String.self, forKey: .linkURL),
            friendIDs: try members.decodeIfPresent([String].self, forKey: .friendIDs),
            birthday: try members.decodeIfPresent(Birthday.self, forKey: .birthday),
            ageRange: try members.decodeIfPresent(AgeRange.self, forKey: .ageRange),
            hometown: try members.decodeIfPresent(Place.self, forKey: .hometown),
            location: try members.decodeIfPresent(Place.self, forKey: .location),
            gender: try members.decodeIfPresent(String.self, forKey: .gender),
            permissions: try members.decode([String].self, forKey: .permissions).compactMap(Permission.init),
            isLimited: try members.decode(Bool.self, forKey: .isLimited)
        )
    }

    /// Writes the profile, without what the token does not say.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(userID, forKey: .userID)
        try members.encodeIfPresent(name, forKey: .name)
        try members.encodeIfPresent(firstName, forKey: .firstName)
        try members.encodeIfPresent(middleName, forKey: .middleName)
        try members.encodeIfPresent(lastName, forKey: .lastName)
        try members.encodeIfPresent(email, forKey: .email)
        // Facebook does not say whether the address is confirmed. A reader must not take silence for yes.
        if email != nil { try members.encode(false, forKey: .emailVerified) }
        try members.encodeIfPresent(imageURL, forKey: .imageURL)
        try members.encodeIfPresent(linkURL, forKey: .linkURL)
        try members.encodeIfPresent(friendIDs, forKey: .friendIDs)
        try members.encodeIfPresent(birthday, forKey: .birthday)
        try members.encodeIfPresent(ageRange, forKey: .ageRange)
        try members.encodeIfPresent(hometown, forKey: .hometown)
        try members.encodeIfPresent(location, forKey: .location)
        try members.encodeIfPresent(gender, forKey: .gender)
        try members.encode(permissions.map(\.rawValue), forKey: .permissions)
        try members.encode(isLimited, forKey: .isLimited)
    }
}

extension AgeRange: Codable {
    private enum CodingKeys: String, CodingKey {
        case minimum = "min"
        case maximum = "max"
    }

    /// Reads a bracket; without any bound, and with bounds that are none, this throws.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let (minimum, maximum) = (
            try members.decodeIfPresent(Int.self, forKey: .minimum),
            try members.decodeIfPresent(Int.self, forKey: .maximum)
        )
        guard let range = AgeRange(minimum: minimum, maximum: maximum) else {
            throw DecodingError.unfit("no bracket of ages", decoder)
        }
        self = range
    }

    /// Writes the bounds that are there.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encodeIfPresent(minimum, forKey: .minimum)
        try members.encodeIfPresent(maximum, forKey: .maximum)
    }
}

/// As OpenID Connect Core section 5.1 spells `birthdate`: see ``Birthday/description``.
extension Birthday: Codable {
    /// Reads a birthday; any other text than one of the three spellings throws.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let facebook =
            switch parts.count {
            case 1: text
            case 3 where parts[0] == "0000": "\(parts[1])/\(parts[2])"
            case 3: "\(parts[1])/\(parts[2])/\(parts[0])"
            default: ""
            }
        // The dates that exist are told apart in one place.
        guard let birthday = Birthday(Array(facebook.utf8).span, 0..<facebook.utf8.count), birthday.description == text
        else { throw DecodingError.unfit("no birthday", decoder) }
        self = birthday
    }

    /// Writes ``description``.
    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        try value.encode(description)
    }
}

/// By its name, such as `user_friends`; a name that this version does not know throws.
extension Permission: RawRepresentable, Codable {}

/// A number of seconds since 1970.
extension NumericDate: Codable {
    /// Reads a moment; a number outside 0 to 2⁵³ throws.
    public init(from decoder: any Decoder) throws {
        let seconds = try decoder.singleValueContainer().decode(Double.self)
        guard let date = NumericDate(secondsSince1970: seconds) else {
            throw DecodingError.unfit("no number of seconds since 1970", decoder)
        }
        self = date
    }

    /// Writes the seconds, as an integer where they are whole.
    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        if let whole = Int64(exactly: secondsSince1970) {
            try value.encode(whole)
        } else {
            try value.encode(secondsSince1970)
        }
    }
}

extension DecodingError {
    /// What was read is of the right type and yet not what is needed.
    static func unfit(_ description: String, _ decoder: any Decoder) -> DecodingError {
        .dataCorrupted(Context(codingPath: decoder.codingPath, debugDescription: description))
    }
}
