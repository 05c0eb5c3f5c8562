internal import Bytes
internal import HTTPClient
internal import HTTPServer
internal import KeySets
internal import LimitedLogin
internal import OpenSSL
internal import Sockets
internal import StandInIssuer
internal import VerificationService

/// One scenario under way: what was done so far, and the last verdict.
struct DemoStage {
    let desk: DemoDesk
    let application: Application
    var wishes: DemoDesk.Wishes
    /// Who logs in.
    private var userID = CatalogueWorkshop.janesID
    private var steps: [PageOutcome.Step] = []
    private var verdict: Verdict?
    /// What an accepted token means, where it means something else than a login.
    private var meaning = ""

    /// A request of `POST /verify`, and what came back.
    private struct Verdict {
        let token: String
        let request: [(name: String, json: [UInt8])]
        /// What the id token is tied to; nil for an access token, which is tied to no login.
        let login: ExpectedLogin?
        let answer: HTTPSResponse
    }

    init(desk: DemoDesk, application: Application, wishes: DemoDesk.Wishes) {
        self.desk = desk
        self.application = application
        self.wishes = wishes
    }

    /// Adds to what happened.
    mutating func note(_ what: String, _ result: String, _ sentence: String) {
        steps.append(PageOutcome.Step(what: what, result: result, note: sentence))
    }

    /// Has somebody else log in. A revocation counts for everything issued until the end of its second, and Jane's other
    /// logins go on meanwhile.
    mutating func takeSomebodyElse() {
        wishes.nonce = ""
        userID = "1" + .random(15, of: "0123456789")
    }

    /// What Facebook knows of the person, as far as the app asked for it.
    private var person: [FacebookJSON.Member] {
        CatalogueWorkshop.jane.compactMap { name, json in
            if name == "sub" { return (name, FacebookJSON.string(userID)) }
            // What needs a permission is told only if the app asked for it.
            return name != "email" && !name.hasPrefix("user_") || wishes.permissions.contains(name) ? (name, json) : nil
        }
    }

    /// Logs in as the app and its backend do; the token has the entry's fault.
    ///
    /// A good login without a nonce of its own has the service issue one, which it then takes once.
    mutating func login(_ entry: CatalogueEntry? = nil) throws {
        let fault = entry?.name == "good" ? nil : entry
        let isIssued = wishes.nonce.isEmpty && fault == nil
        var nonce = wishes.nonce
        if isIssued {
            nonce = try issuedNonce()
        } else if nonce.isEmpty {
            nonce = "n-" + .random(16)
            note("nonce", "made", "The backend makes a nonce for this login and gives it to the app.")
        }
        let now = WallClock.unixSeconds()
        let workshop = try CatalogueWorkshop(
            template: desk.issuer.template,
            keys: desk.issuer.keys,
            nonce: nonce,
            now: now,
            audience: wishes.appID,
            person: person
        )
        let login: [FacebookJSON.Member] = [
            ("aud", FacebookJSON.string(wishes.appID)), ("nonce", FacebookJSON.string(nonce)),
        ]
        let token =
            try fault?.token(workshop)
            ?? desk.issuer.token(claims: FacebookJSON.object(login + person), now: now)
        note(
            "login",
            "id token",
            "The app logs in at Facebook with the nonce" + (fault.map { ". The token it gets: \($0.fault)" } ?? ".")
        )
        var members = [(name: "id_token", json: PageJSON.string(token))]
        var expected = ExpectedLogin(binding: .issuedNonce)
        if isIssued {
            members.append(("issued_nonce", Array("true".utf8)))
        } else {
            for (name, value) in entry?.requestMembers(workshop) ?? [("nonce", nonce)] {
                members.append((name, PageJSON.string(value)))
                let bytes = Array(value.utf8)
                switch name {
                case "nonce": expected = ExpectedLogin(binding: .nonce, value: bytes)
                case "subject": expected = ExpectedLogin(binding: .subject, value: bytes)
                case "key_thumbprint": expected.added.keyThumbprint = bytes
                case "access_token": expected.added.accessToken = bytes
                default: break
                }
            }
        }
        try verify(token, members + wishedPermissions, expected)
    }

    private var wishedPermissions: [(name: String, json: [UInt8])] {
        wishes.permissions.isEmpty ? [] : [("permissions", PageJSON.array(wishes.permissions, PageJSON.string))]
    }

    /// Logs in as an app on Android does, and sends what it gets.
    mutating func accessToken() throws {
        let names = ["given_name": "first_name", "family_name": "last_name"]
        var members: [(name: String, json: String)] = [
            ("app", FacebookJSON.string(wishes.appID)), ("user", FacebookJSON.string(userID)),
        ]
        for (name, json) in person where !["sub", "user_friends"].contains(name) {
            // Graph names the facts of a person without the prefix of their permissions.
            let field = names[name] ?? (name.hasPrefix("user_") ? String(name.dropFirst("user_".count)) : name)
            members.append((field, name == "picture" ? "{\"data\":{\"url\":\(json)}}" : json))
        }
        members.append(("scopes", FacebookJSON.list(["public_profile"] + wishes.permissions)))
        let answer = try facebook("/access-tokens", Array(FacebookJSON.object(members).utf8))
        guard let token = PageJSON.text("access_token", in: answer.body) else {
            throw PageRefusal(sentence: "Facebook gave no access token: it answered \(answer.status).")
        }
        note(
            "login",
            "access token",
            "The app on Android logs in at Facebook. Its token names neither login nor person."
        )
        try verify(
            token,
            [("access_token", PageJSON.string(token))] + wishedPermissions,
            nil,
            "The backend sends the token. The service asks Graph about it twice: debug_token, then /me."
        )
        meaning = "Facebook says that the token is \(userID)'s, and this app's. It is tied to no login."
    }

