package import Graph

/// Writes what a person has granted: every name is of `[a-z_]` and every id of digits, so nothing needs an escape.
package enum PermissionsAnswer {
    package static func write(
        _ permissions: UserPermissions,
        user: GraphUserID,
        appID: String,
        needed: [GraphPermission]?,
        to body: inout [UInt8]
    ) {
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("user_id", user.text, to: &body)
        JSONWriter.raw(",", to: &body)
        JSONWriter.member("app_id", appID, to: &body)
        JSONWriter.raw(",\"granted\":", to: &body)
        list(permissions.granted, to: &body)
        JSONWriter.raw(",\"declined\":", to: &body)
        list(permissions.declined, to: &body)
        JSONWriter.raw(",\"expired\":", to: &body)
        list(permissions.expired, to: &body)
        if let needed {
            JSONWriter.raw(",\"missing\":", to: &body)
            list(permissions.missing(among: needed), to: &body)
            JSONWriter.raw(",\"declined_requested\":", to: &body)
            list(permissions.declined(among: needed), to: &body)
        }
        JSONWriter.raw("}", to: &body)
    }

    private static func list(_ permissions: [GraphPermission], to body: inout [UInt8]) {
        JSONWriter.raw("[", to: &body)
        for (index, permission) in permissions.enumerated() {
            if index > 0 { JSONWriter.raw(",", to: &body) }
            JSONWriter.string(permission.name, to: &body)
        }
        JSONWriter.raw("]", to: &body)
    }
}
