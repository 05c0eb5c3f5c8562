internal import Glibc
internal import LLBytes
internal import LLHTTP
internal import LLJOSE

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
        } catch {
            throw .broken("\(url) gives no answer: \(error)")
        }
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
