internal import Bytes
internal import HTTP1
internal import LimitedLogin

/// What a gateway asks for beyond a good token: `?permissions=email,user_birthday` and `?app_id=…`.
///
/// Both only narrow what is accepted, and the first of each name counts. A parameter of another name is refused, since a
/// misspelt one would demand nothing. Parameters after `original` are ignored: a gateway can append there whatever its
/// client asked for.
struct AuthDemand {
    /// The one app the token must be for; empty for any configured one.
    let appID: [UInt8]
    private let permissions: PermissionSet

    /// Reads the query of a request. A demand that no token can fulfil, or that is empty, is 403, an unknown parameter 400:
    /// a 401 would log people out for a mistake in the gateway's configuration.
    init(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) throws(Problem) {
        guard let query = head.query else {
            appID = []
            permissions = PermissionSet(rawValue: 0)
            return
        }
        guard let parameters = FormParameters(bytes, query, endingAt: "original") else {
            throw Problem(.insufficientScope, "The query is malformed, so what it demands cannot be shown.")
        }
        guard parameters.count(of: "permissions") + parameters.count(of: "app_id") == parameters.count else {
            throw Problem(.invalidRequest, "The query may have permissions, app_id and original; nothing else.")
        }
        let appID = parameters.first("app_id")
        // The verdict would read an empty one as none.
        guard appID?.isEmpty != true else { throw Self.unknownApp }
        self.appID = appID ?? []
        permissions = try parameters.first("permissions").map(Self.permissions) ?? []
    }

    /// No configured app has the id asked for.
    static var unknownApp: Problem {
        Problem(.insufficientScope, "The app_id in the query is not a configured app's.")
    }

    private static func permissions(_ list: [UInt8]) throws(Problem) -> PermissionSet {
        var permissions: PermissionSet = []
        for name in list.split(whereSeparator: { $0 == UInt8(ascii: ",") || $0 == ASCII.space }) {
            guard let permission = Permission(name: Array(name).span) else {
                throw Problem(.insufficientScope, "A permission in the query is none of Limited Login's twelve.")
            }
            permissions.insert(PermissionSet(permission))
        }
        guard !permissions.isEmpty else {
            throw Problem(.insufficientScope, "The query demands permissions and names none.")
        }
        return permissions
    }

    /// Refuses a token that does not show every permission asked for; one that yields no claim can never be shown.
    func require(_ claims: VerifiedClaims) throws(Problem) {
        let missing = permissions.subtracting(claims.satisfiedPermissions)
        guard !missing.isEmpty else { return }
        let names = missing.permissions.map(\.rawValue).joined(separator: ", ")
        throw Problem(
            .insufficientScope,
            "The token shows no claim of: \(names).",
            scope: permissions.permissions.map(\.rawValue).joined(separator: " ")
        )
    }
}
