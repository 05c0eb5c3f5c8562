internal import Glibc
internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LLStandIn
internal import LimitedLogin

struct TrialResult {
    let name: String
    let sent: String
    let code: Rejection.Code?
    let outcome: TrialOutcome

    var mustAccept: Bool { code == nil }

    var isRight: Bool { outcome == .notAsked || outcome == (mustAccept ? .accepted : .refused) }

    var text: String {
        let mark = outcome == .notAsked ? "      " : isRight ? "right " : "WRONG "
        let line = "\(mark) \(name): \(sent) \(mustAccept ? "Yes" : "No") is right; \(outcome.text)."
        return isRight ? line : "\(line)\n       \(reason.why) (\(reason.clause))"
    }

    /// The meaning of a wrong answer: its consequence, and the rule.
    var reason: (why: String, clause: String) {
        guard let code else { return ("People with a good token cannot log in.", "OpenID Connect Core 3.1.3.7") }
        if case .broken = outcome { return ("There is no verdict on what anybody can send.", "RFC 9110 15.6.1") }
        return switch code {
        case .malformedToken:
            ("Two readers may read it differently, so that other text is used than was checked.", "RFC 7515 5.2")
        case .notAnIDToken: ("A token made for another purpose opens a login.", "RFC 8725 3.11")
        case .unsupportedAlgorithm: ("Anybody can make a token for anybody.", "RFC 8725 3.1")
        case .unsupportedCriticalHeader: ("A condition that the token demands is not checked.", "RFC 7515 4.1.11")
        case .missingKeyID: ("The backend guesses the key.", "OpenID Connect Core 10.1")
        case .unknownKey, .invalidSignature: ("Anybody can make a token for anybody.", "RFC 7515 5.2")
        case .invalidIssuer: ("Another issuer can log in anybody.", "OpenID Connect Core 3.1.3.7 rule 2")
        case .invalidAudience:
            ("The owner of another app can log in as each of its users.", "OpenID Connect Core 3.1.3.7 rule 3")
        case .expired: ("A token from an old log or backup opens the account for ever.", "RFC 7519 4.1.4")
        case .missingClaim, .malformedClaim: ("A check that needs the claim is not made.", "OpenID Connect Core 2")
        case .notYetValid: ("A token can be made to last longer than an hour.", "RFC 7519 4.1.5")
        case .nonceMismatch: ("A stolen token logs the thief in.", "OpenID Connect Core 3.1.3.7 rule 11")
        case .subjectMismatch: ("A session goes on with another person.", "OpenID Connect Core 12.2")
        case .keyThumbprintMismatch: ("A token of another device is accepted.", "RFC 9449 6")
        case .accessTokenHashMismatch:
            ("The access token of another person is used with this login.", "OpenID Connect Core 3.1.3.8")
        case .tokenReplayed, .nonceUsed: ("A stolen token logs the thief in after its owner.", "RFC 8725 2.8")
        default: ("A token that must be refused is accepted.", "OpenID Connect Core 3.1.3.7")
        }
    }
}

struct BackendTrial {
    let issuer: StandInIssuer
    let appID: String
    /// The backend is a server with these routes, or a program, which keeps no state.
    let routes: TriedRoutes?
    let program: TriedProgram?
    let prints: Bool

    func run() throws(TrialOutcome) -> [TrialResult] {
        try waitForBackend()
        // A token that is only wrong under a setting, or by this service's own limit, shows no fault of a backend.
        let entries = CatalogueEntry.all.filter { $0.setting == nil && $0.code != .tokenTooLong }
        return entries.map { entry in
            result(entry.name, entry.fault, entry.code) { try send(login(entry)) }
        } + sequences()
    }

    /// Waits until the backend accepts a good login: it may have just started, or have failed to fetch the keys before.
    private func waitForBackend() throws(TrialOutcome) {
        let deadline = MonotonicClock.now() + .seconds(30)
        var outcome = outcome { try send(login()) }
        if outcome != .accepted, routes != nil {
            StandardError.write("waiting 30 s at most for the backend to accept a good login; now: \(outcome.text)")
            while outcome != .accepted, MonotonicClock.now() < deadline {
                sleep(1)
                outcome = self.outcome { try send(login()) }
            }
        }
        if case .broken = outcome { throw outcome }
    }

