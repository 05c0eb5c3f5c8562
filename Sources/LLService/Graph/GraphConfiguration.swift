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

    /// The needed permissions neither granted nor declined: those that a Limited Login can ask for, or the others.
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
    /// Also the key of signed requests (developers.facebook.com/docs/games/gamesonfacebook/login, "Parsing the Signed
    /// Request").
    package let secret: String

    package init?(appID: String, secret: String) {
        guard Self.byteRange.contains(secret.utf8.count),
            secret.utf8.allSatisfy({ ASCII.isAlphanumeric($0) || "_-".utf8.contains($0) })
        else { return nil }
        self.appID = appID
        self.secret = secret
    }

    /// The app access token in its literal form (developers.facebook.com/docs/facebook-login/guides/access-tokens).
    var accessToken: String { "\(appID)|\(secret)" }

    /// `appsecret_proof`: the hexadecimal HMAC-SHA256 of the access token under the secret
    /// (developers.facebook.com/docs/graph-api/guides/secure-requests).
    func proof(of accessToken: String) throws(OpenSSLError) -> String {
        let message = Array(accessToken.utf8)
        return try HMACSHA256.authenticationCode(for: message.span, key: Array(secret.utf8).span).hexadecimal
    }
}

/// The secrets of the configured apps, never printed. The file has a line for each app: its id, white space, its secret.
package struct AppSecrets: Sendable, Equatable {
    /// The greatest size of the file, in bytes: enough for a thousand apps.
    package static let fileByteLimit = 262_144

    private let secrets: [String: AppSecret]
    /// The apps of the configuration, in their order.
    private let appIDs: [String]

    /// Reads the file's text; messages call the file `place`. No part of a secret is in a message.
    package init(parsing text: [UInt8], place: String, appIDs: [String]) throws(ConfigurationError) {
        var secrets: [String: AppSecret] = [:]
        for line in FileLine.all(of: text, place: place) {
            let words = line.words
            if words.isEmpty { continue }
            guard words.count == 2 else {
                throw line.error("an app's line is its id, white space and its secret, as the App Dashboard shows it")
            }
            // The first word may be a secret that lost its app id, so it is not quoted.
            guard let appID = appIDs.first(where: { $0.utf8.elementsEqual(words[0]) }) else {
                throw line.error("the line names an app that app_ids does not")
            }
            guard let secret = AppSecret(appID: appID, secret: String(decoding: words[1], as: UTF8.self)) else {
                throw line.error(
                    "the secret of app \(appID) must be \(AppSecret.byteRange.lowerBound) to "
                        + "\(AppSecret.byteRange.upperBound) characters of [A-Za-z0-9_-]"
                )
            }
            // A signed request names no app; only the secret that signed it identifies the app.
            if let other = secrets.values.first(where: { $0.secret == secret.secret && $0.appID != appID }) {
                throw line.error("the apps \(other.appID) and \(appID) have one secret: each app has its own")
            }
            guard secrets.updateValue(secret, forKey: appID) == nil else {
                throw line.error("the app \(appID) stands in the file twice")
            }
        }
        guard !secrets.isEmpty else { throw ConfigurationError(place: place, reason: "the file has no app's secret") }
        self.secrets = secrets
        self.appIDs = appIDs
    }

    package var all: [AppSecret] { appIDs.compactMap { secrets[$0] } }

    package var appWithoutSecret: String? { appIDs.first { secrets[$0] == nil } }

    package var signers: [(appID: String, secret: String)] { all.map { ($0.appID, $0.secret) } }

    package enum Missing: Error, Equatable, Sendable {
        /// Several apps are configured, and none was named.
        case unnamed
        case unknown
        case noSecret
    }

    /// The secret of the app with this id; without an id, that of the only app.
    package func secret(of appID: [UInt8]?) throws(Missing) -> AppSecret {
        guard appID != nil || appIDs.count == 1 else { throw .unnamed }
        guard let known = appIDs.first(where: { $0.utf8.elementsEqual(appID ?? Array($0.utf8)) }) else {
            throw .unknown
        }
        guard let secret = secrets[known] else { throw .noSecret }
        return secret
    }
}
