/// The twelve permissions of Limited Login.
public enum Permission: String, CaseIterable, Sendable {
    case publicProfile = "public_profile"
    case email
    case gamingProfile = "gaming_profile"
    case gamingUserPicture = "gaming_user_picture"
    case userAgeRange = "user_age_range"
    case userBirthday = "user_birthday"
    case userFriends = "user_friends"
    case userGender = "user_gender"
    case userHometown = "user_hometown"
    case userLink = "user_link"
    case userLocation = "user_location"
    case userMessengerContact = "user_messenger_contact"

    /// The permission with this name; nil outside the limited scope. Compares bytes, makes no string.
    package init?(name: Span<UInt8>) { return nil }
}

/// A set of permissions in one machine word.
public struct PermissionSet: OptionSet, Sendable {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }
}