    private func send(_ values: [String: String]) throws -> TrialOutcome {
        try routes?.send(values) ?? program?.send(values) ?? .notAsked
    }

    private typealias Attempt = () throws -> TrialOutcome

    private func outcome(_ attempt: Attempt) -> TrialOutcome {
        do {
            return try attempt()
        } catch { return error as? TrialOutcome ?? .broken("\(error)") }
    }

    private func result(_ name: String, _ sent: String, _ code: Rejection.Code?, _ attempt: Attempt) -> TrialResult {
        let result = TrialResult(name: name, sent: sent, code: code, outcome: outcome(attempt))
        if prints { StandardOutput.write(result.text) }
        return result
    }

    private func login(
        _ entry: CatalogueEntry? = nil,
        signedBy minter: @autoclosure () throws -> TokenMinter? = nil
    ) throws -> [String: String] {
        let begun = try routes?.begun() ?? [:]
        let nonce = begun["nonce"] ?? "n-" + .random(32)
        let workshop = try issuer.workshop(nonce: entry?.code == .nonceMismatch ? "n-" + .random(32) : nonce)
        var values = ["nonce": nonce, "app_id": appID].merging(begun) { $1 }
        for (name, value) in entry?.requestMembers(workshop) ?? [] where name != "nonce" {
            guard routes?.takes(name) != false else { throw TrialOutcome.notAsked }
            values[name] = value
        }
        values["token"] = try entry?.token(workshop) ?? workshop.token(signedBy: minter())
        return values
    }

    private func sequences() -> [TrialResult] {
        let withdrawn = issuer.keys.published[1]
        return [
            result("nonce-again", "A good login is sent a second time.", .nonceUsed) {
                guard routes?.begin != nil else { return .notAsked }
                let values = try login()
                guard try send(values) == .accepted else { throw TrialOutcome.broken("the first time is refused") }
                return try send(values)
            },
            result("refresh", "The SDK has refreshed the session's token.", nil) { try refresh() },
            result("other-refresh", "A session is refreshed with another person's token.", .subjectMismatch) {
                try refresh([("sub", "\"1000200030004000\"")])
            },
            result("rotation", "Facebook signs with a key that it has just published.", nil) {
                try issuer.keys.rotate()
                return try send(login())
            },
            result("withdrawn-key", "Its key is no longer published.", .unknownKey) {
                try issuer.keys.rotate()
                // A token with the newest key has the backend fetch the keys, and the withdrawn one is not among them.
                _ = try send(login())
                return try send(login(signedBy: withdrawn))
            },
            result("outage", "Facebook's keys cannot be fetched, and the backend has them.", nil) {
                guard routes != nil else { return .notAsked }
                issuer.beginOutage(.seconds(600))
                return try send(login())
            },
            result("outage-unknown-key", "Facebook's keys cannot be fetched, and a stranger signed it.", .unknownKey) {
                issuer.beginOutage(.seconds(600))
                // Without the keys it is right to say neither yes nor no.
                let outcome = outcome { try send(login(signedBy: .make())) }
                return outcome == .accepted ? .accepted : .refused
            },
            result("outage-over", "Facebook's keys can be fetched again.", nil) {
                issuer.beginOutage(.zero)
                return try send(login())
            },
        ]
    }

    private func refresh(_ claims: [FacebookJSON.Member] = []) throws -> TrialOutcome {
        guard let routes, let url = routes.refresh else { throw TrialOutcome.notAsked }
        return try routes.refresh(login(), with: issuer.workshop(nonce: StandInIssuer.uuid()).token(claims), at: url)
    }
}

/// The outcome of a try; thrown if there is no answer to judge.
enum TrialOutcome: Error, Equatable {
    case accepted, refused, notAsked
    /// Neither yes nor no: a clause.
    case broken(String)

    var text: String {
        switch self {
        case .accepted: "accepted"
        case .refused: "refused"
        case .notAsked: "not asked"
        case .broken(let clause): clause
        }
    }
}

struct TriedRoutes {
    let login: HTTPURL
    /// The route that begins a login; a backend with one keeps state, so that a sequence can be tried.
    let begin: HTTPURL?
    let refresh: HTTPURL?
    let template: String
    let fields: [HTTPSResponse.Field]
    let expected: String
    private let client = HTTPSClient()

    /// The name under which a login's cookies are kept; no template can contain it.
    private static let cookie = "}cookie"

