internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LLStandIn
internal import LimitedLogin

struct RunCatalogue: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract:
            "Tries a backend: sends it every token of the catalogue, plays Facebook meanwhile, and prints a score.",
        discussion: """
            Have the backend fetch its keys from http://ADDRESS/.well-known/oauth/openid/jwks/, with the address of \
            --issuer-listen. In --send {token}, {nonce}, {subject}, {key_thumbprint}, {access_token} and {app_id} stand for \
            those of each try, and {NAME} for a text of --begin's answer. A program gets the token on standard input and the \
            rest as NONCE, SUBJECT, APP_ID, ISSUER, JWKS_URL and so on; exit code 0 is yes, and from 64 on a failure. \
            Exit code 0 all right, 1 a wrong answer, 64 usage, 75 an address that is taken.
            """
    )

    @Option(help: "The route that takes a login, by POST.")
    var url: String?

    @Option(help: "The JSON body.")
    var send = #"{"id_token": "{token}", "nonce": "{nonce}"}"#

    @Option(
        help: ArgumentHelp("A field of each request, such as 'X-Api-Key: demo'; repeat it.", valueName: "name: value")
    )
    var header: [String] = []

    @Option(help: ArgumentHelp("The route that gives a login's nonce, by POST.", valueName: "url"))
    var begin: String?

    @Option(help: ArgumentHelp("The status that means yes.", valueName: "status"))
    var expect = "2xx"

    @Option(help: ArgumentHelp("The program, for the shell.", valueName: "command"))
    var exec: String?

    @Option(
        help: ArgumentHelp("The played Facebook's address. (default: 127.0.0.1:8090)", valueName: "host:port"),
        transform: Loopback.read
    )
    var issuerListen = SocketAddress.loopback(port: 8090)

    @Option(name: .customLong("app-id"), help: "The app that the tokens are for.")
    var appID = Demo.appID

    @Option(help: "Send the same tokens in each run.")
    var seed: UInt64?

    @Option(help: ArgumentHelp("A file for JUnit's form.", valueName: "file"), completion: .file())
    var junit: String?

    @Flag(help: "Print one JSON object.")
    var json = false

    func validate() throws {
        guard (url == nil) != (exec == nil) else { throw ValidationError("Give --url or --exec.") }
        guard exec == nil || begin == nil else { throw ValidationError("--begin goes with --url.") }
        for url in [url, begin].compactMap({ $0 }) where (try? HTTPURL(parsing: url, allowsPlain: true)) == nil {
            throw ValidationError("\(url) is no http or https URL.")
        }
        guard JSONObject(Array(send.utf8)) != nil, send.contains("{token}") else {
            throw ValidationError("--send must be a JSON object with \"{token}\" as a text.")
        }
        guard expect.count == 3, expect.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == "x") }) else {
            throw ValidationError("--expect is a status such as 200, or a class such as 2xx.")
        }
        guard header.allSatisfy({ $0.contains(":") }) else { throw ValidationError("--header is 'NAME: VALUE'.") }
    }

    func run() throws {
        if let seed { Chance.repeats(from: seed) }
        let issuer = try StandInIssuer(audience: appID, maxAgeSeconds: 60, appSecret: "stand-in-app-secret")
        do throws(SocketError) {
            try issuer.start(at: issuerListen)
        } catch {
            throw StartError(error, "--issuer-listen")
        }
        defer { issuer.stop() }
        let base = "http://\((issuer.address ?? issuerListen).reachable)"
        if !json { StandardOutput.write("Facebook is played on \(base), with its keys at \(base)\(Self.keySetPath)") }
        let trial = BackendTrial(issuer: issuer, appID: appID, backend: try backend(base))
        trial.run()
        let results = trial.results
        if json {
            StandardOutput.write(json: Self.json(results))
        } else {
            for result in results { StandardOutput.write(result.text) }
            StandardOutput.write(Self.score(results))
        }
        if let junit {
            do {
                try Data(Self.junit(results).utf8).write(to: URL(filePath: junit))
            } catch {
                throw Exit.refusing("--junit \(junit) cannot be written; name a file in a folder that you may write to")
            }
        }
        guard results.allSatisfy(\.isRight) else { throw Exit.rejected }
    }

    private static let keySetPath = "/.well-known/oauth/openid/jwks/"

    private func backend(_ base: String) throws -> any TriedBackend {
        if let exec {
            return TriedProgram(
                command: exec,
                variables: [
                    "APP_ID": appID, "ISSUER": "https://www.facebook.com", "JWKS_URL": base + Self.keySetPath,
                ]
            )
        }
        let fields = header.map { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            return (name: String(parts[0]), value: String(parts[1].drop { $0 == " " }))
        }
        let urls = [url, begin].map { $0.flatMap { try? HTTPURL(parsing: $0, allowsPlain: true) } }
        guard let login = urls[0] else { throw ValidationError("Give --url or --exec.") }
        return TriedRoute(login: login, begin: urls[1], template: send, fields: fields, expected: expect)
    }

    private static func score(_ results: [TrialResult]) -> String {
        let asked = results.filter { $0.outcome != .notAsked }
        let wrong = asked.filter { !$0.isRight }.count
        return "\n\(asked.count - wrong) of \(asked.count) right"
            + (wrong == 0 ? "" : ", \(wrong) wrong: see each 'WRONG' above")
            + (asked.count == results.count ? "" : "; \(results.count - asked.count) not asked")
    }

    private static func json(_ results: [TrialResult]) -> JSON {
        let asked = results.filter { $0.outcome != .notAsked }
        return [
            "right": JSON(asked.filter(\.isRight).count), "asked": JSON(asked.count),
            "tries": JSON(
                results.map { result in
                    [
                        "name": JSON(result.name), "sent": JSON(result.sent),
                        "must": result.mustAccept ? "accept" : "refuse", "did": JSON(result.outcome.text),
                        "right": JSON(result.isRight), "why": JSON(result.reason.why),
                        "clause": JSON(result.reason.clause),
                    ]
                }
            ),
        ]
    }

    private static func junit(_ results: [TrialResult]) -> String {
        func escaped(_ text: String) -> String {
            [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;")]
                .reduce(text) { $0.replacing($1.0, with: $1.1) }
        }
        let cases = results.map { result in
            let verdict =
                result.outcome == .notAsked
                ? "<skipped/>"
                : result.isRight ? "" : "<failure message=\"\(escaped(result.failure))\"/>"
            return "<testcase classname=\"limited-login.catalogue\" name=\"\(result.name)\">\(verdict)</testcase>\n"
        }
        let failures = results.filter { !$0.isRight }.count
        return "<testsuite name=\"limited-login catalogue\" tests=\"\(results.count)\" failures=\"\(failures)\">\n"
            + cases.joined() + "</testsuite>\n"
    }
}

