internal import LLBytes
internal import LLHTTP
internal import LLJOSE

/// The stand-in's Graph: the permissions of people with a token of the stand-in, and the uninstall endpoint.
///
/// It behaves as Facebook documents, and as observed if there is no documentation: a revoked permission is `declined`
/// from then on, and a logged-out person has no permissions.
final class StandInGraph: Sendable {
    /// An answer; thrown as an error if the request fails.
    struct Answer: Error {
        var status: UInt16 = 200
        /// The target of a redirect.
        var location: String?
        /// The JSON text.
        var body = ""

        static let done = Answer(body: "{\"success\":true}")

        static func error(_ code: Int, subcode: Int? = nil, _ message: String) -> Answer {
            let more = subcode.map { ",\"error_subcode\":\($0)" } ?? ""
            return Answer(
                status: 400,
                body: "{\"error\":{\"message\":\(FacebookJSON.string(message)),\"type\":\"OAuthException\","
                    + "\"code\":\(code)\(more),\"fbtrace_id\":\"StandIn\"}}"
            )
        }
    }

    struct Person: Hashable {
        let appID: String
        let userID: String
    }

    /// The secret of every app.
    let appSecret: String
    let tokens = Locked(NewestEntries<String, Token>())
    /// The codes of the dialog.
    let codes = Locked(NewestEntries<String, DialogCode>())
    private let people = Locked(NewestEntries<Person, [String: String]>())

    init(appSecret: String) { self.appSecret = appSecret }

    /// Records a login: the permissions that its token shows are granted, and the others have the given statuses.
    ///
    /// - Parameter statuses: Permissions with another status than `granted`.
    func recordLogin(payload: [UInt8], statuses: [String: String]) {
        guard let claims = JSONObject(payload), let person = Self.person(claims) else { return }
        let shown = claims.members.map(\.name).filter(Self.claims.contains) + ["openid", "public_profile"]
        grant(shown, statuses, to: person)
    }

    func grant(_ permissions: [String], _ others: [String: String] = [:], to person: Person) {
        let granted = Dictionary(permissions.map { ($0, "granted") }) { $1 }.merging(others) { $1 }
        people.withLock { $0[person] = ($0[person] ?? [:]).merging(granted) { $1 } }
    }

    /// The claims that a refreshed token lacks because their permission is no longer granted; nil if the person is not
    /// logged in.
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

    /// The claims that have the name of the permission they need.
    private static let claims = [
        "email", "user_friends", "user_birthday", "user_age_range", "user_gender", "user_hometown", "user_link",
        "user_location",
    ]

    /// The app that a request authenticates as, by `Authorization: Bearer APP|SECRET` and `appsecret_proof`.
    func app(authorization: String?, proof: String?) throws(Answer) -> String {
        guard let authorization, authorization.hasPrefix("Bearer ") else {
            throw .error(2500, "An active access token must be used to query information.")
        }
        let token = String(authorization.dropFirst("Bearer ".count))
        guard let bar = token.firstIndex(of: "|"), token[token.index(after: bar)...] == appSecret else {
            throw .error(190, "Invalid OAuth access token signature.")
        }
        if let error = error(ofProof: proof, for: token) { throw error }
        return String(token[..<bar])
    }

    /// The error if `appsecret_proof` is not the token's under the app's secret; nil if it is.
    func error(ofProof proof: String?, for token: String) -> Answer? {
        let message = Array(token.utf8)
        let code = try? HMACSHA256.authenticationCode(for: message.span, key: Array(appSecret.utf8).span).hexadecimal
        if let code, code == proof { return nil }
        return .error(100, "Invalid appsecret_proof provided in the API argument")
    }

    /// `GET /{user-id}/permissions`.
    func permissions(of userID: String, appID: String) -> Answer {
        let known = people.withLock { $0[Person(appID: appID, userID: userID)] }
        guard let known else { return Self.unknownUser }
        let members = known.sorted { $0.key < $1.key }.map { name, status in
            "{\"permission\":\"\(name)\",\"status\":\"\(status)\"}"
        }
        return Answer(body: "{\"data\":[\(members.joined(separator: ","))]}")
    }