    func takes(_ name: String) -> Bool { template.contains("{\(name)}") }

    /// The values that stand for a new login; `nonce` among them if the backend makes it.
    func begun() throws(TrialOutcome) -> [String: String] {
        guard let url = begin else { return [:] }
        let response = try post(url, [:], "{}")
        guard Self.matches(response.status, "2xx"), let object = JSONObject(response.body),
            object.string("nonce") != nil
        else { throw .broken("\(url) answers \(response.status), or no JSON object with a nonce") }
        var values: [String: String] = [:]
        for (name, value) in object.members where object.document.isString(value) {
            values[name] = object.string(value)
        }
        values[Self.cookie] = Self.cookies(response)
        return values
    }

    func send(_ values: [String: String]) throws(TrialOutcome) -> TrialOutcome {
        try verdict(post(login, values, template), login)
    }

    /// Logs in with these values, then sends a refreshed token in the same session.
    func refresh(_ values: [String: String], with token: String, at url: HTTPURL) throws(TrialOutcome) -> TrialOutcome {
        let response = try post(login, values, template)
        guard Self.matches(response.status, expected) else { throw .broken("the login before it is refused") }
        let session = [Self.cookie: Self.cookies(response), "token": token].compactMapValues { $0 }
        return try verdict(post(url, values.merging(session) { $1 }, template), url)
    }

    private func verdict(_ response: HTTPSResponse, _ url: HTTPURL) throws(TrialOutcome) -> TrialOutcome {
        let status = response.status
        if Self.matches(status, expected) { return .accepted }
        // A service that cannot know says 503. Another error of a server, a redirect and a wrong route are no verdict.
        guard status < 500 || status == 503, status / 100 != 3, ![404, 405, 415, 429].contains(status) else {
            throw .broken("\(url) answers \(status)")
        }
        return .refused
    }

    private func post(_ url: HTTPURL, _ values: [String: String], _ raw: String) throws(TrialOutcome) -> HTTPSResponse {
        let body = values.reduce(raw) { text, value in
            text.replacing("{\(value.key)}", with: JSONText.quoted(value.value).dropFirst().dropLast())
        }
        let cookies = values[Self.cookie].map { [(name: "Cookie", value: $0)] } ?? []
        do throws(ClientError) {
            return try client.send(HTTPSRequest(.post, url, headers: fields + cookies, body: .json(Array(body.utf8))))
        } catch { throw .broken("\(url) gives no answer: \(error)") }
    }

    private static func cookies(_ response: HTTPSResponse) -> String? {
        let cookies = response.fields.filter { $0.name == "set-cookie" }.map { $0.value.prefix { $0 != ";" } }
            .joined(separator: "; ")
        return cookies.isEmpty ? nil : cookies
    }

    private static func matches(_ status: Int, _ pattern: String) -> Bool {
        zip("\(status)", pattern).allSatisfy { $1 == "x" || $0 == $1 }
    }
}

struct TriedProgram {
    /// The longest run in seconds, with the start of an interpreter on a slow machine.
    private static let seconds = 60

    let command: String
    let variables: [String: String]

    func send(_ values: [String: String]) throws(TrialOutcome) -> TrialOutcome {
        let named =
            values.filter { $0.key != "token" }.map { ($0.key.uppercased(), $0.value) } + variables.map { ($0, $1) }
        let assignments = named.map { "\($0)=\($1.shellWord)" }.sorted().joined(separator: " ")
        let line = "\(assignments) timeout \(Self.seconds) sh -c \(command.shellWord) >/dev/null"
        // The shell gets text that is quoted above; the stream is closed below, by the one call that may.
        guard let stream = unsafe popen(line, "w") else { throw .broken("the shell cannot be started") }
        // A program that does not read its input fails the write here; pclose then tells the exit code alone.
        unsafe setvbuf(stream, nil, _IONBF, 0)
        unsafe fputs(values["token"] ?? "", stream)
        let status = unsafe pclose(stream)
        // The exit code is in the second byte; the first one has the signal that ended the shell.
        guard status >= 0, status & 0x7F == 0 else { throw .broken("the program was ended by a signal") }
        switch status >> 8 {
        case 0: return .accepted
        case 1...63: return .refused
        case 124: throw .broken("the program has not ended within \(Self.seconds) s")
        case let code: throw .broken("the program failed with exit code \(code)")
        }
    }
}
