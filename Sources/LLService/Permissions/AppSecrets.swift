/// The secrets of the configured apps; the service authenticates to Graph with them. They are never printed.
///
/// The file has a line for each app: its id, white space, its secret.
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
            if let other = secrets.values.first(where: { $0.signingKey == secret.signingKey && $0.appID != appID }) {
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

    package var signers: [(appID: String, secret: String)] { all.map { ($0.appID, $0.signingKey) } }

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
