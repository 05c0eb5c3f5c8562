internal import LLBytes

/// A permission of Limited Login. There are twelve; later versions may know more of them.
///
/// A token does not list the granted permissions. A claim shows that its permission was granted. A missing claim may
/// mean that the permission was declined, or that there is no value.
public struct Permission: Hashable, CaseIterable, Sendable, CustomStringConvertible {
    private static let names: [StaticString] = [
        "public_profile", "email", "gaming_profile", "gaming_user_picture", "user_age_range", "user_birthday",
        "user_friends", "user_gender", "user_hometown", "user_link", "user_location", "user_messenger_contact",
    ]

    fileprivate let place: UInt16

    private init(_ place: UInt16) { self.place = place }

    /// The name and the picture.
    public static let publicProfile = Permission(0)
    /// The e-mail address that the person gave Facebook.
    public static let email = Permission(1)
    /// Name and picture of the gaming profile, in place of ``publicProfile``.
    public static let gamingProfile = Permission(2)
    /// First name and picture of the gaming profile.
    public static let gamingUserPicture = Permission(3)
    /// The bracket of the person's age.
    public static let userAgeRange = Permission(4)
    /// The birthday, in whole or in part.
    public static let userBirthday = Permission(5)
    /// The friends with the same app.
    public static let userFriends = Permission(6)
    /// The gender.
    public static let userGender = Permission(7)
    /// The home town.
    public static let userHometown = Permission(8)
    /// The link to the person's page.
    public static let userLink = Permission(9)
    /// The city the person lives in.
    public static let userLocation = Permission(10)
    /// The right to write to the person; it yields no claim.
    public static let userMessengerContact = Permission(11)

    /// All permissions within the scope of Limited Login.
    public static let allCases = names.indices.map { Permission(UInt16($0)) }

    /// The permission with this name; nil outside the scope of Limited Login.
    public init?(rawValue: String) { self.init(name: rawValue.utf8.span) }

    package init?(name: Span<UInt8>) {
        for permission in Self.allCases where name.equal(0..<name.count, permission.name) {
            self = permission
            return
        }
        return nil
    }

    package var name: StaticString { Self.names[Int(place)] }

    /// The name, such as `user_friends`.
    public var rawValue: String { "\(name)" }

    /// The same as `rawValue`.
    public var description: String { rawValue }
}

/// The text is the permission's name, such as `user_friends`. Decoding a name that this version does not know throws.
extension Permission: RawRepresentable, Codable {}

/// A set of permissions in one machine word.
package struct PermissionSet: OptionSet, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    package init(_ permission: Permission) { rawValue = 1 << permission.place }
    package init(_ permissions: [Permission]) { self.init(permissions.map { PermissionSet($0) }) }

    package func contains(_ permission: Permission) -> Bool { contains(PermissionSet(permission)) }

    package var permissions: [Permission] { Permission.allCases.filter { contains($0) } }

    /// The gaming permissions. Their claims are the same as those of `public_profile`.
    static let gaming = PermissionSet([.gamingProfile, .gamingUserPicture])

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

/// The kind of a login: `LoginTracking` of Facebook's SDK for iOS. Its raw values are the words of requests and answers.
@nonexhaustive  // SE-0487
public enum LoginTracking: String, CaseIterable, Sendable {
    /// Limited Login: an id token, and the permissions of ``Permission``.
    case limited
    /// A login with tracking: also an access token, and any permission of Facebook.
    case enabled
}

/// The configuration of a login, checked before the person sees a dialog for it.
///
/// Facebook's SDKs give no reason for a bad configuration: on iOS `LoginConfiguration` is nil, and Android throws. A
/// permission outside Limited Login's scope is refused only in the dialog.
public struct LoginConfiguration: Equatable, Sendable {
    /// The names of the permissions in the given order, each once.
    public let permissions: [String]
    /// The kind of the login.
    public let tracking: LoginTracking
    /// The nonce that the app gives Facebook.
    public let nonce: Nonce

    /// Checks a configuration. Its permissions are those of ``Permission`` with ``LoginTracking/limited``; otherwise names of
    /// 1 to 64 characters of `[a-z_.]`.
    public init(permissions: [String], tracking: LoginTracking, nonce: String) throws(LoginConfigurationError) {
        guard let nonce = Nonce(nonce) else { throw .invalidNonce }
        for name in permissions {
            guard PermissionName.isValid(name) else { throw .malformedPermission }
            guard tracking == .enabled || Permission(rawValue: name) != nil else {
                throw .permissionOutsideLimitedLogin(name)
            }
        }
        var seen: Set<String> = []
        self.permissions = permissions.filter { seen.insert($0).inserted }
        self.tracking = tracking
        self.nonce = nonce
    }
}

/// The reason why a configuration is refused.
public struct LoginConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// One sentence that a person can act on.
    public let description: String

    /// The nonce is empty or has white space.
    public static let invalidNonce = Self(description: "The nonce is empty or holds white space.")
    /// A permission's name cannot be one of Facebook's.
    public static let malformedPermission = Self(description: "A permission's name is 1 to 64 of [a-z_.].")

    static func permissionOutsideLimitedLogin(_ name: String) -> Self {
        Self(description: "Limited Login cannot ask for \(name); leave it out, or log in with tracking enabled.")
    }
}
