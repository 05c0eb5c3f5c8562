internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LimitedLogin

/// `/users/{user_id}/permissions` and below: lists a person's permissions, and revokes them.
enum PermissionsEndpoint {
    static let answer: Route.Answer = { worker, exchange, bytes throws(Rejection) in
        guard let secrets = worker.settings.appSecrets else { throw Requirement.permissions.problem }
        let request = try PermissionsRequest(exchange.head, bytes)
        let app: AppSecret
        do throws(AppSecrets.Missing) {
            app = try secrets.secret(of: request.appID)
        } catch {
            switch error {
            case .unnamed:
                throw Rejection(.invalidRequest, "Several apps are configured, so the query must name one: app_id.")
            case .unknown: throw Rejection(.unknownApp, "The app_id in the query is not a configured app's.")
            case .noSecret: throw Rejection(.unknownApp, "No secret of the app is configured: see app_secrets_file.")
            }
        }
        let (user, permission, needed) = (request.user, request.permission, request.needed)
        let isQuestion = exchange.head.method != .delete
        let login = isQuestion || permission != nil ? nil : (app.appID, user.text)
        return try GraphWorkers.ask(revoking: login, isQuestion: isQuestion, worker, &exchange, bytes) {
            client throws(GraphFailure) in
            guard isQuestion else {
                try client.revoke(permission, of: user, app: app)
                return { $0.status = 204 }
            }
            let permissions = try client.permissions(of: user, app: app)
            return { response in
                response.addField("Content-Type: application/json")
                permissions.write(user: user, appID: app.appID, needed: needed, to: &response.body)
            }
        }
    }
}

extension UserPermissions {
    /// Writes the answer about a person. Names match `[a-z_.]` and ids are digits, so nothing needs an escape.
    package func write(user: GraphUserID, appID: String, needed: [String]?, to body: inout [UInt8]) {
        JSONWriter.raw("{", to: &body)
        JSONWriter.member("user_id", user.text, to: &body)
        JSONWriter.member("app_id", appID, to: &body)
        JSONWriter.member("granted", granted, to: &body)
        JSONWriter.member("declined", declined, to: &body)
        JSONWriter.member("expired", expired, to: &body)
        if let needed {
            JSONWriter.member("missing", missing(among: needed, ofLimitedLogin: true), to: &body)
            JSONWriter.member("declined_requested", declined(among: needed), to: &body)
            JSONWriter.member("outside_limited_login", missing(among: needed, ofLimitedLogin: false), to: &body)
        }
        JSONWriter.raw("}", to: &body)
    }
}

/// A request about a person's permissions, read from the request target.
///
/// Percent escapes in the path are refused and not decoded, because no id and no name has a byte that needs one. In the
/// query they are decoded first, since clients escape the commas there.
struct PermissionsRequest {
    static let countLimit = 64

    let user: GraphUserID
    private(set) var permission: String?
    private(set) var appID: [UInt8]?
    private(set) var needed: [String]?

    init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) throws(Rejection) {
        let parts =
            Route.permission.parameters(head.path, bytes) ?? Route.permissions.parameters(head.path, bytes) ?? []
        let texts = parts.map { part in String(decoding: part.map { bytes[$0] }, as: UTF8.self) }
        guard let first = texts.first, let user = GraphUserID(first) else {
            throw Rejection(.invalidRequest, "The user_id in the path must be \(GraphUserID.shape).")
        }
        self.user = user
        if texts.count > 1 {
            guard PermissionName.isValid(texts[1]) else {
                throw Rejection(.invalidRequest, "The permission in the path must be \(PermissionName.shape).")
            }
            permission = texts[1]
        }
        guard let query = head.query else { return }
        guard let parameters = FormParameters(bytes, query) else {
            throw Rejection(.invalidRequest, "The query has a broken escape or too many parameters.")
        }
        let takesPermissions = head.method == .get
        let (apps, lists) = (parameters.count(of: "app_id"), parameters.count(of: "permissions"))
        guard apps <= 1, lists <= (takesPermissions ? 1 : 0), parameters.count == apps + lists else {
            throw Rejection(
                .invalidRequest,
                takesPermissions
                    ? "The query may have app_id and permissions, each once, and nothing else."
                    : "The query may have app_id, once, and nothing else."
            )
        }
        appID = parameters.first("app_id")
        guard appID?.isEmpty != true else { throw Rejection(.unknownApp, "The parameter app_id is empty.") }
        needed = try parameters.first("permissions").map(Self.permissions)
    }

    private static func permissions(_ list: [UInt8]) throws(Rejection) -> [String] {
        let names = list.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        guard names.count <= countLimit else {
            throw Rejection(.invalidRequest, "The parameter permissions may name 64 at most.")
        }
        var permissions: [String] = []
        for name in names {
            let permission = String(decoding: name, as: UTF8.self)
            guard PermissionName.isValid(permission) else {
                throw Rejection(
                    .invalidRequest,
                    "The parameter permissions must be names, each \(PermissionName.shape), separated by commas."
                )
            }
            if !permissions.contains(permission) { permissions.append(permission) }
        }
        return permissions
    }
}

/// `POST /uninstall`: uninstalls the app through Limited Login's own endpoint. The body has `id_token`, and optionally
/// `app_id`, which narrows the configured apps to one. Only a good token is sent to Facebook.
enum UninstallEndpoint {
    static let answer: Route.Answer = { worker, exchange, bytes throws(Rejection) in
        let members = try JSONDocument.texts(bytes.extracting(exchange.body), known: ["id_token", "app_id"])
        guard members["app_id"] != "" else { throw Rejection(.unknownApp, "The member app_id is empty.") }
        guard let token = members["id_token"], !token.isEmpty else {
            throw Rejection(.invalidRequest, "The member id_token is missing or empty.")
        }
        let expectation = TokenExpectation(binding: .unbound, appID: members["app_id"])
        worker.subject = .idToken
        let verifier = worker.settings.unboundVerifier
        let verdict = try worker.judge.judge(token.utf8.span, expectation, verifier: verifier, &exchange, bytes)
        guard let claims = verdict else { return .later(until: worker.judge.waitsUntil) }
        // The outcome is Graph's from here on.
        worker.subject = nil
        let payload = worker.judge.workspace.payload.span
        let appID = JSONText.value(payload, claims.audience)
        let login = (appID, JSONText.value(payload, claims.subject))
        return try GraphWorkers.ask(revoking: login, worker, &exchange, bytes) { client throws(GraphFailure) in
            try client.uninstall(idToken: token, appID: appID)
            return { $0.status = 204 }
        }
    }
}
