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
