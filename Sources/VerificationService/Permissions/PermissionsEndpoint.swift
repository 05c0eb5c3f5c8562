package import Graph
internal import HTTP1
internal import HTTPServer
internal import LimitedLogin

/// `/users/{user_id}/permissions` and below: what a person has granted, and what is taken back.
final class PermissionsEndpoint: Endpoint {
    private let graph: GraphRequests
    private let workerSettings: WorkerSettings

    init(_ parts: WorkerParts) {
        graph = parts.graph
        workerSettings = parts.settings
    }

    /// Answers one request, which waits for Graph.
    func answer(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        body: Span<UInt8>,
        context: RequestContext,
        response: inout HTTPResponse
    ) throws(Problem) -> Outcome {
        if let outcome = try graph.revisit(context, &response) { return outcome }
        return try graph.begin(
            Self.read(head, bytes, workerSettings.settings),
            context,
            trace: TraceParent.passedOn(head, bytes)
        )
    }

    private static func read(
        _ head: borrowing RequestHead,
        _ bytes: Span<UInt8>,
        _ settings: RuntimeSettings
    ) throws(Problem) -> GraphCall {
        // They were there when the head came; a reload in between may have taken them away.
        guard let secrets = settings.appSecrets else { throw Problem(.notFound, Requirement.permissions.sentence) }
        let request = try PermissionsRequest(head, bytes)
        let app: AppSecret
        do throws(AppSecrets.Missing) {
            app = try secrets.secret(of: request.appID)
        } catch {
            switch error {
            case .unnamed:
                throw Problem(.invalidRequest, "Several apps are configured, so the query must name one: app_id.")
            case .unknown: throw Problem(.unknownApp, "The app_id in the query is not a configured app's.")
            case .noSecret: throw Problem(.unknownApp, "No secret of the app is configured: see app_secrets_file.")
            }
        }
        if head.method == .delete { return .revoke(request.permission, request.user, app) }
        return .list(request.user, app, needed: request.needed)
    }
}

extension UserPermissions {
    /// Those of the permissions needed that a Limited Login can ask the person for, and should.
    package func worthAsking(among needed: [GraphPermission]) -> [GraphPermission] {
        missing(among: needed).filter { Permission(rawValue: $0.name) != nil }
    }

    /// Those of the permissions needed that the person has neither granted nor declined, and that no Limited Login can
    /// ask for, such as `user_likes`.
    package func outsideLimitedLogin(among needed: [GraphPermission]) -> [GraphPermission] {
        missing(among: needed).filter { Permission(rawValue: $0.name) == nil }
    }
}

/// Writes what a person has granted. Every name is of `[a-z_.]` and every id of digits.
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
            list(permissions.worthAsking(among: needed), to: &body)
            JSONWriter.raw(",\"declined_requested\":", to: &body)
            list(permissions.declined(among: needed), to: &body)
            JSONWriter.raw(",\"outside_limited_login\":", to: &body)
            list(permissions.outsideLimitedLogin(among: needed), to: &body)
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
