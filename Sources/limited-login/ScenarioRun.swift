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
    /// The commands that do the same in a terminal.
    var lines: [String] = []
    /// The parts of a line that each run gets anew: the name of the variable, and its text in this run.
    var variables: [(name: String, text: String)] = []

    /// A judged token. The request is that of `POST /verify`, without the permissions that the app needs; nil for a token of
    /// the service's own at `/auth`.
    typealias Verdict = (token: String, request: [JSON.Member]?, answer: HTTPSResponse)

    /// Adds a step: the request, such as `POST /verify`, its status or a word, and a sentence.
    mutating func note(_ what: String, _ result: String, _ sentence: String) {
        steps.append(["what": JSON(what), "result": JSON(result), "note": JSON(sentence)])
    }

    mutating func script(_ line: String) { lines.append(line) }

    /// Adds a line that keeps the first text of an answer, such as a nonce, in a variable for the lines after it.
    private mutating func script(_ name: String, _ text: String, of line: String) {
        script("\(name)=$(\(line) | cut -d'\"' -f4)")
        variables.append((name, text))
    }

    /// The text as one word of a shell, with variables in place of their texts.
    private func word(_ text: String) -> String {
        variables.reduce(InspectPage.shell(text)) { $0.replacing($1.text, with: "'\"$\($1.name)\"'") }
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
    ///
    /// For a good login without a nonce of its own, the service issues a nonce and accepts it once.
    mutating func login(_ entry: CatalogueEntry? = nil) throws {
        let (token, proofs) = try logIn(entry)
        try verify(token, Self.request(token, proofs))
    }

    /// Logs in, and presents the token in another session before the owner does.
    mutating func loseToken() throws {
        nonce = ""
        let (token, proofs) = try logIn()
        let nonce = try issueNonce("thief", "A thief with the token of somebody else begins a session of their own.")
        try verify(token, Self.request(token, [("nonce", nonce)]), "The thief's session presents the stolen token.")
        try verify(token, Self.request(token, proofs), "The owner's session presents the same token.")
        meaning = "The thief's session got 401 nonce_mismatch, which used nothing up. Log the owner, \(userID), in."
    }

    private static func request(_ token: String, _ proofs: [(name: String, value: String)]) -> [JSON.Member] {
        [("id_token", JSON(token))] + proofs.map { ($0.name, JSON($0.value)) }
    }

    /// Has the service issue a nonce.
    /// - Parameter name: The nonce's variable in a terminal.
    private mutating func issueNonce(_ name: String, _ sentence: String) throws -> String {
        let nonce = try Self.text("nonce", of: call("/nonces", [:], sentence), "The service issued no nonce: it")
        script(name, nonce, of: curl("/nonces", [:]))
        return nonce
    }

    /// - Returns: The app's token, and the members that tie it to the login.
    private mutating func logIn(
        _ entry: CatalogueEntry? = nil
    ) throws -> (token: String, proofs: [(name: String, value: String)]) {
        let fault = entry?.name == "good" ? nil : entry
        let isIssued = nonce.isEmpty && fault == nil
        var nonce = nonce
        if isIssued {
            nonce = try issueNonce("nonce", "The backend asks the service for a nonce and gives it to the app.")
        } else if nonce.isEmpty {
            nonce = "n-\(String.random(16))"
            note("nonce", "made", "The backend makes a nonce for this login and gives it to the app.")
        }
        var workshop = try demo.issuer.workshop(nonce: nonce)
        (workshop.template.audience, workshop.person) = (appID, person)
        let claims = FacebookJSON.object(
            [("aud", FacebookJSON.string(appID)), ("nonce", FacebookJSON.string(nonce))] + person
        )
        let token = try fault?.token(workshop) ?? demo.issuer.token(claims: claims, now: workshop.now)
        if isIssued { script("token", token, of: "curl -sS \(facebookURL)/tokens -d \(word(claims))") }
        let ending = fault.map { ". The token it gets: \($0.fault)" } ?? "."
        note("login", "id token", "The app logs in at Facebook with the nonce\(ending)")
        return (token, entry?.requestMembers(workshop) ?? [("nonce", nonce)])
    }

    /// Logs in, and exchanges the login for a token of the service's own.
    mutating func exchange() throws -> String {
        // In a terminal each run has another person: this run revokes the person's logins.
        script("person=$(date +%s)")
        variables.append(("person", userID))
        let (token, proofs) = try logIn()
        let kind = "urn:ietf:params:oauth"
        let form =
            [
                ("grant_type", "\(kind):grant-type:token-exchange"),
                ("subject_token_type", "\(kind):token-type:id_token"),
                ("subject_token", token),
            ] + proofs
        let answer = try send(
            HTTPSRequest(.post, try service("/token"), headers: [Self.key], body: .form(form)),
            "The backend exchanges the login for a short standard token and gives it to the app."
        )
        let own = try Self.text("access_token", of: answer, "The service issued no token: it")
        let text = form.map { "\($0)=\($1)" }.joined(separator: "&")
        script("own", own, of: "curl -sS \(serviceURL)/token \(Self.keyField) -d \(word(text))")
        return own
    }

    /// Has a gateway ask about a token of the service's own.
    mutating func passGateway(_ token: String, _ sentence: String) throws {
        let field = (name: "authorization", value: "Bearer \(token)")
        verdict = (token, nil, try send(HTTPSRequest(.get, try service("/auth"), headers: [field]), sentence))
        script("curl -sS -i \(serviceURL)/auth -H \(word("Authorization: Bearer \(token)")) -w '\\n'")
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
        let answer = try facebook("/access-tokens", Array(FacebookJSON.object(members).utf8))
        let token = try Self.text("access_token", of: answer, "Facebook gave no access token: it")
        note(
            "login",
            "access token",
            "The app on Android logs in at Facebook. Its token names neither login nor person."
        )
        try verify(
            token,
            [("access_token", JSON(token))],
            "The backend sends the token. The service asks Graph about it twice: debug_token, then /me."
        )
        meaning = "Facebook says that the token is \(userID)'s, and this app's. It is tied to no login."
    }

    /// Makes the service refuse every token of the person issued until now.
    mutating func revoke() throws {
        let sentence = "The backend ends every login of \(userID), as on \"log out everywhere\"."
        let body: JSON = ["user_id": JSON(userID), "app_id": JSON(appID)]
        _ = try call("/revocations", body, sentence)
        script(curl("/revocations", body))
    }

    /// Makes Facebook send the person's request to delete their data, and reads the status page.
    mutating func requestDeletion() throws {
        let answer = try facebook("/users/\(userID)/data-deletion", [])
        script("curl -sS -o /dev/null -X POST \(facebookURL)/users/\(userID)/data-deletion")
        note(
            "POST /callbacks/data-deletion",
            "\(answer.status)",
            "Facebook passes the person's wish on; the service tells the backend by a webhook."
        )
        let page = try Self.text("url", of: answer, "Nothing was deleted: the service")
        let status = try demo.client.send(HTTPSRequest(.get, try HTTPURL(parsing: page)))
        let text = String(decoding: TokenInput.trimmed(status.body), as: UTF8.self)
        note("GET /deletion?code=…", "\(status.status)", "The person reads there: \(text)")
    }

    mutating func verifyAgain(_ sentence: String) throws {
        guard let verdict, let request = verdict.request else { return }
        try verify(verdict.token, request, sentence)
    }

    /// Makes Facebook refresh the last token, and sends the new one for the same login and person.
    mutating func refresh() throws {
        guard let verdict, let request = verdict.request else { return }
        let body = JSON([("id_token", JSON(verdict.token))])
        let answer = try facebook("/refresh", body.bytes)
        note("refresh", "id token", "The SDK refreshes the token in the background; the login's nonce stays in it.")
        let token = try Self.text("id_token", of: answer, "Facebook refreshed nothing: it")
        script("fresh", token, of: "curl -sS \(facebookURL)/refresh -d \(word(body.text))")
        try verify(
            token,
            [("id_token", JSON(token)), ("subject", JSON(userID))] + request.dropFirst(),
            "The backend sends the new token with the person of the session."
        )
        meaning = "The token is a refresh of this login. The session of \(userID) goes on."
    }

    private mutating func verify(
        _ token: String,
        _ members: [JSON.Member],
        _ sentence: String = "The backend sends the token, and what ties it to this login."
    ) throws {
        let body = JSON(members + wishedPermissions)
        verdict = (token, members, try call("/verify", body, sentence))
        script("\(curl("/verify", body)) -w '\\n'")
    }

    private var wishedPermissions: [JSON.Member] {
        permissions.isEmpty ? [] : [("permissions", JSON(permissions.map { JSON($0) }))]
    }

    /// Sends Facebook a request, as an app or a person does.
    private func facebook(_ path: String, _ body: [UInt8]) throws -> HTTPSResponse {
        let url = try HTTPURL(parsing: "\(facebookURL)\(path)")
        return try demo.client.send(HTTPSRequest(.post, url, body: .json(body)))
    }

    var facebookURL: String { "http://\(demo.issuer.address.map(\.reachable.description) ?? "?")" }

    private var serviceURL: String { "http://\(application.ownAddress.map(\.description) ?? "?")" }

    private func service(_ path: String) throws -> HTTPURL { try HTTPURL(parsing: "\(serviceURL)\(path)") }

    /// The field with the backend's key, and the same in a terminal.
    private static let key = (name: "x-api-key", value: DemonstrationFiles.clientKey)
    private static let keyField = "-H 'X-Api-Key: \(DemonstrationFiles.clientKey)'"

    /// A request of the service, as a command of a terminal.
    private func curl(_ path: String, _ body: JSON) -> String {
        "curl -sS \(serviceURL)\(path) \(Self.keyField) "
            + "-H 'Content-Type: application/json' -d \(word(body.text))"
    }

    /// Sends the service a request as a backend does, and adds the step.
    private mutating func call(_ path: String, _ body: JSON, _ sentence: String) throws -> HTTPSResponse {
        try send(HTTPSRequest(.post, try service(path), headers: [Self.key], body: .json(body.bytes)), sentence)
    }

    private mutating func send(_ request: HTTPSRequest, _ sentence: String) throws -> HTTPSResponse {
        let answer = try demo.client.send(request)
        note("\(request.method.name) \(request.url.target)", "\(answer.status)", sentence)
        return answer
    }

    /// The member of an answer.
    /// - Parameter failure: The beginning of the sentence about an answer without it.
    private static func text(_ name: StaticString, of answer: HTTPSResponse, _ failure: String) throws -> String {
        guard let text = JSONObject(answer.body)?.string(name) else {
            throw PageRefusal(sentence: "\(failure) answered \(answer.status).")
        }
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
            asked: verdict.request == nil ? "GET /auth" : "POST /verify",
            request: verdict.request.map { JSON($0 + wishedPermissions) }
                ?? ["Authorization": JSON("Bearer \(verdict.token)")],
            steps: steps
        )
    }

    /// Nil if the service does not read such a request, as one that is too long.
    private func report(_ verdict: Verdict) throws -> CheckReport? {
        let (settings, configuration) = (application.core.settings.value, application.configuration)
        guard let members = verdict.request else {
            guard let issuer = settings.tokens?.issuer else { return nil }
            let verifier = OwnTokenVerifier(issuer, verification: settings.verifier.policy)
            return .ofOwnToken(Array(verdict.token.utf8), verifier, now: try Moment.now())
        }
        var document = JSONDocument(limits: .ofRequest)
        let body = JSON(members).bytes
        guard let request = try? LoginRequest(body.span, with: &document) else { return nil }
        guard !request.isAccessToken else {
            return try .ofAccessToken(
                Array(verdict.token.utf8),
                subject: nil,
                configuration: configuration,
                now: Moment.now(),
                settings: settings
            )
        }
        return try .ofIDToken(
            request.token,
            request.expectation,
            keySet: application.core.cache.snapshot.keySet,
            configuration: configuration,
            now: Moment.now(),
            verifier: settings.verifier
        )
    }
}
