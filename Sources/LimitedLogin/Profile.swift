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
