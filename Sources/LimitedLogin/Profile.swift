/// The person as the token describes them, as Facebook's SDK builds it. What the token does not say is nil.
public struct Profile: Equatable, Sendable {
    /// A place with its page.
    public struct Place: Equatable, Hashable, Sendable {
        /// The ID of the place's page.
        public let id: String
        /// The name of the place.
        public let name: String
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
    /// The e-mail address as it stands on the person's profile; Facebook does not say whether it is confirmed.
    public let email: String?
    /// The URL of the picture, signed and good for about a month.
    public let imageURL: String?
    /// The link to the person's page.
    public let linkURL: String?
    /// The IDs of the friends who granted the app `user_friends` too; empty when there are none.
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
    /// The permissions whose claims are there. The token does not list grants, so a permission may have been
    /// granted and yet not show.
    public let permissions: [Permission]
    /// Whether the login was a Limited Login, as far as the token shows.
    public let isLimited: Bool
}

/// The bracket of a person's age in years. At least one bound is there, and the lower is less than the upper.
public struct AgeRange: Equatable, Hashable, Sendable {
    /// The least age; nil when there is none.
    public let minimum: Int?
    /// The greatest age; nil when there is none.
    public let maximum: Int?

    /// A bracket; nil without any bound, with a negative one, and when the minimum is not less than the maximum.
    public init?(minimum: Int?, maximum: Int?) {
        guard minimum != nil || maximum != nil else { return nil }
        guard minimum ?? 0 >= 0, maximum ?? 0 >= 0 else { return nil }
        if let minimum, let maximum, minimum >= maximum { return nil }
        self.minimum = minimum
        self.maximum = maximum
    }
}

/// The tracking a login was made with, as far as its token shows.
public enum LoginTracking: String, CaseIterable, Sendable {
    /// An access token came with the id token (`at_hash` is there): Facebook Login.
    case enabled
    /// Only the id token was issued: Limited Login.
    case limited
}
