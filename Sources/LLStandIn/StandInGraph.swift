internal import LLBytes
package import LLHTTP
internal import LLJOSE

/// An answer of the stand-in; thrown as an error if the request fails.
package struct StandInAnswer: Error {
    package typealias Field = (name: StaticString, value: String)

    var status: UInt16 = 200
    var fields: [Field] = [("Content-Type", "application/json; charset=UTF-8")]
    var body = ""
    /// The moment until which to wait for the answer, instead of sending this one.
    var pause: MonotonicInstant?

    static let done = StandInAnswer(body: "{\"success\":true}")

    package static func object(_ members: [FacebookJSON.Member]) -> StandInAnswer {
        StandInAnswer(body: FacebookJSON.object(members))
    }

    static func error(_ code: Int, subcode: Int? = nil, _ message: String) -> StandInAnswer {
        let more = subcode.map { ",\"error_subcode\":\($0)" } ?? ""
        return StandInAnswer(
            status: 400,
            body: "{\"error\":{\"message\":\(FacebookJSON.string(message)),\"type\":\"OAuthException\","
                + "\"code\":\(code)\(more),\"fbtrace_id\":\"StandIn\"}}"
        )
    }

    /// A sentence of the stand-in itself, or no content.
    package static func text(_ status: UInt16, _ text: String?, _ more: [Field] = []) -> StandInAnswer {
        let fields = more + [("Content-Type", "text/plain; charset=utf-8")]
        return StandInAnswer(status: status, fields: fields, body: text.map { "\($0)\n" } ?? "")
    }

    package func send(in exchange: inout HTTPExchange) -> RequestDecision {
        if let pause { return .park(until: pause) }
        exchange.response.status = status
        for field in fields { exchange.response.addField(field.name, field.value) }
        exchange.response.body.append(contentsOf: body.utf8)
        return .respond
    }
}

/// The stand-in's Graph: the permissions of people with a token of the stand-in, and the uninstall endpoint.
///
/// It behaves as Facebook documents, and as observed if there is no documentation: a revoked permission is `declined`
/// from then on, and a logged-out person has no permissions.
final class StandInGraph: Sendable {
    struct Person: Hashable {
        let appID: String
        let userID: String
    }

    let appSecret: String
    let tokens = Locked([String: Token]())
    let codes = Locked([String: DialogCode]())
    private let people = Locked([Person: [String: String]]())

    init(appSecret: String) { self.appSecret = appSecret }

    /// Keeps an entry of a table. Beyond 20,000 another one goes, so that a stand-in can make logins for ever.
    static func keep<Key, Value>(_ value: Value, as key: Key, in table: inout [Key: Value]) {
        if table.count >= 20_000, let other = table.keys.first { table[other] = nil }
        table[key] = value
    }

    /// Records a login: the permissions that its token shows are granted, and the others have the given statuses.
    func recordLogin(payload: [UInt8], statuses: [String: String]) {
        guard let claims = JSONObject(payload), let person = Self.person(claims) else { return }
        // A claim that needs a permission has its name.
        let shown = claims.members.map(\.name).filter(Self.permissions.values.contains) + ["openid", "public_profile"]
        grant(shown, statuses, to: person)
    }

    func grant(_ permissions: [String], _ others: [String: String] = [:], to person: Person) {
        let granted = Dictionary(permissions.map { ($0, "granted") }) { $1 }.merging(others) { $1 }
        people.withLock { Self.keep(($0[person] ?? [:]).merging(granted) { $1 }, as: person, in: &$0) }
    }

    /// The claims that a refreshed token lacks: their permission is no longer granted. Nil if nobody is logged in.
    func revokedClaims(ofLogin payload: [UInt8]) -> Set<String>? {
        guard let claims = JSONObject(payload), let person = Self.person(claims),
            let permissions = people.withLock({ $0[person] }), !permissions.isEmpty
        else { return nil }
        return Set(permissions.filter { $0.value != "granted" }.keys)
    }

    private static func person(_ claims: borrowing JSONObject) -> Person? {
        guard let audience = claims.string("aud"), let subject = claims.string("sub") else { return nil }
        return Person(appID: audience, userID: subject)
    }

    /// The app that a request authenticates as, by `Authorization: Bearer APP|SECRET` and `appsecret_proof`.
    func app(_ request: StandInRequest) throws(StandInAnswer) -> String {
        guard request.fields["authorization"]?.hasPrefix("Bearer ") == true else {
            throw .error(2500, "An active access token must be used to query information.")
        }
        let token = request.bearer
        guard let bar = token.firstIndex(of: "|"), token[token.index(after: bar)...] == appSecret else {
            throw .error(190, "Invalid OAuth access token signature.")
        }
        try checkProof(request, for: token)
        return String(token[..<bar])
    }

