internal import Bytes
internal import Graph
internal import JOSE
internal import LimitedLogin
internal import LoginStores

/// The body of a `POST /verify` that has an access token and no id token.
struct AccessTokenRequest {
    let token: [UInt8]
    /// The person the token must belong to; nil for anybody.
    private(set) var subject: String?
    /// The app the token must be for; nil for any configured one.
    private(set) var appID: [UInt8]?
    /// The permissions the caller needs, each once; nil where it did not ask.
    private(set) var permissions: [String]?

    /// - Parameter document: the parsed body, an object.
    init(_ document: borrowing JSONDocument, _ body: Span<UInt8>) throws(Problem) {
        var token: [UInt8] = []
        for name in document.children(of: document.root) {
            let value = name + 1
            switch document.string(name, in: body) {
            case "access_token": try document.appendText("access_token", value, in: body, to: &token)
            case "subject":
                var text: [UInt8] = []
                try document.appendText("subject", value, in: body, to: &text)
                subject = String(decoding: text, as: UTF8.self)
            case "app_id":
                try document.requireString("app_id", value)
                appID = Array(document.string(value, in: body).utf8)
            case "permissions":
                var names: [String] = []
                try document.forEachPermission(value) { element throws(Problem) in
                    let name = document.string(element, in: body)
                    guard AccessTokenInspection.isPermission(name) else {
                        throw Problem(.invalidPermission, "A permission's name is 1 to 64 of [a-z_.].")
                    }
                    if !names.contains(name) { names.append(name) }
                }
                permissions = names
            case "nonce", "raw_nonce", "issued_nonce", "key_thumbprint":
                throw Problem(
                    .invalidRequest,
                    "An access token carries no nonce and no device's key, so neither can be given with one; subject can."
                )
            default:
                throw Problem(
                    .invalidRequest,
                    "The body has an unknown member; beside access_token, known are app_id, subject and permissions."
                )
            }
        }
        self.token = token
    }

    /// What Graph is asked, where the settings and the token's shape allow it.
    /// - Parameter apps: those whose tokens are accepted; nil where none are.
    func question(_ apps: [AppSecret]?) throws(Problem) -> AccessTokenQuestion {
        let shape = AccessTokenInspection.shape(token.span)
        guard shape != .jwt else {
            throw Problem(.invalidRequest, "The member access_token holds a JWT: send it as id_token.")
        }
        guard let apps else {
            throw Problem(
                .accessTokenNotAllowed,
                "Access tokens are not accepted here; send an id token, or see LIMITED_LOGIN_ACCESS_TOKENS."
            )
        }
        guard shape == .accessToken else {
            throw Problem(.accessTokenInvalid, "An access token has 20 to 4,096 visible ASCII characters.")
        }
        var asked = apps
        if let appID {
            asked = apps.filter { $0.appID.utf8.elementsEqual(appID) }
            guard !asked.isEmpty else { throw Problem(.unknownApp, "The app_id is not a configured app's.") }
        }
        return AccessTokenQuestion(token: GraphAccessToken(token), apps: asked, subject: subject)
    }
}

extension ReplayQuestion {
    /// How long a token that does not expire is remembered, in seconds: ten years, the longest that the store in Redis
    /// keeps anything.
    private static let longestSeconds: Double = 315_360_000
    /// Tokens live for months, so what is remembered of them is forgotten by the hour.
    private static let stepMilliseconds: UInt64 = 3_600_000

    /// What an access token uses up: itself, by its SHA-256 within its app; nil where OpenSSL fails.
    init?(_ token: [UInt8], _ inspection: AccessTokenInspection, now: NumericDate) {
        let present = now.secondsSince1970
        let end = min(inspection.expiresAt?.secondsSince1970 ?? .infinity, present + Self.longestSeconds)
        let step = Self.stepMilliseconds
        let entry = ReplayEntry(
            .token,
            scope: Array(inspection.appID.utf8).span,
            token.span,
            bornAt: UInt64(inspection.earliestIssue(now: now).secondsSince1970 * 1_000),
            expiresAt: (UInt64(end * 1_000) / step + 1) * step
        )
        guard let entry else { return nil }
        self.init([entry])
    }
}