/// The backend that is tried.
protocol TriedBackend {
    /// True if the backend keeps state between logins, so that what only a sequence shows can be tried.
    var hasMemory: Bool { get }
    /// True if a try can tell the backend this value.
    func takes(_ name: String) -> Bool
    /// Begins a login.
    /// - Returns: The values that stand for the login; `nonce` among them if the backend makes it.
    func begin() throws(TrialFailure) -> [String: String]
    /// Sends the token with these values.
    func send(_ values: [String: String]) throws(TrialFailure) -> TrialOutcome
}

/// The reason why a try has no answer, as a clause.
struct TrialFailure: Error {
    let clause: String
}

enum TrialOutcome: Equatable {
    case accepted, refused, notAsked
    /// Neither yes nor no.
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

/// A backend that is asked by HTTP.
final class TriedRoute: TriedBackend {
    private let login: HTTPURL
    private let beginning: HTTPURL?
    private let template: String
    private let fields: [HTTPSResponse.Field]
    private let expected: String
    private let client = HTTPSClient()

    init(login: HTTPURL, begin: HTTPURL?, template: String, fields: [HTTPSResponse.Field], expected: String) {
        (self.login, beginning, self.template) = (login, begin, template)
        (self.fields, self.expected) = (fields, expected)
    }

    var hasMemory: Bool { beginning != nil }