    func checkProof(_ request: StandInRequest, for token: String) throws(StandInAnswer) {
        let message = Array(token.utf8)
        let code = try? HMACSHA256.authenticationCode(for: message.span, key: Array(appSecret.utf8).span).hexadecimal
        guard let code, code == request.query["appsecret_proof"] else {
            throw .error(100, "Invalid appsecret_proof provided in the API argument")
        }
    }

    /// The answer at `/v26.0/{user-id}/permissions/{permission}`; nil for any other path.
    func answerAboutPerson(_ request: StandInRequest) throws(StandInAnswer) -> StandInAnswer? {
        let parts = request.parts
        guard (3...4).contains(parts.count), parts[0].first == "v", parts[2] == "permissions", !parts[1].isEmpty,
            parts[1].utf8.allSatisfy({ ASCII.digit($0) != nil })
        else { return nil }
        let person = Person(appID: try app(request), userID: parts[1])
        switch request.method {
        case .get where parts.count == 3:
            guard let known = people.withLock({ $0[person] }) else { return Self.unknownUser }
            let members = known.sorted { $0.key < $1.key }.map { name, status in
                "{\"permission\":\"\(name)\",\"status\":\"\(status)\"}"
            }
            return .object([("data", "[\(members.joined(separator: ","))]")])
        case .delete: return revoke(parts.count == 4 ? parts[3] : nil, of: person)
        default: return .error(100, "Unsupported method.")
        }
    }

    /// `DELETE /{user-id}/permissions/{permission}`; without a permission it revokes all of them.
    func revoke(_ permission: String?, of person: Person) -> StandInAnswer {
        people.withLock { people in
            guard let known = people[person] else { return Self.unknownUser }
            tokens.withLock { tokens in
                for (text, token) in tokens where token.person == person {
                    if permission == nil { tokens[text]?.isRevoked = true }
                    tokens[text]?.scopes.removeAll { $0 == permission }
                }
            }
            if let permission {
                if known[permission] == "granted" { people[person]?[permission] = "declined" }
            } else {
                people[person] = [:]
            }
            return .done
        }
    }

    private static let unknownUser = StandInAnswer.error(
        100,
        subcode: 33,
        "Unsupported request. Object does not exist, or cannot be loaded due to missing permissions."
    )

    /// `POST /platform/uninstall/`: the token must be one of ours, for the app, and not expired.
    func uninstall(_ request: StandInRequest, keys: IssuerKeyRing) -> StandInAnswer {
        let parameters = FormParameters(request.body.span, request.body.indices)?.texts ?? [:]
        guard let payload = keys.payload(of: Array((parameters["id_token"] ?? "").utf8)) else {
            return .error(190, "Bad signature")
        }
        guard let claims = JSONObject(payload), let audience = claims.member("aud"),
            claims.string(audience) == parameters["app_id"], claims.member("exp") != nil
        else { return .error(190, "The token is for another app.") }
        guard let end = claims.integer("exp"), end > request.now else {
            return .error(190, subcode: 463, "The token has expired.")
        }
        return .done
    }
}

package struct StandInRequest {
    package let method: HTTPMethod
    package let path: String
    package let queryText: String
    /// The parameters of the query by name; none if it is malformed.
    let query: [String: String]
    /// The fields of the head by their name in lower case.
    package let fields: [String: String]
    package let body: [UInt8]
    let context: RequestContext
    /// Seconds since 1970.
    package let now: Int64

    package init(_ exchange: borrowing HTTPExchange, _ bytes: Span<UInt8>, now: Int64) {
        method = exchange.head.method
        path = bytes.text(exchange.head.path)
        queryText = exchange.head.query.map { bytes.text($0) } ?? ""
        query = exchange.head.query.flatMap { FormParameters(bytes, $0)?.texts } ?? [:]
        let pairs = exchange.head.fields.map { (bytes.text($0.name).lowercased(), bytes.text($0.value)) }
        fields = Dictionary(pairs) { first, _ in first }
        body = exchange.body.map { bytes[$0] }
        context = exchange.context
        self.now = now
    }

    var bearer: String { String((fields["authorization"] ?? "").dropFirst("Bearer ".count)) }

    var name: String { path.hasSuffix("/") ? String(path.dropLast()) : path }

    var parts: [String] { path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init) }

    /// The status of permissions that a token does not show: `?declined=user_friends,email`, `?expired=…`.
    var statuses: [String: String] {
        var statuses: [String: String] = [:]
        for status in ["declined", "expired"] {
            let names = (query[status] ?? "").split(separator: ",").map(String.init)
            for name in names where PermissionName.isValid(name) { statuses[name] = status }
        }
        return statuses
    }
}
