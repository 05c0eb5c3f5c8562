internal import Graph
internal import HTTP1

/// A request about a person's permissions: all of it is in the target, and all of it is checked here.
///
/// In the path percent escapes are refused rather than undone: no id and no name has a byte that needs one. In the query
/// they are undone first, since clients escape the commas there.
struct PermissionsRequest {
    /// Greatest number of permissions asked for.
    static let countLimit = 64

    let user: GraphUserID
    /// The permission in the path.
    let permission: GraphPermission?
    /// The app named in the query.
    let appID: [UInt8]?
    /// Those the caller needs, each once; nil where it did not ask.
    let needed: [GraphPermission]?

    init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) throws(Problem) {
        let parts =
            Route.permission.parameters(head.path, bytes) ?? Route.permissions.parameters(head.path, bytes) ?? []
        guard let first = parts.first, let user = GraphUserID(bytes.extracting(first)) else {
            throw Problem(.invalidRequest, "The user_id in the path must be 1 to 32 decimal digits.")
        }
        self.user = user
        var permission: GraphPermission?
        if parts.count > 1 {
            permission = GraphPermission(bytes.extracting(parts[1]))
            guard permission != nil else {
                throw Problem(.invalidRequest, "The permission in the path must be \(GraphPermission.shape).")
            }
        }
        self.permission = permission
        var query = Query()
        if let range = head.query { try query.read(bytes, range, takesPermissions: head.method == .get) }
        appID = query.appID
        needed = query.needed
    }

    /// The parameters of the query.
    private struct Query {
        var appID: [UInt8]?
        var needed: [GraphPermission]?

        mutating func read(_ bytes: Span<UInt8>, _ range: Range<Int>, takesPermissions: Bool) throws(Problem) {
            guard let parameters = FormParameters(bytes, range) else {
                throw Problem(.invalidRequest, "The query has a broken escape or too many parameters.")
            }
            let (apps, lists) = (parameters.count(of: "app_id"), parameters.count(of: "permissions"))
            guard apps <= 1, lists <= (takesPermissions ? 1 : 0), parameters.count == apps + lists else {
                throw Problem(
                    .invalidRequest,
                    takesPermissions
                        ? "The query may have app_id and permissions, each once, and nothing else."
                        : "The query may have app_id, once, and nothing else."
                )
            }
            if let value = parameters.first("app_id") {
                guard !value.isEmpty else { throw Problem(.unknownApp, "The parameter app_id is empty.") }
                appID = value
            }
            if let list = parameters.first("permissions") { needed = try Self.permissions(list) }
        }

        private static func permissions(_ list: [UInt8]) throws(Problem) -> [GraphPermission] {
            let names = list.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
            guard names.count <= PermissionsRequest.countLimit else {
                throw Problem(.invalidRequest, "The parameter permissions may name 64 at most.")
            }
            var permissions: [GraphPermission] = []
            for name in names {
                guard let permission = GraphPermission(Array(name).span) else {
                    throw Problem(
                        .invalidRequest,
                        "The parameter permissions must be names, each \(GraphPermission.shape), separated by commas."
                    )
                }
                if !permissions.contains(permission) { permissions.append(permission) }
            }
            return permissions
        }
    }
}
