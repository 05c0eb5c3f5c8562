/// A set of permissions in one machine word.
public struct PermissionSet: OptionSet, Hashable, Sendable {
    /// One bit for each permission.
    public let rawValue: UInt16

    /// A set from its bits.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The set of one permission.
    public init(_ permission: Permission) {
        self = permission.bit
    }

    /// Whether the permission is in the set.
    public func contains(_ permission: Permission) -> Bool {
        contains(permission.bit)
    }

    /// The permissions of the set in the order of `Permission`.
    public var permissions: [Permission] { Permission.allCases.filter { contains($0) } }

    /// Permissions that yield no claim: a token can neither confirm them nor show that they are missing.
    public static let unverifiable = PermissionSet(.userMessengerContact)
}

extension Permission {
    /// The permission's bit in a `PermissionSet`.
    var bit: PermissionSet {
        switch self {
        case .publicProfile: PermissionSet(rawValue: 1 << 0)
        case .email: PermissionSet(rawValue: 1 << 1)
        case .gamingProfile: PermissionSet(rawValue: 1 << 2)
        case .gamingUserPicture: PermissionSet(rawValue: 1 << 3)
        case .userAgeRange: PermissionSet(rawValue: 1 << 4)
        case .userBirthday: PermissionSet(rawValue: 1 << 5)
        case .userFriends: PermissionSet(rawValue: 1 << 6)
        case .userGender: PermissionSet(rawValue: 1 << 7)
        case .userHometown: PermissionSet(rawValue: 1 << 8)
        case .userLink: PermissionSet(rawValue: 1 << 9)
        case .userLocation: PermissionSet(rawValue: 1 << 10)
        case .userMessengerContact: PermissionSet(rawValue: 1 << 11)
        }
    }
}
