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

    /// Writes the profile; facts that are not in the token are left out.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(userID, forKey: .userID)
        try members.encodeIfPresent(name, forKey: .name)
        try members.encodeIfPresent(firstName, forKey: .firstName)
        try members.encodeIfPresent(middleName, forKey: .middleName)
        try members.encodeIfPresent(lastName, forKey: .lastName)
        try members.encodeIfPresent(email, forKey: .email)
        // Facebook does not say if the address is confirmed. Without this member a reader might assume it is.
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

    /// Reads a bracket; throws without any bound and for bounds out of range.
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

    /// Writes the bounds that are not nil.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encodeIfPresent(minimum, forKey: .minimum)
        try members.encodeIfPresent(maximum, forKey: .maximum)
    }
}

/// The text has the form of `birthdate` in OpenID Connect Core section 5.1; see ``Birthday/description``.
extension Birthday: Codable {
    /// Reads a birthday; throws for any text outside the three spellings.
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
        // The parser of Facebook's spelling decides if the date exists.
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

/// The text is the permission's name, such as `user_friends`. Decoding a name that this version does not know throws.
extension Permission: RawRepresentable, Codable {}

/// The JSON is a number of seconds since 1970.
extension NumericDate: Codable {
    /// Reads a time; throws for a number outside 0 to 2⁵³.
    public init(from decoder: any Decoder) throws {
        let seconds = try decoder.singleValueContainer().decode(Double.self)
        guard let date = NumericDate(secondsSince1970: seconds) else {
            throw DecodingError.unfit("no number of seconds since 1970", decoder)
        }
        self = date
    }

    /// Writes the seconds, as an integer if they are whole.
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
    /// The error for a value with the right type that is still invalid.
    static func unfit(_ description: String, _ decoder: any Decoder) -> DecodingError {
        .dataCorrupted(Context(codingPath: decoder.codingPath, debugDescription: description))
    }
}
