/// The person as the token describes them, in the form of Facebook's SDK. Facts that are not in the token are nil.
public struct Profile: Equatable, Sendable {
    /// A place with its page.
    public struct Place: Equatable, Hashable, Codable, Sendable {
        /// The ID of the place's page.
        public let id: String
        /// The name of the place.
        public let name: String

        /// A place.
        public init(id: String, name: String) {
            self.id = id
            self.name = name
        }
    }

    /// The person, under an ID that only this app knows.
    public let userID: String
    /// The full name.
    public let name: String?
    /// The first name.
    public let firstName: String?
    /// The middle name.
    public let middleName: String?
    /// The last name.
    public let lastName: String?
    /// The e-mail address on the person's profile; Facebook does not say that it is confirmed.
    public let email: String?
    /// False beside an address: without this member of the JSON a reader might assume that it is confirmed.
    private let emailVerified: Bool?
    /// The URL of the picture. It is signed and valid for about a month.
    public let imageURL: String?
    /// The link to the person's page.
    public let linkURL: String?
    /// The IDs of the friends that granted the app `user_friends` too; empty if there are none.
    public let friendIDs: [String]?
    /// The birthday.
    public let birthday: Birthday?
    /// The bracket of the age.
    public let ageRange: AgeRange?
    /// The home town.
    public let hometown: Place?
    /// The city the person lives in.
    public let location: Place?
    /// The gender, in Facebook's words.
    public let gender: String?
    /// The permissions with a claim in the token. The token does not list grants, so a granted permission may be
    /// missing here.
    public let permissions: [Permission]
    /// True if the login was a Limited Login, as far as the token shows.
    public let isLimited: Bool

    /// Makes a profile from these facts, for tests of code that takes one.
    public init(
        userID: String,
        name: String? = nil,
        firstName: String? = nil,
        middleName: String? = nil,
        lastName: String? = nil,
        email: String? = nil,
        imageURL: String? = nil,
        linkURL: String? = nil,
        friendIDs: [String]? = nil,
        birthday: Birthday? = nil,
        ageRange: AgeRange? = nil,
        hometown: Place? = nil,
        location: Place? = nil,
        gender: String? = nil,
        permissions: [Permission] = [],
        isLimited: Bool = true
    ) {
        self.userID = userID
        self.name = name
        self.firstName = firstName
        self.middleName = middleName
        self.lastName = lastName
        self.email = email
        emailVerified = email == nil ? nil : false
        self.imageURL = imageURL
        self.linkURL = linkURL
        self.friendIDs = friendIDs
        self.birthday = birthday
        self.ageRange = ageRange
        self.hometown = hometown
        self.location = location
        self.gender = gender
        self.permissions = permissions
        self.isLimited = isLimited
    }
}

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
}
