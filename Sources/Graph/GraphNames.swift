internal import Bytes

/// A person's app-scoped id, as Facebook writes it. No other spelling names anyone, and nothing else of a caller's words
/// gets into a URL.
package struct GraphUserID: Sendable, Equatable {
    package let text: String

    package init?(_ text: String) {
        guard DecimalNumber.isIdentifier(text.utf8) else { return nil }
        self.text = text
    }

    /// The shape of an id, for messages.
    package static let shape = "1 to 20 decimal digits without a leading zero"
}

/// The name of a permission: 1 to 64 of `[a-z_.]`, such as `user_actions.fitness`. A full stop stands between two words,
/// so that no name is a `.` or `..` that a path would lead elsewhere by.
package struct GraphPermission: Sendable, Hashable, Comparable {
    package let name: String

    package init?(_ text: String) {
        let words = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (1...64).contains(text.utf8.count), words.allSatisfy({ !$0.isEmpty }),
            words.joined().allSatisfy({ $0 &- 0x61 < 26 || $0 == UInt8(ascii: "_") })
        else { return nil }
        name = text
    }

    /// What a name is, for messages.
    package static let shape = "1 to 64 of [a-z_], words with a full stop between them"

    package static func < (left: GraphPermission, right: GraphPermission) -> Bool { left.name < right.name }
}

/// A person's access token: the text of a credential, which is never described.
package struct GraphAccessToken: Sendable {
    let text: String

    /// - Parameter bytes: visible ASCII, as the caller has seen; anything else is refused where the field is written.
    package init(_ bytes: [UInt8]) { text = String(decoding: bytes, as: UTF8.self) }
}

extension GraphAccessToken: CustomStringConvertible, CustomReflectable {
    package var description: String { "GraphAccessToken(redacted)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// What a person has granted an app, as Graph tells it; each list in the order of the names.
package struct UserPermissions: Sendable, Equatable {
    /// What Graph says of one permission, in its own words.
    enum Status: String { case granted, declined, expired }

    package var granted: [GraphPermission]
    /// Asked for and turned down; Facebook wants them asked for again only when the person comes back to it.
    package var declined: [GraphPermission]
    /// Granted once, and run out for want of use.
    package var expired: [GraphPermission]

    package init(
        granted: [GraphPermission] = [],
        declined: [GraphPermission] = [],
        expired: [GraphPermission] = []
    ) {
        self.granted = granted
        self.declined = declined
        self.expired = expired
    }

    /// Those of the permissions needed that the app should ask for (again): never granted nor declined, or expired.
    package func missing(among needed: [GraphPermission]) -> [GraphPermission] {
        needed.filter { !granted.contains($0) && !declined.contains($0) }
    }

    /// Those of the permissions needed that the person declined: asking again uninvited would be nagging.
    package func declined(among needed: [GraphPermission]) -> [GraphPermission] {
        needed.filter { declined.contains($0) }
    }
}
