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
            Exit code 0 all right, 1 a wrong answer, 3 no verdict on a good login, 64 usage, 75 an address that is taken.
            """
    )

    @Option(help: ArgumentHelp("The route that takes a login, by POST.", valueName: "url"), transform: readURL)
    var url: HTTPURL?

    @Option(help: "The JSON body.")
    var send = #"{"id_token": "{token}", "nonce": "{nonce}"}"#

    @Option(
        help: ArgumentHelp("A field of each request, such as 'X-Api-Key: demo'; repeat it.", valueName: "name: value"),
        transform: readField
    )
    var header: [HTTPSResponse.Field] = []

    @Option(help: ArgumentHelp("The route that gives a login's nonce, by POST.", valueName: "url"), transform: readURL)
    var begin: HTTPURL?

    @Option(
        help: ArgumentHelp("The route that takes a refreshed token of a session, by POST.", valueName: "url"),
        transform: readURL
    )
    var refresh: HTTPURL?

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

    @Option(help: "Make the same keys and nonces in each run.")
    var seed: UInt64?

    @Option(help: ArgumentHelp("A file for JUnit's form.", valueName: "file"), completion: .file())
    var junit: String?

    @Flag(help: "Print one JSON object.")
    var json = false

    func validate() throws {
        guard (url == nil) != (exec == nil) else { throw ValidationError("Give --url or --exec.") }
        guard exec == nil || begin == nil && refresh == nil else {
            throw ValidationError("--begin and --refresh go with --url.")
        }
        guard JSONObject(Array(send.utf8)) != nil, send.contains("{token}") else {
            throw ValidationError("--send must be a JSON object with \"{token}\" as a text.")
        }
        guard expect.count == 3, expect.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == "x") }) else {
            throw ValidationError("--expect is a status such as 200, or a class such as 2xx.")
        }
    }

    private static func readURL(_ text: String) throws -> HTTPURL {
        guard let url = try? HTTPURL(parsing: text, allowsPlain: true) else {
            throw ValidationError("it is no http or https URL.")
        }
        return url
    }

    private static func readField(_ text: String) throws -> HTTPSResponse.Field {
        guard let colon = text.firstIndex(of: ":") else { throw ValidationError("it is not 'NAME: VALUE'.") }
        return (String(text[..<colon]), String(text[colon...].dropFirst().drop { $0 == " " }))
    }

    func run() throws {
        if let seed { Chance.repeats(from: seed) }
        let issuer = try StandInIssuer(audience: appID, maxAgeSeconds: 60, appSecret: "stand-in-app-secret")
        let base = try issuer.serve(at: issuerListen, "--issuer-listen")
        defer { issuer.stop() }
        let keys = "\(base)/.well-known/oauth/openid/jwks/"
        if !json { StandardOutput.write("Facebook is played on \(base), with its keys at \(keys)") }
        let variables = ["APP_ID": appID, "ISSUER": "https://www.facebook.com", "JWKS_URL": keys]
        let routes = url.map {
            TriedRoutes(login: $0, begin: begin, refresh: refresh, template: send, fields: header, expected: expect)
        }
        let program = exec.map { TriedProgram(command: $0, variables: variables) }
        let trial = BackendTrial(issuer: issuer, appID: appID, routes: routes, program: program, prints: !json)
        let results: [TrialResult]
        do throws(TrialOutcome) {
            results = try trial.run()
        } catch { throw Exit.refusing("there is no verdict on a good login: \(error.text)", Exit.unavailable) }
        if json { StandardOutput.write(json: Self.json(results)) } else { StandardOutput.write(Self.score(results)) }
        if let junit {
            do {
                try Data(Self.junit(results).utf8).write(to: URL(filePath: junit))
            } catch {
                throw Exit.refusing("--junit \(junit) cannot be written; name a file in a folder that you may write to")
            }
        }
        guard results.allSatisfy(\.isRight) else { throw Exit.rejected }
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
            let (must, did) = (result.mustAccept ? "accepted" : "refused", result.outcome.text)
            let failure = escaped("must be \(must): \(did). \(result.reason.why)")
            let verdict =
                result.outcome == .notAsked
                ? "<skipped/>" : result.isRight ? "" : "<failure message=\"\(failure)\"/>"
            return "<testcase classname=\"limited-login.catalogue\" name=\"\(result.name)\">\(verdict)</testcase>\n"
        }
        let failures = results.filter { !$0.isRight }.count
        return "<testsuite name=\"limited-login catalogue\" tests=\"\(results.count)\" failures=\"\(failures)\">\n"
            + cases.joined() + "</testsuite>\n"
    }
}
