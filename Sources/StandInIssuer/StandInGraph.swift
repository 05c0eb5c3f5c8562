internal import JOSE
internal import OpenSSL
internal import Sockets

/// Graph as the stand-in plays it: the permissions of the people whose tokens it minted, and the uninstall endpoint.
///
/// What Facebook documents is played as documented; where it says nothing, as people saw it: a permission that was
/// revoked is `declined` from then on, and a person who was logged out has no permissions.
package final class StandInGraph: Sendable {
    /// An answer: a status, and JSON.
    struct Answer {
        let status: UInt16
        let body: String

        static let done = Answer(status: 200, body: "{\"success\":true}")

        static func error(_ code: Int, subcode: Int? = nil, _ message: String) -> Answer {
            let more = subcode.map { ",\"error_subcode\":\($0)" } ?? ""
            return Answer(
                status: 400,
                body: "{\"error\":{\"message\":\(FacebookJSON.string(message)),\"type\":\"OAuthException\","
                    + "\"code\":\(code)\(more),\"fbtrace_id\":\"StandIn\"}}"
            )
        }
    }

    private struct Person: Hashable {
        let appID: String
        let userID: String
    }

    /// The secret of every app here.
    package let appSecret: String
    let accessTokens = StandInAccessTokens()
    private let people = Locked(NewestEntries<Person, [String: String]>())

    package init(appSecret: String) { self.appSecret = appSecret }

    /// Mints an access token and remembers its login; the answer of `POST /access-tokens`.
    package func mintAccessToken(
        _ request: [UInt8],
        fate: String,
        appID: String,
        now: Int64
    ) throws(ClaimsTemplateError) -> String {
        guard let known = StandInAccessTokens.Fate(rawValue: fate) else {
            throw ClaimsTemplateError(description: "the query is nothing, 'revoked' or 'dead'")
        }
        let made = try accessTokens.mint(request, fate: known, appID: appID, now: now)
        let granted = Dictionary(uniqueKeysWithValues: Set(made.scopes).map { ($0, "granted") })
        grant(granted, to: Person(appID: made.appID, userID: made.userID))
        return made.token
    }

    /// Remembers a login: what its token shows was granted, and the rest as said.
    ///
    /// - Parameter statuses: permissions with another status than `granted`.
    func recordLogin(payload: [UInt8], statuses: [String: String]) {
        var document = JSONDocument()
        guard (try? document.parse(payload.span)) != nil, let person = Self.person(document, payload) else { return }
        var permissions = ["openid": "granted", "public_profile": "granted"]
        for name in Self.claims where document.member(name, of: document.root, in: payload.span) != nil {
            permissions["\(name)"] = "granted"
        }
        for (name, status) in statuses { permissions[name] = status }
        grant(permissions, to: person)
    }

    private func grant(_ permissions: [String: String], to person: Person) {
        people.withLock { $0[person] = ($0[person] ?? [:]).merging(permissions) { $1 } }
    }

    /// The claims that a refreshed token lacks, since their permission is not granted any more; nil where the person is
    /// not logged in.
    func revokedClaims(ofLogin payload: [UInt8]) -> Set<String>? {
        var document = JSONDocument()
        guard (try? document.parse(payload.span)) != nil, let person = Self.person(document, payload),
            let permissions = people.withLock({ $0[person] }), !permissions.isEmpty
        else { return nil }
        return Set(permissions.filter { $0.value != "granted" }.keys)
    }

    private static func person(_ document: borrowing JSONDocument, _ payload: [UInt8]) -> Person? {
        guard let audience = document.member("aud", of: document.root, in: payload.span), document.isString(audience),
            let subject = document.member("sub", of: document.root, in: payload.span), document.isString(subject)
        else { return nil }
        return Person(
            appID: document.string(audience, in: payload.span),
            userID: document.string(subject, in: payload.span)
        )
    }

    /// The claims that are named as the permission which brings them.
    private static let claims: [StaticString] = [
        "email", "user_friends", "user_birthday", "user_age_range", "user_gender", "user_hometown", "user_link",
        "user_location",
    ]

    /// The app that a request proves to be, by `Authorization: Bearer APP|SECRET` and `appsecret_proof`.
    func app(authorization: String?, proof: String?) -> Result<String, Refusal> {
        guard let authorization, authorization.hasPrefix("Bearer ") else {
            return .failure(Refusal(.error(2500, "An active access token must be used to query information.")))
        }
        let token = String(authorization.dropFirst("Bearer ".count))
        guard let bar = token.firstIndex(of: "|"), token[token.index(after: bar)...] == appSecret else {
            return .failure(Refusal(.error(190, "Invalid OAuth access token signature.")))
        }
        let key = Array(appSecret.utf8)
        let message = Array(token.utf8)
        let code = try? HMACSHA256.authenticationCode(for: message.span, key: key.span).hexadecimal
        guard let code, code == proof else {
            return .failure(Refusal(.error(100, "Invalid appsecret_proof provided in the API argument")))
        }
        return .success(String(token[..<bar]))
    }

    /// Why a request is not answered as it wishes.
    struct Refusal: Error {
        let answer: Answer

        init(_ answer: Answer) { self.answer = answer }
    }

    /// `GET /{user-id}/permissions`.
    func permissions(of userID: String, appID: String) -> Answer {
        let known = people.withLock { $0[Person(appID: appID, userID: userID)] }
        guard let known else { return Self.unknownUser }
        let members = known.sorted { $0.key < $1.key }.map { name, status in
            "{\"permission\":\"\(name)\",\"status\":\"\(status)\"}"
        }
        return Answer(status: 200, body: "{\"data\":[\(members.joined(separator: ","))]}")
    }

    /// `DELETE /{user-id}/permissions/{permission}`, or without a permission of them all.
    func revoke(_ permission: String?, of userID: String, appID: String) -> Answer {
        people.withLock { people in
            let person = Person(appID: appID, userID: userID)
            guard people[person] != nil else { return Self.unknownUser }
            guard let permission else {
                people[person] = [:]
                accessTokens.revokeAll(of: userID, appID: appID)
                return .done
            }
            accessTokens.drop(permission, of: userID, appID: appID)
            if people[person]?[permission] == "granted" { people[person]?[permission] = "declined" }
            return .done
        }
    }

    private static let unknownUser = Answer.error(
        100,
        subcode: 33,
        "Unsupported request. Object does not exist, or cannot be loaded due to missing permissions."
    )

    /// `POST /platform/uninstall/`: the token must be one of ours, for the app, and not expired.
    func uninstall(form: String, keys: IssuerKeyRing, now: Int64) -> Answer {
        let parameters = FormText.parameters(of: form)
        guard let payload = keys.payload(of: Array((parameters["id_token"] ?? "").utf8)) else {
            return .error(190, "Bad signature")
        }
        var document = JSONDocument()
        guard (try? document.parse(payload.span)) != nil,
            let audience = document.member("aud", of: document.root, in: payload.span),
            let expiry = document.member("exp", of: document.root, in: payload.span),
            document.string(audience, in: payload.span) == parameters["app_id"]
        else { return .error(190, "The token is for another app.") }
        guard let end = document.integer(expiry, in: payload.span), end > now else {
            return .error(190, subcode: 463, "The token has expired.")
        }
        return .done
    }
}

/// A dictionary that keeps its newest entries: beyond ``limit`` the oldest goes, so that a stand-in that mints for days
/// holds no more.
struct NewestEntries<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// 20,000: more people and tokens than a test uses at a time, in some 20 MB.
    static var limit: Int { 20_000 }

    private(set) var values: [Key: Value] = [:]
    /// The keys in the order in which they came; at the limit the next one takes the place of the oldest.
    private var order: [Key] = []
    private var oldest = 0

    /// The value of a key; to set nil changes nothing.
    subscript(key: Key) -> Value? {
        get { values[key] }
        set {
            guard let newValue, values.updateValue(newValue, forKey: key) == nil else { return }
            guard order.count == Self.limit else { return order.append(key) }
            values[order[oldest]] = nil
            order[oldest] = key
            oldest = (oldest + 1) % Self.limit
        }
    }
}
