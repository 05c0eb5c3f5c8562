internal import Bytes
internal import JOSE
internal import OpenSSL
internal import Sockets

/// The access tokens that the stand-in's Graph knows, and what it says about them: `debug_token` and `/me`.
///
/// What Facebook documents is played as documented, with its own words in the errors.
final class StandInAccessTokens: Sendable {
    /// Seconds that a token lives where its request does not say: 60 days, as Android's do.
    static let lifetimeSeconds: Int64 = 5_184_000

    /// How a token was asked for, besides its members.
    enum Fate: String, Sendable {
        case good = ""
        /// The person has removed the app since.
        case revoked
        /// The placeholder that SDK 17 hands out where tracking is denied: no Graph can read it.
        case dead
    }

    /// One token, with what `/me` says of its person: members of JSON by the name of their field.
    private struct Token: Sendable {
        let appID: String
        let userID: String
        let type: String
        let issuedAt: Int64
        let expiresAt: Int64
        var scopes: [String]
        let fields: [String: String]
        var isRevoked: Bool
    }

    /// The fields of `/me` with the permission that each needs.
    private static let permissions = [
        "name": "public_profile", "first_name": "public_profile", "middle_name": "public_profile",
        "last_name": "public_profile", "picture": "public_profile", "email": "email", "friends": "user_friends",
        "birthday": "user_birthday", "age_range": "user_age_range", "hometown": "user_hometown",
        "location": "user_location", "gender": "user_gender", "link": "user_link",
    ]
    /// What a request may say of the token itself.
    private static let ownMembers: Set<String> = ["user", "app", "scopes", "type", "expiry", "issued_at"]

    private let tokens = Locked(NewestEntries<String, Token>())

    /// Mints a token.
    /// - Parameters:
    ///   - request: a JSON object: `user`, `app`, `scopes`, `type`, `expiry` (0: never), `issued_at`, and fields of `/me`;
    ///     all optional. Nothing at all stands for an empty one.
    ///   - appID: the app where none is given.
    /// - Returns: the token with its person, app and scopes, for the permissions.
    func mint(
        _ request: [UInt8],
        fate: Fate,
        appID: String,
        now: Int64
    ) throws(ClaimsTemplateError) -> (token: String, userID: String, appID: String, scopes: [String]) {
        let text = request.isEmpty ? Array("{}".utf8) : request
        var document = JSONDocument()
        guard (try? document.parse(text.span)) != nil, document.kind(document.root) == .object else {
            throw ClaimsTemplateError(description: "the access token must be described by a JSON object")
        }
        var fields: [String: String] = [:]
        for name in document.children(of: document.root) {
            let member = document.string(name, in: text.span)
            guard Self.ownMembers.contains(member) || Self.permissions[member] != nil else {
                throw ClaimsTemplateError(description: "'\(member)' is neither a member of a token nor a field of /me")
            }
            let value = name + 1
            fields[member] =
                document.isString(value)
                ? FacebookJSON.string(document.string(value, in: text.span))
                : String(decoding: text[document.range(value)], as: UTF8.self)
        }
        func string(_ name: StaticString) -> String? {
            document.member(name, of: document.root, in: text.span).map { document.string($0, in: text.span) }
        }
        func number(_ name: StaticString) -> Int64? {
            document.member(name, of: document.root, in: text.span).flatMap { document.integer($0, in: text.span) }
        }
        var scopes = ["public_profile", "email"]
        if let list = document.member("scopes", of: document.root, in: text.span) {
            scopes = []
            guard document.kind(list) == .array else {
                throw ClaimsTemplateError(description: "'scopes' must be an array")
            }
            for element in document.children(of: list) {
                scopes.append(document.string(element, in: text.span))
            }
        }
        guard let secret = try? RandomBytes.make(count: 48) else {
            throw ClaimsTemplateError(description: "no random bytes")
        }
        let token = "EAA" + Hexadecimal.encode(secret)
        let userID = string("user") ?? "2954873201847263"
        let app = string("app") ?? appID
        let issuedAt = number("issued_at") ?? now
        let made = Token(
            appID: app,
            userID: userID,
            type: string("type") ?? "USER",
            issuedAt: issuedAt,
            expiresAt: number("expiry") ?? issuedAt + Self.lifetimeSeconds,
            scopes: scopes,
            fields: fields.filter { Self.permissions[$0.key] != nil },
            isRevoked: fate == .revoked
        )
        if fate != .dead { tokens.withLock { $0[token] = made } }
        return (token, userID, app, scopes)
    }

