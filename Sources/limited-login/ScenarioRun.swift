internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import LLStandIn
internal import LimitedLogin
internal import LimitedLoginKeys

/// One running scenario: the steps so far, and the last verdict.
struct ScenarioRun {
    let demo: DemoPage
    let application: Application
    let appID: String
    /// Empty if the service is to issue one.
    var nonce: String
    let permissions: [String]
    var userID = CatalogueWorkshop.janesID
    var steps: [JSON] = []
    var verdict: Verdict?
    /// The meaning of an accepted token, if it is no new login.
    var meaning = ""
    /// The same requests as commands of a terminal.
    var lines: [String] = []
    /// The parts of a line that each run gets anew: the name of the variable, and its text in this run.
    var variables: [(name: String, text: String)] = []

    /// A judged token. `name` is its member of `POST /verify`, or nil for the service's own token at `/auth`. The
    /// proofs tie it to the login.
    typealias Verdict = (name: String?, token: String, proofs: Proofs, answer: HTTPSResponse)
    typealias Proofs = [(name: String, value: String)]

    /// Adds a step: the request, such as `POST /verify`, its status or a word, and a sentence.
    mutating func note(_ what: String, _ result: String, _ sentence: String) {
        steps.append(["what": JSON(what), "result": JSON(result), "note": JSON(sentence)])
    }

    /// The text as one word of a shell, with variables in place of their texts.
    private func word(_ text: String) -> String {
        variables.reduce(text.shellWord) { $0.replacing($1.text, with: "'\"$\($1.name)\"'") }
    }

    /// Changes to another person. A revocation applies to all tokens issued until the end of its second, and Jane's
    /// other logins must work meanwhile.
    mutating func takeSomebodyElse() {
        nonce = ""
        userID = "1" + .random(15, of: "0123456789")
    }

    /// The facts that Facebook gives about the person, as far as the app asked for them.
    private var person: [FacebookJSON.Member] {
        CatalogueWorkshop.jane.compactMap { name, json in
            if name == "sub" { return (name, FacebookJSON.string(userID)) }
            // Facts that need a permission are given only if the app asked for it.
            return name != "email" && !name.hasPrefix("user_") || permissions.contains(name) ? (name, json) : nil
        }
    }

    /// Logs in as the app and its backend do; the token has the entry's fault.
    mutating func login(_ entry: CatalogueEntry? = nil) throws {
        let (token, proofs) = try logIn(entry)
        try verify(token, proofs)
    }

    /// Logs in, and presents the token in another session before the owner does.
    mutating func loseToken() throws {
        nonce = ""
        let (token, proofs) = try logIn()
        let nonce = try issueNonce("thief", "A thief with the token of somebody else begins a session of their own.")
        try verify(token, [("nonce", nonce)], "The thief's session presents the stolen token.")
        try verify(token, proofs, "The owner's session presents the same token.")
        meaning = "The thief's session got 401 nonce_mismatch, which used nothing up. Log the owner, \(userID), in."
    }

    /// Has the service issue a nonce. `name` is the nonce's variable in a terminal.
    private mutating func issueNonce(_ name: String, _ sentence: String) throws -> String {
        let answer = try call("/nonces", .json(([:] as JSON).bytes), sentence)
        return try keep(name, "nonce", of: answer, "The service issued no nonce: it")
    }

    private mutating func logIn(_ entry: CatalogueEntry? = nil) throws -> (token: String, proofs: Proofs) {
        let fault = entry?.name == "good" ? nil : entry
        var nonce = nonce
        if nonce.isEmpty, fault == nil {
            nonce = try issueNonce("nonce", "The backend asks the service for a nonce and gives it to the app.")
        } else if nonce.isEmpty {
            nonce = "n-\(String.random(16))"
            note("nonce", "made", "The backend makes a nonce for this login and gives it to the app.")
        }
        var workshop = try demo.issuer.workshop(nonce: nonce)
        (workshop.template.audience, workshop.person) = (appID, person)
        let ending = fault.map { ". The token it gets: \($0.fault)" } ?? "."
        note("login", "id token", "The app logs in at Facebook with the nonce\(ending)")
        let proofs = entry?.requestMembers(workshop) ?? [("nonce", nonce)]
        if let fault { return (try fault.token(workshop), proofs) }
        let claims = [("aud", FacebookJSON.string(appID)), ("nonce", FacebookJSON.string(nonce))] + person
        let answer = try facebook("/tokens", FacebookJSON.object(claims))
        return (try keep("token", "id_token", of: answer, "Facebook gave no token: it"), proofs)
    }

