internal import LLBytes
package import LLHTTP
internal import LLJOSE
internal import LimitedLogin

package struct GraphConfiguration: Sendable, Equatable {
    package static let standardURL = "https://graph.facebook.com"
    /// The newest version that this project supports.
    package static let standardVersion = "v26.0"
    /// Limited Login's own endpoint (developers.facebook.com/docs/facebook-login/limited-login/token).
    package static let standardUninstallURL = "https://www.limited.facebook.com/platform/uninstall/"

    private let base: String
    let uninstallURL: HTTPURL

    package init(
        url: String = standardURL,
        version: String = standardVersion,
        uninstallURL: String = standardUninstallURL
    ) throws(HTTPURL.ParsingError) {
        var base = try HTTPURL(parsing: url).description
        while base.hasSuffix("/") { base.removeLast() }
        self.base = "\(base)/\(version)"
        self.uninstallURL = try HTTPURL(parsing: uninstallURL)
    }

    package static func isVersion(_ text: String) -> Bool {
        let parts = text.dropFirst().split(separator: ".", omittingEmptySubsequences: false)
        return text.first == "v" && parts.count == 2
            && parts.allSatisfy { (1...4).contains($0.utf8.count) && $0.utf8.allSatisfy { $0 &- 0x30 < 10 } }
    }

    /// The URL of a path below the version. Its parts have been checked.
    func url(_ path: String, _ query: [(name: String, value: String)]) throws(HTTPURL.ParsingError) -> HTTPURL {
        try HTTPURL(parsing: "\(base)/\(path)?\(FormParameters.encode(query))")
    }
}

/// Every limit of the Graph client, with its default and reason.
package enum GraphLimits {
    /// Duration of one call with its retries. 5 s: Graph answers within 1 s, and callers of the service wait no longer.
    package static let callTimeout: Duration = .seconds(5)
    /// Attempts of an idempotent call that fails transiently. 3: more would add to the load of a failing service.
    static let attemptCount = 3
    /// The longest pause before the second attempt. 200 ms: most transient faults are over by then. Each further
    /// attempt doubles it, and the actual pause is random between 0 and this value.
    static let firstPause: Duration = .milliseconds(200)
    /// Bytes of an answer. 64 KiB: a list of a person's permissions takes 2 KiB.
    static let bodyBytes = 64 * 1024
    /// Bytes of an answer about a person. 256 KiB: the ids of ``friendCount`` friends take 100 KiB.
    static let profileBytes = 256 * 1024
    /// Number of friends requested. 2,000: their ids fit into one answer of the service, which may be 64 KiB.
    static let friendCount = 2_000
    /// Permissions in an answer. 512: Facebook has fewer.
    static let permissionCount = 512
    /// Bytes of a `fbtrace_id` that are passed on. 64: real ones have 23.
    static let traceIDBytes = 64
    /// The longest wait in seconds that an answer can impose on callers. A day: the longest of Graph's windows.
    static let greatestRetryAfterSeconds = 86_400
}

/// A person's app-scoped id, as Facebook writes it: a caller cannot put anything else into a URL.
package struct GraphUserID: Sendable, Equatable {
    package let text: String

    package init?(_ text: String) {
        guard DecimalNumber.isIdentifier(text.utf8) else { return nil }
        self.text = text
    }

    package static let shape = "1 to 20 decimal digits without a leading zero"
}

/// A person's access token. The text is a credential and is in no description.
package struct GraphAccessToken: Sendable, Redacted {
    let text: String

    /// - Parameter bytes: Visible ASCII, checked by the caller. Other bytes are refused when the field is written.
    package init(_ bytes: [UInt8]) { text = String(decoding: bytes, as: UTF8.self) }
}

/// The permissions that a person granted an app, as Graph reports them, each a valid ``PermissionName``. Each list is sorted.
package struct UserPermissions: Sendable, Equatable {
    enum Status: String { case granted, declined, expired }

    package var granted: [String] = []
    /// Requested and declined. Facebook asks apps to request them again only after the person returns to the feature.
    package var declined: [String] = []
    /// Granted earlier, and expired because they were not used.
    package var expired: [String] = []

    /// The needed permissions that the person has neither granted nor declined: those that a Limited Login can ask for, or
    /// the others, such as `user_likes`.
    package func missing(among needed: [String], ofLimitedLogin isLimited: Bool) -> [String] {
        let missing = needed.filter { !granted.contains($0) && !declined.contains($0) }
        return missing.filter { (Permission(rawValue: $0) != nil) == isLimited }
    }

    package func declined(among needed: [String]) -> [String] { needed.filter { declined.contains($0) } }
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