    func takes(_ name: String) -> Bool { template.contains("{\(name)}") }

    func begin() throws(TrialFailure) -> [String: String] {
        guard let beginning else { return [:] }
        let response = try post(beginning, "{}", cookie: nil)
        guard matches(response.status, "2xx"), let object = JSONObject(response.body), object.string("nonce") != nil
        else {
            throw TrialFailure(clause: "--begin answers \(response.status), or no JSON object with a nonce")
        }
        var values: [String: String] = [:]
        for (name, value) in object.members where object.document.isString(value) {
            values[name] = object.string(value)
        }
        let cookies = response.fields.filter { $0.name == "set-cookie" }.map { $0.value.prefix { $0 != ";" } }
        values[Self.cookie] = cookies.joined(separator: "; ")
        return values
    }

    /// The name under which a login's cookies are kept; no template can contain it.
    private static let cookie = "}cookie"

    func send(_ values: [String: String]) throws(TrialFailure) -> TrialOutcome {
        let body = values.reduce(template) { text, value in
            text.replacing("{\(value.key)}", with: JSONText.quoted(value.value).dropFirst().dropLast())
        }
        let status = try post(login, body, cookie: values[Self.cookie]).status
        if matches(status, expected) { return .accepted }
        // A service that cannot know says 503; any other error of a server is no verdict.
        return status < 500 || status == 503 ? .refused : .broken("the backend answers \(status)")
    }

    private func post(_ url: HTTPURL, _ body: String, cookie: String?) throws(TrialFailure) -> HTTPSResponse {
        let cookies = cookie.map { $0.isEmpty ? [] : [(name: "Cookie", value: $0)] } ?? []
        do throws(HTTPSClientError) {
            let request = HTTPSRequest(.post, url, headers: fields + cookies, body: .json(Array(body.utf8)))
            return try client.send(request)
        } catch {
            throw TrialFailure(clause: "\(url) gives no answer: \(error)")
        }
    }

    private func matches(_ status: Int, _ pattern: String) -> Bool {
        zip("\(status)", pattern).allSatisfy { $1 == "x" || $0 == $1 }
    }
}

/// A backend that is a program: a verifier.
struct TriedProgram: TriedBackend {
    /// The longest run in seconds, with the start of an interpreter on a slow machine.
    private static let seconds = 60

    let command: String
    let variables: [String: String]

    var hasMemory: Bool { false }

    func takes(_ name: String) -> Bool { true }

    func begin() -> [String: String] { [:] }

    func send(_ values: [String: String]) throws(TrialFailure) -> TrialOutcome {
        let named =
            values.filter { $0.key != "token" }.map { ($0.key.uppercased(), $0.value) } + variables.map { ($0, $1) }
        let assignments = named.map { "\($0)=\(Self.quoted($1))" }.sorted().joined(separator: " ")
        let line = "\(assignments) timeout \(Self.seconds) sh -c \(Self.quoted(command)) >/dev/null"
        // The shell gets text that is quoted above; the stream is closed below, by the one call that may.
        guard let stream = unsafe popen(line, "w") else { throw TrialFailure(clause: "the shell cannot be started") }
        // A program that does not read its input fails the write here; pclose then tells the exit code alone.
        unsafe setvbuf(stream, nil, _IONBF, 0)
        unsafe fputs(values["token"] ?? "", stream)
        let status = unsafe pclose(stream)
        // The exit code is in the second byte; the first one has the signal that ended the shell.
        guard status >= 0, status & 0x7F == 0 else { return .broken("the program was ended by a signal") }
        switch status >> 8 {
        case 0: return .accepted
        case 1...63: return .refused
        case 124: return .broken("the program has not ended within \(Self.seconds) s")
        case let code: return .broken("the program failed with exit code \(code)")
        }
    }

    private static func quoted(_ text: String) -> String { "'\(text.replacing("'", with: "'\\''"))'" }
}