    /// Logs in, and exchanges the login for a token of the service's own.
    mutating func exchange() throws -> String {
        // In a terminal each run has another person: this run revokes the person's logins.
        lines.append("person=$(date +%s)")
        variables.append(("person", userID))
        let (token, proofs) = try logIn()
        let kind = "urn:ietf:params:oauth"
        let form =
            [
                ("grant_type", "\(kind):grant-type:token-exchange"),
                ("subject_token_type", "\(kind):token-type:id_token"),
                ("subject_token", token),
            ] + proofs
        let sentence = "The backend exchanges the login for a short standard token and gives it to the app."
        let answer = try call("/token", .form(form), sentence)
        return try keep("own", "access_token", of: answer, "The service issued no token: it")
    }

    /// Has a gateway ask about a token of the service's own.
    mutating func passGateway(_ token: String, _ sentence: String) throws {
        verdict = (nil, token, [], try call("/auth", nil, as: ("Authorization", "Bearer \(token)"), sentence))
    }

    /// Logs in as an app on Android does, and sends its access token.
    mutating func accessToken() throws {
        let names = ["given_name": "first_name", "family_name": "last_name"]
        var members: [FacebookJSON.Member] = [
            ("app", FacebookJSON.string(appID)), ("user", FacebookJSON.string(userID)),
        ]
        for (name, json) in person where !["sub", "user_friends"].contains(name) {
            // Graph names a person's facts without the prefix of their permissions.
            let field = names[name] ?? (name.hasPrefix("user_") ? String(name.dropFirst("user_".count)) : name)
            members.append((field, name == "picture" ? "{\"data\":{\"url\":\(json)}}" : json))
        }
        members.append(("scopes", FacebookJSON.list(["public_profile"] + permissions)))
        let answer = try facebook("/access-tokens", FacebookJSON.object(members))
        let token = try keep("token", "access_token", of: answer, "Facebook gave no access token: it")
        let sentence = "The app on Android logs in at Facebook. Its token names neither login nor person."
        note("login", "access token", sentence)
        let next = "The backend sends the token. The service asks Graph about it twice: debug_token, then /me."
        try verify(token, as: "access_token", [], next)
        meaning = "Facebook says that the token is \(userID)'s, and this app's. It is tied to no login."
    }

    mutating func revoke() throws {
        let sentence = "The backend ends every login of \(userID), as on \"log out everywhere\"."
        let body: JSON = ["user_id": JSON(userID), "app_id": JSON(appID)]
        _ = try call("/revocations", .json(body.bytes), sentence)
    }

    /// Makes Facebook send the person's request to delete their data, and reads the status page.
    mutating func requestDeletion() throws {
        let answer = try facebook("/users/\(userID)/data-deletion")
        let sentence = "Facebook passes the person's wish on; the service tells the backend by a webhook."
        note("POST /callbacks/data-deletion", "\(answer.status)", sentence)
        let page = try keep("page", "url", of: answer, "Nothing was deleted: the service")
        let status = try demo.client.send(HTTPSRequest(.get, try HTTPURL(parsing: page)))
        let text = String(decoding: TokenInput.trimmed(status.body), as: UTF8.self)
        note("GET /deletion?code=…", "\(status.status)", "The person reads there: \(text)")
    }

    mutating func verifyAgain(_ sentence: String) throws {
        guard let verdict, let name = verdict.name else { return }
        try verify(verdict.token, as: name, verdict.proofs, sentence)
    }

    mutating func refresh() throws {
        guard let verdict else { return }
        let answer = try facebook("/refresh", JSON([("id_token", JSON(verdict.token))]).text)
        note("refresh", "id token", "The SDK refreshes the token in the background; the login's nonce stays in it.")
        let token = try keep("fresh", "id_token", of: answer, "Facebook refreshed nothing: it")
        let sentence = "The backend sends the new token with the person of the session."
        try verify(token, [("subject", userID)] + verdict.proofs, sentence)
        meaning = "The token is a refresh of this login. The session of \(userID) goes on."
    }

    private mutating func verify(
        _ token: String,
        as name: String = "id_token",
        _ proofs: Proofs,
        _ sentence: String = "The backend sends the token, and what ties it to this login."
    ) throws {
        let body = request(name, token, proofs, permissions).bytes
        verdict = (name, token, proofs, try call("/verify", .json(body), sentence))
    }

