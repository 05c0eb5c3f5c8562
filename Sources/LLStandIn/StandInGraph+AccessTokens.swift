internal import LLHTTP
internal import LLJOSE

/// The access tokens that Graph knows, and its answers about them, with Facebook's own words in the errors.
extension StandInGraph {
    struct Token: Sendable {
        let person: Person
        fileprivate let issuedAt: Int64
        fileprivate let expiresAt: Int64
        var scopes: [String]
        /// The members of the token's request: texts, and the person's fields in `/me` as JSON. The `auth_nonce` is that
        /// of the web dialog that the token came from.
        fileprivate let values: [String: String]
        var isRevoked: Bool

        /// The reason why Graph no longer accepts the token: the error's subcode, and its sentence.
        fileprivate func fault(at now: Int64) -> (subcode: Int?, message: String)? {
            if isRevoked { return (458, "The user has not authorized application \(person.appID).") }
            guard expiresAt == 0 || expiresAt > now else {
                return (463, "Error validating access token: Session has expired.")
            }
            return nil
        }
    }

    private static let unreadable = "Invalid OAuth access token - Cannot parse access token"
    /// The fields of `/me`, each with the permission it needs.
    static let permissions = [
        "name": "public_profile", "first_name": "public_profile", "middle_name": "public_profile",
        "last_name": "public_profile", "picture": "public_profile", "email": "email", "friends": "user_friends",
        "birthday": "user_birthday", "age_range": "user_age_range", "hometown": "user_hometown",
        "location": "user_location", "gender": "user_gender", "link": "user_link",
    ]
    private static let ownMembers: Set = ["user", "app", "scopes", "type", "expiry", "issued_at", "auth_nonce"]

    /// Mints the access token of `POST /access-tokens`, and remembers its login. The members of the request, and the
    /// request itself, may be left out.
    /// - Parameter fate: Empty; or `revoked`, if the person has removed the app since; or `dead`, the placeholder that
    ///   SDK 17 returns if tracking is denied: Graph cannot read it.
    func mintAccessToken(_ request: [UInt8], fate: String, appID: String, now: Int64) throws(StandInRefusal) -> String {
        guard ["", "revoked", "dead"].contains(fate) else {
            throw StandInRefusal("the query is nothing, 'revoked' or 'dead'")
        }
        guard let object = JSONObject(request.isEmpty ? Array("{}".utf8) : request) else {
            throw StandInRefusal("the access token must be described by a JSON object")
        }
        var values: [String: String] = [:]
        for (name, value) in object.members {
            let isField = Self.permissions[name] != nil
            guard isField || Self.ownMembers.contains(name) else {
                throw StandInRefusal("'\(name)' is neither a member of a token nor a field of /me")
            }
            values[name] = isField ? object.respelled(value) : object.string(value)
        }
        let list = object.member("scopes")
        guard list.map({ object.document.kind($0) == .array }) != false else {
            throw StandInRefusal("'scopes' must be an array")
        }
        let scopes = list.map { object.strings($0) } ?? ["public_profile", "email"]
        let issuedAt = object.integer("issued_at") ?? now
        let token = Token(
            person: Person(appID: values["app"] ?? appID, userID: values["user"] ?? CatalogueWorkshop.janesID),
            issuedAt: issuedAt,
            // 60 days is the lifetime of Android's tokens. The addition wraps, so that no time in a request can trap.
            expiresAt: object.integer("expiry") ?? issuedAt &+ 5_184_000,
            scopes: scopes,
            values: values,
            isRevoked: fate == "revoked"
        )
        let text = "EAA" + .random(96)
        if fate != "dead" { tokens.withLock { Self.keep(token, as: text, in: &$0) } }
        grant(scopes, to: token.person)
        return text
    }

    /// `GET /debug_token`, called by an app.
    func debug(_ input: String?, asking appID: String, now: Int64) -> StandInAnswer {
        guard let input else { return .error(100, "The parameter input_token is required") }
        let token = tokens.withLock { $0[input] }
        let fault = token.map { $0.fault(at: now) } ?? (nil, Self.unreadable)
        var members: [FacebookJSON.Member] = []
        if let token {
            guard token.person.appID == appID else {
                return .error(100, "(#100) The App_id in the input_token did not match the Viewing App")
            }
            members += [
                ("app_id", FacebookJSON.string(token.person.appID)),
                ("type", FacebookJSON.string(token.values["type"] ?? "USER")),
                ("application", "\"Stand-in\""),
                ("data_access_expires_at", "\(token.issuedAt &+ 7_776_000)"), ("expires_at", "\(token.expiresAt)"),
            ]
        }
        if let fault {
            let more = fault.subcode.map { ",\"subcode\":\($0)" } ?? ""
            members.append(("error", "{\"code\":190,\"message\":\(FacebookJSON.string(fault.message))\(more)}"))
        }
        members.append(("is_valid", fault == nil ? "true" : "false"))
        if let token {
            members += [("issued_at", "\(token.issuedAt)"), ("user_id", FacebookJSON.string(token.person.userID))]
        }
        members.append(("scopes", FacebookJSON.list(token?.scopes ?? [])))
        return .object([("data", FacebookJSON.object(members))])
    }

    private func token(_ text: String, at now: Int64) throws(StandInAnswer) -> Token {
        guard let token = tokens.withLock({ $0[text] }) else { throw .error(190, Self.unreadable) }
        if let fault = token.fault(at: now) { throw .error(190, subcode: fault.subcode, fault.message) }
        return token
    }

    /// `GET /oauth/access_token_info`: a flat object, with a nonce if the login had one.
    func accessTokenInfo(_ request: StandInRequest) throws(StandInAnswer) -> StandInAnswer {
        let text = request.query["access_token"] ?? ""
        let token = try token(text, at: request.now)
        guard request.query["client_id"] == token.person.appID else {
            throw .error(100, "client_id is not the token's app")
        }
        var members: [FacebookJSON.Member] = [
            ("access_token", FacebookJSON.string(text)), ("token_type", "\"bearer\""),
            ("expires_in", "\(token.expiresAt == 0 ? 0 : token.expiresAt &- request.now)"),
        ]
        if let nonce = token.values["auth_nonce"] {
            members += [("auth_type", "\"reauthenticate\""), ("auth_nonce", FacebookJSON.string(nonce))]
        }
        return .object(members)
    }

    /// `GET /me`: the requested fields that the token has the permission for.
    func me(_ request: StandInRequest) throws(StandInAnswer) -> StandInAnswer {
        let token = try token(request.bearer, at: request.now)
        try checkProof(request, for: request.bearer)
        var members: [FacebookJSON.Member] = []
        for field in (request.query["fields"] ?? "id,name").split(separator: ",") {
            // A field may have modifiers, such as `friends.limit(2000){id}`.
            let name = String(field.prefix { $0 != "." && $0 != "{" })
            guard let permission = Self.permissions[name], token.scopes.contains(permission),
                let json = token.values[name]
            else { continue }
            members.append((name, json))
        }
        return .object(members + [("id", FacebookJSON.string(token.person.userID))])
    }
}