    /// The person has removed the app, or has logged out of it.
    func revokeAll(of userID: String, appID: String) {
        tokens.withLock { tokens in
            for (text, token) in tokens.values where token.userID == userID && token.appID == appID {
                tokens[text]?.isRevoked = true
            }
        }
    }

    /// The person has taken one permission back.
    func drop(_ permission: String, of userID: String, appID: String) {
        tokens.withLock { tokens in
            for (text, token) in tokens.values where token.userID == userID && token.appID == appID {
                tokens[text]?.scopes.removeAll { $0 == permission }
            }
        }
    }

    /// `GET /debug_token`, asked by an app.
    func debug(_ input: String?, asking appID: String, now: Int64) -> StandInGraph.Answer {
        guard let input else { return .error(100, "The parameter input_token is required") }
        guard let token = tokens.withLock({ $0[input] }) else {
            return Self.invalid("Invalid OAuth access token - Cannot parse access token", subcode: nil, of: nil)
        }
        guard token.appID == appID else {
            return .error(100, "(#100) The App_id in the input_token did not match the Viewing App")
        }
        if token.isRevoked {
            return Self.invalid("The user has not authorized application \(appID).", subcode: 458, of: token)
        }
        guard token.expiresAt == 0 || token.expiresAt > now else {
            return Self.invalid("Error validating access token: Session has expired.", subcode: 463, of: token)
        }
        return Self.data(token, isValid: true, error: nil)
    }

    private static func invalid(_ message: String, subcode: Int?, of token: Token?) -> StandInGraph.Answer {
        let more = subcode.map { ",\"subcode\":\($0)" } ?? ""
        let error = "{\"code\":190,\"message\":\(FacebookJSON.string(message))\(more)}"
        return data(token, isValid: false, error: error)
    }

    private static func data(_ token: Token?, isValid: Bool, error: String?) -> StandInGraph.Answer {
        var members: [(name: String, json: String)] = []
        if let token {
            members += [
                ("app_id", FacebookJSON.string(token.appID)), ("type", FacebookJSON.string(token.type)),
                ("application", "\"Stand-in\""),
                ("data_access_expires_at", "\(token.issuedAt + 7_776_000)"), ("expires_at", "\(token.expiresAt)"),
            ]
        }
        if let error { members.append(("error", error)) }
        members.append(("is_valid", isValid ? "true" : "false"))
        if let token {
            members += [("issued_at", "\(token.issuedAt)"), ("user_id", FacebookJSON.string(token.userID))]
        }
        let scopes = (token?.scopes ?? []).map(FacebookJSON.string).joined(separator: ",")
        members.append(("scopes", "[\(scopes)]"))
        let data = FacebookJSON.object(members)
        return StandInGraph.Answer(status: 200, body: "{\"data\":\(data)}")
    }

    /// `GET /me`: the fields asked for whose permission the token has.
    /// - Parameter proof: what `appsecret_proof` says.
    func me(_ text: String, fields: String?, proof: String?, secret: String, now: Int64) -> StandInGraph.Answer {
        guard let token = tokens.withLock({ $0[text] }) else {
            return .error(190, "Invalid OAuth access token - Cannot parse access token")
        }
        guard !token.isRevoked else {
            return .error(190, subcode: 458, "The user has not authorized application \(token.appID).")
        }
        guard token.expiresAt == 0 || token.expiresAt > now else {
            return .error(190, subcode: 463, "Error validating access token: Session has expired.")
        }
        let key = Array(secret.utf8)
        let message = Array(text.utf8)
        let code = try? HMACSHA256.authenticationCode(for: message.span, key: key.span).hexadecimal
        guard let code, code == proof else {
            return .error(100, "Invalid appsecret_proof provided in the API argument")
        }
        var members: [(name: String, json: String)] = []
        for field in (fields ?? "id,name").split(separator: ",") {
            // `friends.limit(2000){id}`
            let name = String(field.prefix { $0 != "." && $0 != "{" })
            guard let permission = Self.permissions[name], token.scopes.contains(permission),
                let json = token.fields[name]
            else { continue }
            members.append((name, json))
        }
        members.append(("id", FacebookJSON.string(token.userID)))
        return StandInGraph.Answer(status: 200, body: FacebookJSON.object(members))
    }
}