    private func request(_ name: String, _ token: String, _ proofs: Proofs, _ permissions: [String]) -> JSON {
        let wish = permissions.isEmpty ? nil : JSON(permissions.map { JSON($0) })
        return JSON([(name, JSON(token))] + proofs.map { ($0.name, JSON($0.value)) } + [("permissions", wish)])
    }

    /// Sends Facebook a request, as an app or a person does.
    mutating func facebook(_ path: String, _ text: String = "{}") throws -> HTTPSResponse {
        let base = demo.issuer.address.map(\.reachable.description) ?? "?"
        let url = try HTTPURL(parsing: "http://\(base)\(path)")
        return try send(HTTPSRequest(.post, url, body: .json(Array(text.utf8))))
    }

    /// Sends the service a request, as a backend does with its key, and adds the step.
    private mutating func call(
        _ path: String,
        _ body: HTTPSRequest.Body?,
        as caller: HTTPSResponse.Field = ("X-Api-Key", Demo.clientKey),
        _ sentence: String
    ) throws -> HTTPSResponse {
        let base = application.ownAddress.map(\.description) ?? "?"
        let url = try HTTPURL(parsing: "http://\(base)\(path)")
        let request = HTTPSRequest(body == nil ? .get : .post, url, headers: [caller], body: body)
        let answer = try send(request)
        note("\(request.method.name) \(path)", "\(answer.status)", sentence)
        return answer
    }

    /// Sends a request, and adds the same as a line of a terminal.
    private mutating func send(_ request: HTTPSRequest) throws -> HTTPSResponse {
        let media = request.body.map { [(name: "Content-Type", value: $0.mediaType)] } ?? []
        let fields = (request.headers + media).map { " -H \(word("\($0.name): \($0.value)"))" }.joined()
        let data = request.body.map { " -d \(word(String(decoding: $0.bytes, as: UTF8.self)))" } ?? " -i"
        lines.append("curl -sS \(request.url)\(fields)\(data) -w '\\n'")
        return try demo.client.send(request)
    }

    /// The member of an answer. The terminal keeps it in a variable for the lines after it.
    /// - Parameter failure: The beginning of the sentence about an answer without it.
    private mutating func keep(
        _ variable: String,
        _ name: StaticString,
        of answer: HTTPSResponse,
        _ failure: String
    ) throws -> String {
        guard let text = JSONObject(answer.body)?.string(name) else {
            throw PageRefusal(sentence: "\(failure) answered \(answer.status).")
        }
        // Each such answer has the text first.
        lines.append("\(variable)=$(\(lines.removeLast()) | cut -d'\"' -f4)")
        variables.append((variable, text))
        return text
    }

    /// The result for the page. The report is made with the keys that the service has now.
    func outcome() throws -> JSON {
        guard let verdict else { throw PageRefusal(sentence: "Nothing was judged.") }
        return demo.outcome(
            token: verdict.token,
            report: try report(verdict),
            answer: verdict.answer,
            note: meaning,
            command: lines.joined(separator: "\n"),
            asked: verdict.name == nil ? "GET /auth" : "POST /verify",
            request: verdict.name.map { request($0, verdict.token, verdict.proofs, permissions) }
                ?? ["Authorization": JSON("Bearer \(verdict.token)")],
            steps: steps
        )
    }

    /// Nil if the service does not read such a request, as one that is too long.
    private func report(_ verdict: Verdict) throws -> CheckReport? {
        let (settings, now) = (application.core.settings.value, try Moment.now())
        let configuration = application.configuration
        let token = Array(verdict.token.utf8)
        guard let name = verdict.name else {
            guard let issuer = settings.tokens?.issuer else { return nil }
            return .ofOwnToken(token, OwnTokenVerifier(issuer, verification: settings.verifier.policy), now: now)
        }
        var document = JSONDocument(limits: .ofRequest)
        let body = request(name, verdict.token, verdict.proofs, []).bytes
        guard let request = try? LoginRequest(body.span, with: &document) else { return nil }
        guard !request.isAccessToken else {
            return try .ofAccessToken(token, subject: nil, configuration, now: now, settings: settings)
        }
        let (keys, verifier) = (application.core.cache.snapshot.keySet, settings.verifier)
        return try .ofIDToken(request.token, request.expectation, keys, configuration, now: now, verifier: verifier)
    }
}
