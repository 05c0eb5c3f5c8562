internal import LLBytes

/// A permission of Limited Login. There are twelve; later versions may know more of them.
///
/// A token does not list the granted permissions. A claim shows that its permission was granted. A missing claim may
/// mean that the permission was declined, or that there is no value.
public struct Permission: Hashable, CaseIterable, Sendable, CustomStringConvertible {
    fileprivate enum Known: UInt16, CaseIterable {
        case publicProfile, email, gamingProfile, gamingUserPicture, userAgeRange, userBirthday, userFriends, userGender
        case userHometown, userLink, userLocation, userMessengerContact

        static let names: [StaticString] = [
            "public_profile", "email", "gaming_profile", "gaming_user_picture", "user_age_range", "user_birthday",
            "user_friends", "user_gender", "user_hometown", "user_link", "user_location", "user_messenger_contact",
        ]

        var name: StaticString { Self.names[Int(rawValue)] }
    }

    fileprivate let known: Known

    private init(_ known: Known) { self.known = known }

    /// The name and the picture.
    public static let publicProfile = Permission(.publicProfile)
    /// The e-mail address that the person gave Facebook.
    public static let email = Permission(.email)
    /// Name and picture of the gaming profile, in place of ``publicProfile``.
    public static let gamingProfile = Permission(.gamingProfile)
    /// First name and picture of the gaming profile.
    public static let gamingUserPicture = Permission(.gamingUserPicture)
    /// The bracket of the person's age.
    public static let userAgeRange = Permission(.userAgeRange)
    /// The birthday, in whole or in part.
    public static let userBirthday = Permission(.userBirthday)
    /// The friends with the same app.
    public static let userFriends = Permission(.userFriends)
    /// The gender.
    public static let userGender = Permission(.userGender)
    /// The home town.
    public static let userHometown = Permission(.userHometown)
    /// The link to the person's page.
    public static let userLink = Permission(.userLink)
    /// The city the person lives in.
    public static let userLocation = Permission(.userLocation)
    /// The right to write to the person; it yields no claim.
    public static let userMessengerContact = Permission(.userMessengerContact)

    /// All permissions within the scope of Limited Login.
    public static let allCases = Known.allCases.map { Permission($0) }

    /// The permission with this name; nil outside the scope of Limited Login.
    public init?(rawValue: String) { self.init(name: rawValue.utf8.span) }

    /// The permission with this name; nil outside the limited scope. It compares bytes and makes no string.
    package init?(name: Span<UInt8>) {
        for known in Known.allCases where name.equal(0..<name.count, known.name) {
            self.known = known
            return
        }
        return nil
    }

    package var name: StaticString { known.name }

    /// The name, such as `user_friends`.
    public var rawValue: String { "\(known.name)" }

    /// The same as `rawValue`.
    public var description: String { rawValue }
}

/// The text is the permission's name, such as `user_friends`. Decoding a name that this version does not know throws.
extension Permission: RawRepresentable, Codable {}

/// A set of permissions in one machine word.
package struct PermissionSet: OptionSet, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    package init(_ permission: Permission) { rawValue = 1 << permission.known.rawValue }

    package func contains(_ permission: Permission) -> Bool { contains(PermissionSet(permission)) }

    package var permissions: [Permission] {
        var permissions: [Permission] = []
        permissions.reserveCapacity(rawValue.nonzeroBitCount)
        for permission in Permission.allCases where contains(permission) { permissions.append(permission) }
        return permissions
    }

    /// The gaming permissions. Their claims are the same as those of `public_profile`.
    static let gaming: PermissionSet = [PermissionSet(.gamingProfile), PermissionSet(.gamingUserPicture)]

    /// The part of `satisfied` that was granted to a login that requested `asked`: the gaming permissions if it
    /// requested them in place of `public_profile`, else `public_profile`.
    package static func shown(_ satisfied: PermissionSet, asked: PermissionSet) -> PermissionSet {
        let gaming = asked.intersection(.gaming)
        if gaming.isEmpty || asked.contains(.publicProfile) { return satisfied.subtracting(.gaming) }
        return satisfied.subtracting(.gaming).subtracting(PermissionSet(.publicProfile))
            .union(satisfied.intersection(gaming))
    }

    /// The requested permissions for which a token of `satisfied` shows no claim, without the unverifiable ones.
    package static func missing(_ satisfied: PermissionSet, asked: PermissionSet) -> PermissionSet {
        asked.subtracting(satisfied).subtracting(.unverifiable)
    }

    /// Permissions that yield no claim: a token can neither confirm them nor show that they are missing.
    package static let unverifiable = PermissionSet(.userMessengerContact)
}