    /// `DELETE /{user-id}/permissions/{permission}`; without a permission it revokes all of them.
    func revoke(_ permission: String?, of userID: String, appID: String) -> Answer {
        people.withLock { people in
            let person = Person(appID: appID, userID: userID)
            guard let known = people[person] else { return Self.unknownUser }
            tokens.withLock { tokens in
                for (text, token) in tokens.values where token.person == person {
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
        guard let claims = JSONObject(payload), let audience = claims.member("aud"),
            claims.string(audience) == parameters["app_id"], claims.member("exp") != nil
        else { return .error(190, "The token is for another app.") }
        guard let end = claims.integer("exp"), end > now else {
            return .error(190, subcode: 463, "The token has expired.")
        }
        return .done
    }
}

extension StandInIssuer {
    /// Answers a request to Graph; false if it is for another part.
    func answerGraph(_ exchange: inout HTTPExchange, _ bytes: Span<UInt8>) -> Bool {
        let authorization = exchange.head.value(of: "authorization", in: bytes).map { bytes.text($0) }
        let (method, path) = (exchange.head.method, bytes.text(exchange.head.path))
        let given: StandInGraph.Answer?
        do throws(StandInGraph.Answer) {
            given = try answer(method, path, FormText.query(exchange.head, bytes), authorization)
        } catch {
            given = error
        }
        if let given { write(given, &exchange.response) }
        return given != nil
    }

    /// The answer at `/v26.0/debug_token`, `/v26.0/me` and `/v26.0/oauth/…`, with or without the version, and at
    /// `/v26.0/{user-id}/permissions/{permission}`; nil for any other path.
    private func answer(
        _ method: HTTPMethod,
        _ path: String,
        _ query: [String: String],
        _ authorization: String?
    ) throws(StandInGraph.Answer) -> StandInGraph.Answer? {
        let now = conditions.now()
        let proof = query["appsecret_proof"]
        let place = path.split(separator: "/").drop { $0.first == "v" }
        if method == .get, place == ["me"] {
            let token = String((authorization ?? "").dropFirst("Bearer ".count))
            return graph.me(token, fields: query["fields"], proof: proof, now: now)
        }
        if method == .get, place == ["oauth", "access_token_info"] { return graph.accessTokenInfo(query, now: now) }
        if method == .get, place == ["oauth", "access_token"] { return try exchange(query, now: now) }
        let isAboutToken = method == .get && place == ["debug_token"]
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
        let isAboutPerson =
            (3...4).contains(parts.count) && parts[0].first == "v" && parts[2] == "permissions"
            && !parts[1].isEmpty && parts[1].utf8.allSatisfy { ASCII.digit($0) != nil }
        guard isAboutToken || isAboutPerson else { return nil }
        let appID = try graph.app(authorization: authorization, proof: proof)
        if isAboutToken { return graph.debug(query["input_token"], asking: appID, now: now) }
        switch method {
        case .get where parts.count == 3: return graph.permissions(of: parts[1], appID: appID)
        case .delete: return graph.revoke(parts.count == 4 ? parts[3] : nil, of: parts[1], appID: appID)
        default: return .error(100, "Unsupported method.")
        }
    }

    func write(_ answer: StandInGraph.Answer, _ response: inout HTTPResponse) {
        response.status = answer.status
        if let location = answer.location {
            response.addField("Location", location)
            return response.addField("Cache-Control: no-store")
        }
        response.addField("Content-Type: application/json; charset=UTF-8")
        response.body.append(contentsOf: answer.body.utf8)
    }

    /// Writes the answer, a refusal with 400, or a failure with 500.
    func write(_ response: inout HTTPResponse, _ answer: () throws -> StandInGraph.Answer) {
        do {
            write(try answer(), &response)
        } catch {
            _ = refuse(error is StandInRefusal ? 400 : 500, "\(error)", &response)
        }
    }
}

/// Reads a query, or a form.
enum FormText {
    /// The parameters by name; none if the text is malformed.
    static func parameters(of text: String) -> [String: String] {
        let bytes = Array(text.utf8)
        return FormParameters(bytes.span, bytes.indices)?.texts ?? [:]
    }

    /// The parameters of a request's query.
    static func query(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> [String: String] {
        parameters(of: head.query.map { bytes.text($0) } ?? "")
    }

    /// The query of `/tokens` with the status of permissions that the token does not show:
    /// `?declined=user_friends,email`, `?expired=…`.
    static func statuses(_ query: [String: String]) -> [String: String] {
        var statuses: [String: String] = [:]
        for status in ["declined", "expired"] {
            for name in (query[status] ?? "").split(separator: ",")
            where name.utf8.allSatisfy({ $0 &- 0x61 < 26 || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: ".") }) {
                statuses[String(name)] = status
            }
        }
        return statuses
    }
}

/// A dictionary that keeps its newest entries. Beyond ``limit`` the oldest is removed, so that a stand-in can mint for
/// days.
struct NewestEntries<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// 20,000: more people and tokens than a test uses at a time, in about 20 MB.
    static var limit: Int { 20_000 }

    private(set) var values: [Key: Value] = [:]
    /// The keys in the order of their arrival; at the limit the next one replaces the oldest.
    private var order: [Key] = []
    private var oldest = 0

    /// The value of a key; setting nil changes nothing.
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
