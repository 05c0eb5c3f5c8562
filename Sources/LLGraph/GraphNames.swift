internal import LLBytes

/// A person's app-scoped id, as Facebook writes it. Other spellings are refused, so a caller cannot put anything else into
/// a URL.
package struct GraphUserID: Sendable, Equatable {
    package let text: String

    package init?(_ text: String) {
        guard DecimalNumber.isIdentifier(text.utf8) else { return nil }
        self.text = text
    }

    /// The form of an id, for messages.
    package static let shape = "1 to 20 decimal digits without a leading zero"
}

/// The name of a permission: 1 to 64 of `[a-z_.]`, such as `user_actions.fitness`. A full stop only separates two
/// words, so a name is never `.` or `..`, which would change a path.
package struct GraphPermission: Sendable, Hashable, Comparable {
    package let name: String

    package init?(_ text: String) {
        let words = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (1...64).contains(text.utf8.count), words.allSatisfy({ !$0.isEmpty }),
            words.joined().allSatisfy({ $0 &- 0x61 < 26 || $0 == UInt8(ascii: "_") })
        else { return nil }
        name = text
    }

    /// The form of a name, for messages.
    package static let shape = "1 to 64 of [a-z_], words with a full stop between them"

    package static func < (left: GraphPermission, right: GraphPermission) -> Bool { left.name < right.name }
}

/// A person's access token. The text is a credential and is in no description.
package struct GraphAccessToken: Sendable {
    let text: String

    /// - Parameter bytes: Visible ASCII, checked by the caller. Other bytes are refused when the field is written.
    package init(_ bytes: [UInt8]) { text = String(decoding: bytes, as: UTF8.self) }
}

extension GraphAccessToken: CustomStringConvertible, CustomReflectable {
    package var description: String { "GraphAccessToken(redacted)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The permissions that a person granted an app, as Graph reports them. Each list is in the order of the names.
package struct UserPermissions: Sendable, Equatable {
    /// The status of one permission, in Graph's own words.
    enum Status: String { case granted, declined, expired }

    package var granted: [GraphPermission]
    /// Requested and declined. Facebook asks apps to request them again only after the person returns to the feature.
    package var declined: [GraphPermission]
    /// Granted earlier, and expired because they were not used.
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

    /// The needed permissions that the app should request (again): neither granted nor declined, or expired.
    package func missing(among needed: [GraphPermission]) -> [GraphPermission] {
        needed.filter { !granted.contains($0) && !declined.contains($0) }
    }

    /// The needed permissions that the person declined. Do not request them again without a reason.
    package func declined(among needed: [GraphPermission]) -> [GraphPermission] {
        needed.filter { declined.contains($0) }
    }
}
