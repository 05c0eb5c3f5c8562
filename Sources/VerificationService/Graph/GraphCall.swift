package import Graph
package import Networking

/// What Graph is asked on behalf of one request.
package enum GraphCall: Sendable {
    /// The person's permissions; `needed` are those the caller wants to know about, nil where it did not say.
    case list(GraphUserID, AppSecret, needed: [GraphPermission]?)
    /// One permission back, or with nil the whole login.
    case revoke(GraphPermission?, GraphUserID, AppSecret)
    /// Limited Login's own endpoint; the token was verified.
    case uninstall(idToken: String, appID: String)

    /// The label of the metrics.
    package enum Operation: String, CaseIterable, Sendable {
        case listPermissions = "list_permissions"
        case revokePermission = "revoke_permission"
        case revokeLogin = "revoke_login"
        case uninstall = "uninstall"
    }

    package var operation: Operation {
        switch self {
        case .list: .listPermissions
        case .revoke(.some, _, _): .revokePermission
        case .revoke(nil, _, _): .revokeLogin
        case .uninstall: .uninstall
        }
    }

    /// Asks; blocks the thread until Graph has answered or the time is over.
    ///
    /// - Returns: the permissions where they were asked for.
    package func perform(
        _ client: GraphClient,
        until deadline: MonotonicInstant
    ) throws(GraphFailure) -> UserPermissions? {
        switch self {
        case .list(let user, let app, _): return try client.permissions(of: user, app: app, until: deadline)
        case .revoke(let permission, let user, let app):
            try client.revoke(permission, of: user, app: app, until: deadline)
        case .uninstall(let token, let appID):
            try client.uninstall(idToken: token, appID: appID, until: deadline)
        }
        return nil
    }
}
