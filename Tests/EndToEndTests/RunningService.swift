import Foundation
import LLHTTP
import LLTestSupport
import Testing

/// `limited-login serve` on free ports, and a client for it.
///
/// In every test its log at the level trace, its metrics and its refusals are checked: none of them may hold a token,
/// a secret, a name or an e-mail address.
final class RunningService {
    let process: ServiceProcess
    private let secrets: [String]
    /// The issuer that ``withIssuer(_:)`` started; it ends with the service.
    private var issuer: IssuerProcess?
    /// The address on which the service listens, of any kind.
    let listenAddress: ListenAddress
    let adminAddress: SocketAddress

    /// Starts the service and waits until it listens.
    /// - Parameter shell: a shell command to run before the service, such as `ulimit`.
    init(
        jwksURL: String,
        environment: [String: String] = [:],
        arguments: [String] = [],
        withAppID: Bool = true,
        shell: String? = nil
    ) throws {
        var variables = [
            "LIMITED_LOGIN_APP_IDS": RunningService.appID, "LIMITED_LOGIN_JWKS_URLS": jwksURL,
            "LIMITED_LOGIN_LISTEN": "127.0.0.1:0", "LIMITED_LOGIN_ADMIN_LISTEN": "127.0.0.1:0",
            "LIMITED_LOGIN_LOG_FORMAT": "json", "LIMITED_LOGIN_LOG_LEVEL": "trace",
            // Tests of signals count reloads; those of followed files set it anew.
            "LIMITED_LOGIN_WATCH_FILES": "disabled",
        ]
        if !withAppID { variables["LIMITED_LOGIN_APP_IDS"] = nil }
        variables.merge(environment) { _, new in new }
        secrets = variables.flatMap { Self.secrets(inFileOf: $0, path: $1) }
        if let shell {
            let script = "\(shell); exec \"$0\" serve \"$@\""
            let words = ["-c", script, ServiceProcess.executable] + arguments
            process = try ServiceProcess(words, environment: variables, program: "/bin/sh")
        } else {
            process = try ServiceProcess(["serve"] + arguments, environment: variables)
        }
        try #require(process.waitForError("\"message\":\"listening\""), "\(process.errorText)")
        listenAddress = try Self.address(after: "\"address\":\"", in: process.errorText)
        adminAddress = try #require(Self.address(after: "\"admin_address\":\"", in: process.errorText).network)
    }

    /// A stand-in issuer, and a service that is ready with its keys.
    static func withIssuer(_ environment: [String: String] = [:]) throws -> (IssuerProcess, RunningService) {
        let issuer = try IssuerProcess()
        let service = try RunningService(jwksURL: issuer.jwksURL, environment: environment)
        service.issuer = issuer
        #expect(try service.waitUntilReady())
        return (issuer, service)
    }

    deinit {
        process.end()
        expectNothingPrivate(process.errorText + process.outputText)
    }

    /// Names and addresses of the tests' users, and the beginnings of an id token and a signed request.
    private static let neverTold = [
        "Jane", "Zoe", "Quartz", "@example.com", "@b.example", "eyJhbGciOi", "signed_request=",
    ]

    /// An access token: `EAA` and ten letters or digits. A UUID in a file's name has at most nine after an `EAA`.
    private static func accessToken(in text: String) -> Range<String.Index>? {
        text.ranges(of: "EAA").first { place in
            let rest = text[place.upperBound...].prefix(10)
            return rest.count == 10 && rest.allSatisfy { $0.isLetter || $0.isNumber }
        }
    }

    /// The words of a file of secrets, except short ones and numbers; empty for any other setting.
    private static func secrets(inFileOf name: String, path: String) -> [String] {
        guard name.contains("_SECRET"), let text = try? String(contentsOfFile: path, encoding: .utf8) else { return [] }
        return text.split(whereSeparator: \.isWhitespace).map(String.init).filter { $0.count > 8 && Int($0) == nil }
    }

    private func expectNothingPrivate(_ text: String) {
        let places = (Self.neverTold + secrets).map { text.range(of: $0) } + [Self.accessToken(in: text)]
        for place in places.compactMap(\.self) {
            let around = text[..<place.lowerBound].suffix(150) + "…" + text[place.upperBound...].prefix(50)
            Issue.record("\(text[place].prefix(3))… is told: \(around)")
        }
    }

    static let appID = "123456789012345"

    /// The service's address and port; port 0 if it has a Unix socket.
    var address: SocketAddress { listenAddress.network ?? .loopback(port: 0) }

    static func address(after mark: String, in text: String) throws -> ListenAddress {
        let start = try #require(text.range(of: mark)).upperBound
        let end = try #require(text[start...].firstIndex { $0 == "\"" || $0 == "\n" || $0 == "," })
        let found = String(text[start..<end])
        if found.hasPrefix(ListenAddress.unixPrefix) {
            return .unix(try UnixSocketPath(String(found.dropFirst(ListenAddress.unixPrefix.count))))
        }
        return .network(try #require(SocketAddress(found)))
    }

    /// Sends one request on a new connection.
    func exchange(_ request: String, admin: Bool = false) throws -> TestResponse {
        let client = try BlockingClient(admin ? .network(adminAddress) : listenAddress)
        let response = try #require(client.exchange(request))
        if admin || response.status >= 400 { expectNothingPrivate(response.text) }
        return response
    }

    func get(_ path: String, admin: Bool = false) throws -> TestResponse {
        try exchange("GET \(path) HTTP/1.1\r\nHost: test\r\n\r\n", admin: admin)
    }

    func verify(_ token: String, nonce: String = "n-1") throws -> TestResponse {
        try exchange(Self.request("{\"id_token\":\"\(token)\",\"nonce\":\"\(nonce)\"}"))
    }

    /// The text of a `POST /verify`.
    static func request(_ body: String) -> String {
        "POST /verify HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    /// Waits until `/readyz` answers a status; false if it never does.
    func waitUntilReady(_ status: Int = 200) throws -> Bool {
        try becomesTrue { try get("/readyz").status == status }
    }
}

extension TestResponse {
    /// The problem's code, found in its text.
    var code: String? {
        guard let start = text.range(of: "\"code\":\"")?.upperBound else { return nil }
        return text[start...].firstIndex(of: "\"").map { String(text[start..<$0]) }
    }
}
