/// The twelve permissions of Limited Login.
///
/// A token does not list what was granted. A claim shows that its permission was; a claim that is missing may
/// have been declined, or there is nothing to tell.
public enum Permission: String, CaseIterable, Sendable {
    /// The name and the picture.
    case publicProfile = "public_profile"
    /// The e-mail address the person shows Facebook.
    case email
    /// Name and picture of the gaming profile, in place of `publicProfile`.
    case gamingProfile = "gaming_profile"
    /// First name and picture of the gaming profile.
    case gamingUserPicture = "gaming_user_picture"
    /// The bracket of the person's age.
    case userAgeRange = "user_age_range"
    /// The birthday, in whole or in part.
    case userBirthday = "user_birthday"
    /// The friends who use the same app.
    case userFriends = "user_friends"
    /// The gender.
    case userGender = "user_gender"
    /// The home town.
    case userHometown = "user_hometown"
    /// The link to the person's page.
    case userLink = "user_link"
    /// The city the person lives in.
    case userLocation = "user_location"
    /// Leave to write to the person; yields no claim.
    case userMessengerContact = "user_messenger_contact"

    /// Whether a permission of this name is within the scope of Limited Login.
    public static func isLimitedScope(_ name: String) -> Bool {
        Permission(name: name.utf8.span) != nil
    }

    /// The permission with this name; nil outside the limited scope. Compares bytes, makes no string.
    package init?(name: Span<UInt8>) {
        for permission in Permission.allCases where permission.hasName(name) {
            self = permission
            return
        }
        return nil
    }

    /// The claims that show this permission was granted; empty when none does.
    public var claims: [ClaimName] {
        switch self {
        case .publicProfile: [.name, .givenName, .middleName, .familyName, .picture]
        case .email: [.email]
        case .gamingProfile: [.name]
        case .gamingUserPicture: [.givenName, .picture]
        case .userAgeRange: [.userAgeRange]
        case .userBirthday: [.userBirthday]
        case .userFriends: [.userFriends]
        case .userGender: [.userGender]
        case .userHometown: [.userHometown]
        case .userLink: [.userLink]
        case .userLocation: [.userLocation]
        case .userMessengerContact: []
        }
    }

    private func hasName(_ bytes: Span<UInt8>) -> Bool {
        let name = rawValue.utf8.span
        guard name.count == bytes.count else { return false }
        for index in 0..<name.count where name[index] != bytes[index] { return false }
        return true
    }
}
