internal import Bytes
internal import HTTPClient
internal import HTTPServer
internal import JOSE
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
    private var steps: [PageOutcome.Step] = []
    private var verdict: Verdict?
    /// What an accepted token means, where it means something else than a login.
    private var meaning = ""

    /// A request of `POST /verify`, and what came back.
    private struct Verdict {
        let token: String
        let request: [(name: String, json: [UInt8])]
        let login: ExpectedLogin
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
            nonce = "n-" + Hexadecimal.encode(try RandomBytes.make(count: 8))
            note("nonce", "made", "The backend makes a nonce for this login and gives it to the app.")
        }
        let now = WallClock.unixSeconds()
        let person = CatalogueWorkshop.jane.filter { name, _ in
            // What needs a permission is told only if the app asked for it.
            name != "email" && !name.hasPrefix("user_") || wishes.permissions.contains(name)
        }
        let workshop = try CatalogueWorkshop(
            template: desk.issuer.template,
            keys: desk.issuer.keys,
            nonce: nonce,
            now: now,
            audience: wishes.appID,
            person: person
        )
        let login: [MintedClaims.Member] = [
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
        if !wishes.permissions.isEmpty {
            members.append(("permissions", PageJSON.array(wishes.permissions, PageJSON.string)))
        }
        try verify(token, members, expected)
    }

    /// Sends the last request of `POST /verify` once more.
    mutating func verifyAgain() throws {
        guard let verdict else { return }
        try verify(verdict.token, verdict.request, verdict.login, "The same request comes a second time.")
    }

    /// Has Facebook refresh the last token, and the backend judge what comes for the same login and person.
    mutating func refresh(_ subject: String) throws {
        guard let verdict, let facebook = desk.issuer.address else { return }
        let url = try HTTPURL(parsing: "http://\(facebook)/refresh")
        let old = PageJSON.object([("id_token", verdict.token)])
        let answer = try desk.client.send(HTTPSRequest(.post, url, body: .json(old)))
        note("refresh", "id token", "The SDK refreshes the token in the background; the login's nonce stays in it.")
        guard let token = PageJSON.text("id_token", in: answer.body) else {
            throw PageRefusal(sentence: "Facebook refreshed nothing: it answered \(answer.status).")
        }
        var login = verdict.login
        login.added.subject = Array(subject.utf8)
        let members = verdict.request.filter { $0.name != "id_token" }
        try verify(
            token,
            [("id_token", PageJSON.string(token)), ("subject", PageJSON.string(subject))] + members,
            login,
            "The backend sends the new token with the person of the session."
        )
        meaning = "The token is a refresh of this login. The session of \(subject) goes on."
    }

    private mutating func verify(
        _ token: String,
        _ members: [(name: String, json: [UInt8])],
        _ login: ExpectedLogin,
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
        let report = try VerificationReport.make(
            token: Array(verdict.token.utf8),
            login: verdict.login,
            keySet: application.cache.snapshot.keySet,
            configuration: application.configuration,
            now: nil,
            verifier: application.core.settings.value.verifier
        )
        let body = InspectDesk.shell(String(decoding: PageJSON.object(verdict.request), as: UTF8.self))
        let service = application.server.localAddresses.first.map(\.description) ?? "?"
        return PageOutcome(
            token: verdict.token,
            report: report,
            answer: (verdict.answer.status, verdict.answer.body),
            note: meaning,
            command: "curl -sS http://\(service)/verify -H 'X-Api-Key: \(DemonstrationFiles.clientKey)' "
                + "-H 'Content-Type: application/json' -d \(body)",
            steps: steps
        )
    }
}
