internal import LLBytes
internal import LLCrypto

/// An app's id and secret; the app authenticates to Graph with them. The secret is in no description.
package struct AppSecret: Sendable, Equatable {
    /// The length of a secret, in bytes. Facebook's are 32 hexadecimal digits.
    package static let byteRange = 16...128

    package let appID: String
    private let secret: String

    /// - Returns: Nil unless the secret has ``byteRange`` bytes of `[A-Za-z0-9_-]`.
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

extension AppSecret: CustomStringConvertible, CustomReflectable {
    package var description: String { "AppSecret(\(appID), redacted)" }
    package var customMirror: Mirror { Mirror(self, children: ["appID": appID]) }
}
