internal import LLBytes
internal import LLJOSE
internal import LimitedLogin

/// A person's app-scoped id, as Facebook writes it. Other spellings are refused, so a caller cannot put anything else into
/// a URL.
package struct GraphUserID: Sendable, Equatable {
    package let text: String

    package init?(_ text: String) {
        guard DecimalNumber.isIdentifier(text.utf8) else { return nil }
        self.text = text
    }

    package static let shape = "1 to 20 decimal digits without a leading zero"
}

package struct GraphPermission: Sendable, Hashable, Comparable {
    package static let shape = PermissionName.shape

    package let name: String

    package init?(_ text: String) {
        guard PermissionName.isValid(text) else { return nil }
        name = text
    }

    package static func < (left: GraphPermission, right: GraphPermission) -> Bool { left.name < right.name }
}

/// A person's access token. The text is a credential and is in no description.
package struct GraphAccessToken: Sendable, Redacted {
    let text: String

    /// - Parameter bytes: Visible ASCII, checked by the caller. Other bytes are refused when the field is written.
    package init(_ bytes: [UInt8]) { text = String(decoding: bytes, as: UTF8.self) }
}

/// The permissions that a person granted an app, as Graph reports them. Each list is in the order of the names.
package struct UserPermissions: Sendable, Equatable {
    enum Status: String { case granted, declined, expired }

    package var granted: [GraphPermission] = []
    /// Requested and declined. Facebook asks apps to request them again only after the person returns to the feature.
    package var declined: [GraphPermission] = []
    /// Granted earlier, and expired because they were not used.
    package var expired: [GraphPermission] = []

    /// The needed permissions that the app should request (again): neither granted nor declined, or expired.
    package func missing(among needed: [GraphPermission]) -> [GraphPermission] {
        needed.filter { !granted.contains($0) && !declined.contains($0) }
    }

    /// The needed permissions that the person declined. Do not request them again without a reason.
    package func declined(among needed: [GraphPermission]) -> [GraphPermission] {
        needed.filter { declined.contains($0) }
    }
}

/// An app's id and secret; the app authenticates to Graph with them. The secret is in no description.
package struct AppSecret: Sendable, Equatable, Redacted {
    /// The length of a secret, in bytes. Facebook's are 32 hexadecimal digits.
    package static let byteRange = 16...128

    package let appID: String
    private let secret: String

    package init?(appID: String, secret: String) {
        guard Self.byteRange.contains(secret.utf8.count),
            secret.utf8.allSatisfy({ ASCII.isAlphanumeric($0) || "_-".utf8.contains($0) })
        else { return nil }
        self.appID = appID
        self.secret = secret
    }

    /// The key of signed requests (developers.facebook.com/docs/games/gamesonfacebook/login, "Parsing the Signed Request").
    package var signingKey: String { secret }

    /// The app access token in its literal form (developers.facebook.com/docs/facebook-login/guides/access-tokens).
    var accessToken: String { "\(appID)|\(secret)" }

    /// `appsecret_proof`: the hexadecimal HMAC-SHA256 of the access token under the secret
    /// (developers.facebook.com/docs/graph-api/guides/secure-requests).
    func proof(of accessToken: String) throws(OpenSSLError) -> String {
        let message = Array(accessToken.utf8)
        return try HMACSHA256.authenticationCode(for: message.span, key: Array(secret.utf8).span).hexadecimal
    }
}
