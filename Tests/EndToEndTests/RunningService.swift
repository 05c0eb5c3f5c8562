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
    /// It ends with the service.
    private let issuer: IssuerProcess?
    /// The address on which the service listens, of any kind.
    let listenAddress: ListenAddress
    let adminAddress: SocketAddress

    /// Starts the service and waits until it listens; with an issuer also until it is ready with its keys.
    /// - Parameters:
    ///   - issuer: The source of its keys; nil for one that is down.
    ///   - environment: Settings in lower case, and other variables; nil unsets one.
    ///   - shell: a shell command to run before the service, such as `ulimit`.
    init(_ issuer: IssuerProcess? = nil, _ environment: [String: String?] = [:], shell: String = "") throws {
        let variables = [
            "app_ids": RunningService.appID, "jwks_urls": issuer?.jwksURL ?? "http://127.0.0.1:1/",
            "listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0", "log_format": "json", "log_level": "trace",
            // Tests of signals count reloads; those of followed files set it anew.
            "watch_files": "disabled",
        ].merging(environment) { $1 }
        self.issuer = issuer
        secrets = variables.flatMap { Self.secrets(inFileOf: $0, path: $1 ?? "") }
        let words = ["-c", "\(shell)\nexec \"$0\" serve", ServiceProcess.executable]
        process = try ServiceProcess(words, environment: variables, program: "/bin/sh")
        try #require(process.waitForError("\"message\":\"listening\""), "\(process.errorText)")
        listenAddress = try Self.address(after: "\"address\":\"", in: process.errorText)
        adminAddress = try #require(Self.address(after: "\"admin_address\":\"", in: process.errorText).network)
        if issuer != nil { try #require(try waitUntilReady()) }
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
        guard name.contains("_secret"), let text = try? String(contentsOfFile: path, encoding: .utf8) else { return [] }
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

    func verify(_ token: String) throws -> TestResponse { try exchange(Self.login(token)) }

    /// The text of a `POST /verify` with the nonce `n-1`.
    static func login(_ token: String) -> String { request("{\"id_token\":\"\(token)\",\"nonce\":\"n-1\"}") }

    /// The text of a `POST /verify`.
    static func request(_ body: String) -> String {
        "POST /verify HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    /// Waits until `/readyz` answers 200; false if it never does.
    func waitUntilReady() throws -> Bool { try becomesTrue { try get("/readyz").status == 200 } }

    /// Stops it with SIGTERM, and expects exit code 0.
    func stop() {
        process.terminate()
        #expect(process.waitForExit() == 0)
    }
}

extension TestResponse {
    /// The first text of a member, found in the body's text.
    func member(_ name: String) -> String? {
        guard let start = text.range(of: "\"\(name)\":\"")?.upperBound else { return nil }
        return text[start...].firstIndex(of: "\"").map { String(text[start..<$0]) }
    }

    /// The problem's code.
    var code: String? { member("code") }
}

/// `limited-login issuer` on a free port, and a client for it.
final class IssuerProcess {
    let process: ServiceProcess
    let address: SocketAddress

    init(_ arguments: String...) throws {
        process = try ServiceProcess(["issuer", "--listen", "127.0.0.1:0"] + arguments)
        try #require(process.waitForOutput("/rotate"), "\(process.errorText)")
        let mark = "stand-in issuer on http://"
        address = try #require(RunningService.address(after: mark, in: process.outputText).network)
    }

    /// The process ends with this value, so that a test keeps it for as long as it is needed.
    deinit { process.end() }

    static let keysPath = "/.well-known/oauth/openid/jwks/"

    var jwksURL: String { "http://\(address)\(Self.keysPath)" }

    func exchange(_ request: String) throws -> TestResponse {
        try #require(try BlockingClient(address).exchange(request))
    }

    /// - Parameter fields: Whole lines.
    func get(_ path: String, _ fields: String = "", host: String = "i") throws -> TestResponse {
        try exchange("GET \(path) HTTP/1.1\r\nHost: \(host)\r\n\(fields)\r\n")
    }

    func post(_ path: String, _ body: String = "") throws -> TestResponse {
        try exchange("POST \(path) HTTP/1.1\r\nHost: issuer\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }

    /// Mints an id token.
    func token(_ claims: String = #"{"nonce":"n-1"}"#) throws -> String {
        try #require(try post("/tokens", claims).member("id_token"))
    }

    /// Mints an access token.
    func accessToken(_ body: String, _ query: String = "") throws -> String {
        try #require(try post("/access-tokens\(query)", body).member("access_token"))
    }
}