    /// Has the service refuse every token of the person that was issued until now.
    mutating func revoke() throws {
        let members = [("user_id", userID), ("app_id", wishes.appID)]
        let answer = try call(.post, "/revocations", PageJSON.object(members))
        note(
            "POST /revocations",
            "\(answer.status)",
            "The backend ends every login of \(userID), as on \"log out everywhere\"."
        )
    }

    /// Has Facebook pass on that the person wants their data deleted, and reads what became of it.
    mutating func requestDeletion() throws {
        let answer = try facebook("/users/\(userID)/data-deletion", [])
        note(
            "POST /callbacks/data-deletion",
            "\(answer.status)",
            "Facebook passes the person's wish on; the service tells the backend by a webhook."
        )
        guard let page = PageJSON.text("url", in: answer.body) else {
            throw PageRefusal(sentence: "Nobody deleted anything: the service answered \(answer.status).")
        }
        let status = try desk.client.send(HTTPSRequest(.get, try HTTPURL(parsing: page)))
        let text = String(decoding: TokenInput.trimmed(status.body), as: UTF8.self)
        note("GET /deletion?code=…", "\(status.status)", "The person reads there: \(text)")
    }

    /// Sends the last request of `POST /verify` once more.
    mutating func verifyAgain(_ sentence: String) throws {
        guard let verdict else { return }
        try verify(verdict.token, verdict.request, verdict.login, sentence)
    }

    /// Has Facebook refresh the last token, and the backend judge what comes for the same login and person.
    mutating func refresh() throws {
        guard let verdict, var login = verdict.login else { return }
        let answer = try facebook("/refresh", PageJSON.object([("id_token", verdict.token)]))
        note("refresh", "id token", "The SDK refreshes the token in the background; the login's nonce stays in it.")
        guard let token = PageJSON.text("id_token", in: answer.body) else {
            throw PageRefusal(sentence: "Facebook refreshed nothing: it answered \(answer.status).")
        }
        login.added.subject = Array(userID.utf8)
        let members = verdict.request.filter { $0.name != "id_token" }
        try verify(
            token,
            [("id_token", PageJSON.string(token)), ("subject", PageJSON.string(userID))] + members,
            login,
            "The backend sends the new token with the person of the session."
        )
        meaning = "The token is a refresh of this login. The session of \(userID) goes on."
    }

    private mutating func verify(
        _ token: String,
        _ members: [(name: String, json: [UInt8])],
        _ login: ExpectedLogin?,
        _ sentence: String = "The backend sends the token, and what ties it to this login."
    ) throws {
        let answer = try call(.post, "/verify", PageJSON.object(members))
        note("POST /verify", "\(answer.status)", sentence)
        verdict = Verdict(token: token, request: members, login: login, answer: answer)
    }

    private mutating func issuedNonce() throws -> String {
        let answer = try call(.post, "/nonces", Array("{}".utf8))
        note("POST /nonces", "\(answer.status)", "The backend asks the service for a nonce and gives it to the app.")
        guard let nonce = PageJSON.text("nonce", in: answer.body) else {
            throw PageRefusal(sentence: "The service issued no nonce: it answered \(answer.status).")
        }
        return nonce
    }

    /// Has Facebook do something, as an app or a person does.
    private func facebook(_ path: String, _ body: [UInt8]) throws -> HTTPSResponse {
        guard let facebook = desk.issuer.address else { throw PageRefusal(sentence: "Facebook is not there.") }
        return try desk.client.send(
            HTTPSRequest(.post, try HTTPURL(parsing: "http://\(facebook)\(path)"), body: .json(body))
        )
    }

    /// Asks the service as a backend does.
    func call(_ method: HTTPSRequest.Method, _ path: String, _ body: [UInt8]) throws -> HTTPSResponse {
        guard let service = application.server.localAddresses.first?.network else {
            throw PageRefusal(sentence: "The service does not listen.")
        }
        let url = try HTTPURL(parsing: "http://\(service)\(path)")
        let key = HTTPSResponse.Field(name: "x-api-key", value: DemonstrationFiles.clientKey)
        return try desk.client.send(HTTPSRequest(method, url, headers: [key], body: .json(body)))
    }

    /// What the page shows. The report is made with the keys that the service has now.
    func outcome() throws -> PageOutcome {
        guard let verdict else { throw PageRefusal(sentence: "Nothing was judged.") }
        let body = InspectDesk.shell(String(decoding: PageJSON.object(verdict.request), as: UTF8.self))
        let service = application.server.localAddresses.first.map(\.description) ?? "?"
        return PageOutcome(
            token: verdict.token,
            report: try report(verdict),
            answer: (verdict.answer.status, verdict.answer.body),
            note: meaning,
            command: "curl -sS http://\(service)/verify -H 'X-Api-Key: \(DemonstrationFiles.clientKey)' "
                + "-H 'Content-Type: application/json' -d \(body)",
            steps: steps
        )
    }

    private func report(_ verdict: Verdict) throws -> CheckReport {
        let settings = application.core.settings.value
        guard let login = verdict.login else {
            return try AccessTokenReport.make(
                token: Array(verdict.token.utf8),
                subject: nil,
                configuration: application.configuration,
                now: Moment.now(),
                apps: settings.accessTokenApps
            )
        }
        return try VerificationReport.make(
            token: Array(verdict.token.utf8),
            login: login,
            keySet: application.cache.snapshot.keySet,
            configuration: application.configuration,
            now: Moment.now(),
            verifier: settings.verifier
        )
    }
}
