internal import ArgumentParser
internal import Glibc
internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import LLStandIn
internal import LimitedLogin

struct Demo: ServingCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Runs the service and a stand-in for Facebook in one process, with a page that shows every check.",
        discussion: """
            It needs no network and no Facebook app; the stand-in plays Graph too. Callers need the key 'demo', which is \
            no secret. Stop it with Control-C. Exit code 0 stopped, 64 usage, 75 an address that is taken.
            """
    )

    @Option(help: help("service", 8080), transform: Loopback.read)
    var listen: SocketAddress?

    @Option(help: help("administrative listener", 8081), transform: Loopback.read)
    var adminListen: SocketAddress?

    @Option(help: help("stand-in issuer and the page", 8090), transform: Loopback.read)
    var issuerListen: SocketAddress?

    @Flag(
        help: """
            Listen on all addresses of a container, for 'docker run -p 127.0.0.1:8080:8080 -p 127.0.0.1:8090:8090'. Requests \
            are answered for the hosts localhost and 127.0.0.1 alone.
            """
    )
    var container = false

    private static func help(_ name: String, _ port: UInt16) -> ArgumentHelp {
        ArgumentHelp(
            """
            Address and port of the \(name), on loopback; port 0 takes a free one. \
            (default: 127.0.0.1:\(port), or a free port where that is taken)
            """,
            valueName: "host:port"
        )
    }

    func validate() throws {
        guard !container || listen == nil && issuerListen == nil else {
            throw ValidationError("--container listens on 0.0.0.0:8080 and 0.0.0.0:8090; leave out the addresses.")
        }
    }

    /// The address to listen on: the named one, else the usual port, or a free port if the usual one is taken.
    private func place(_ named: SocketAddress?, _ name: String, _ port: UInt16) -> SocketAddress {
        if let named { return named }
        let usual = SocketAddress.loopback(port: port)
        // The socket closes again at once.
        if (try? Socket.listener(on: usual, backlog: 1, sharesPort: false)) != nil { return usual }
        StandardError.write("limited-login: \(usual) is taken, so the \(name) has a free port")
        return .loopback(port: 0)
    }

    func run() throws {
        // The ports that a container publishes are taken on all its addresses.
        let (own, issuers) = container ? (SocketAddress("0.0.0.0:8080"), SocketAddress("0.0.0.0:8090")) : (nil, nil)
        let listen = place(own ?? listen, "service", 8080)
        let adminListen = place(adminListen, "administrative listener", 8081)
        let issuerListen = place(issuers ?? issuerListen, "stand-in issuer", 8090)
        let webhookSecret = "whsec_" + Base64.encode(try RandomBytes.make(count: 32))
        let secrets = try WebhookSecrets(parsing: Array(webhookSecret.utf8), place: "callbacks_secret_file")
        let listener = HTTPServerConfiguration(address: .network(.loopback(port: 0)), workerCount: 1)
        let backend = HTTPServer(configuration: listener) { _ in DemonstrationBackend(secrets) }
        try backend.start()
        let backendURL = backend.localAddress.map { "http://\($0)" } ?? ""
        let appSecret = Hexadecimal.encode(try RandomBytes.make(count: 16))
        let files = try Self.memoryFiles([
            "client_keys_file": "demo \(try SHA256.digest(of: Array(Self.clientKey.utf8).span).hexadecimal)",
            "app_secrets_file": "\(Self.appID) \(appSecret)", "callbacks_secret_file": webhookSecret,
            // These are made for this run; its nonces and tokens are invalid afterwards.
            "nonce_secret_file": Hexadecimal.encode(try RandomBytes.make(count: NonceSecret.leastByteCount)),
            "signing_keys_file": try SigningKey(generating: .es256).privatePEM(),
        ])
        let issuer = try StandInIssuer(audience: Self.appID, appSecret: appSecret)
        let demo = DemoPage(issuer: issuer)
        let facebook = try issuer.serve(at: issuerListen, "--issuer-listen") { PageHandler(backend: demo, behind: $0) }
        let configuration = try ConfigurationLoader.load(
            flags: [
                "app_ids": Self.appID,
                "jwks_urls": "\(facebook)/.well-known/oauth/openid/jwks/",
                "access_tokens": "accept",
                "graph_url": facebook,
                "uninstall_url": "\(facebook)/platform/uninstall/",
                "callbacks_url": "\(backendURL)/webhooks",
                "gateway": "enabled",
                "dpop": "required_if_bound",
                "gateway_origin": "https://app.example.com",
                "issuer": "https://login.example.com",
                "token_audiences": "https://api.example.com",
                "data_deletion_status_url": "\(backendURL)/deletion",
                "listen": listen.description,
                "admin_listen": adminListen.description,
                "log_level": "warning",
            ].merging(files) { $1 },
            environment: [:],
            file: nil,
            readsDefaultFile: false
        )
        let logger = LoggingSetup.bootstrap(configuration).logger
        let application = try Application(configuration, logger: logger, isLocal: true)
        try ProcessSignals.run { () throws(StartError) in
            try application.start(tryingFor: .zero)
            let service = application.ownAddress.map(\.description)
            issuer.service.withLock { $0 = service.map { "http://\($0)" } }
            demo.open(application)
            let stand = issuer.address.map(\.reachable.description)
            StandardOutput.write(Self.text(service: service ?? "?", issuer: stand ?? "?"))
        } stop: {
            application.stop()
            issuer.stop()
            backend.stop(drainDelay: .zero, grace: .seconds(1))
        }
    }

    /// The app id of the demonstration's tokens; no real app has it.
    static let appID = "123456789012345"
    /// The key of the demonstration's caller. It is no secret, and only a demonstration accepts it.
    static let clientKey = "demo"

    /// The names of files in memory with these texts: no disk gets a secret, and the container's image needs no folder
    /// that can be written to. They exist until the program ends.
    private static func memoryFiles(_ texts: [String: String]) throws -> [String: String] {
        try texts.mapValues { text in
            let (descriptor, bytes) = (Socket.memoryFile(), Array("\(text)\n".utf8))
            guard LogWriter.write(bytes, to: descriptor) == bytes.count, fchmod(descriptor, 0o600) == 0 else {
                throw StartError("no file can be made in memory: \(SystemReason.sentence(for: errno))")
            }
            return "/proc/self/fd/\(descriptor)"
        }
    }

    private static func text(service: String, issuer: String) -> String {
        func command(_ path: String) -> String {
            "curl -s \(issuer)\(path) | curl -s --json @- -H X-Api-Key:\(clientKey) \(service)/verify"
        }
        return """
            limited-login demo: the service on http://\(service), a stand-in for Facebook on http://\(issuer)

            Open the page:  http://\(issuer)/

            Or paste these into another terminal:

            # a good login -> 200, the Profile
            \(command("/login"))

            # an expired token -> 401 expired
            \(command("/login/expired"))

            # a changed token -> 401 invalid_signature
            \(command("/login/changed"))

            Control-C stops it.
            """
    }
}

/// The app's backend in `demo`. It receives the webhooks of callbacks and revocations, verifies them as any backend must,
/// prints them, and serves the page that shows a person the state of a data deletion.
final class DemonstrationBackend: HTTPRequestHandler {
    private let secrets: WebhookSecrets
    /// The last requests for deletion: the query of each status page, and the user.
    private var deletions: [(query: String, userID: String)] = []

    init(_ secrets: WebhookSecrets) { self.secrets = secrets }

    func receiveHead(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> HeadDecision { .readBody(atMost: 16_384) }

    func receiveRequest(_ exchange: inout HTTPExchange, bytes: Span<UInt8>) -> RequestDecision {
        answer(StandInRequest(exchange, bytes, now: WallClock.unixSeconds())).send(in: &exchange)
    }

    private func answer(_ request: StandInRequest) -> StandInAnswer {
        if request.method == .post, request.path == "/webhooks" {
            return isGenuine(request) && take(request.body) ? .object([]) : .text(400, "not genuine")
        }
        let deletion = deletions.last { $0.query == request.queryText }
        guard request.method == .get, request.path == "/deletion", let deletion else { return .text(404, nil) }
        return .text(200, "Everything about user \(deletion.userID) was deleted.")
    }

    /// True if the webhook was signed with the secret, within five minutes (Standard Webhooks, "Verifying").
    private func isGenuine(_ request: StandInRequest) -> Bool {
        let fields = request.fields
        guard let id = fields["webhook-id"], let seconds = fields["webhook-timestamp"].flatMap({ Int64($0) }),
            let signature = fields["webhook-signature"], (request.now - 300...request.now + 300).contains(seconds),
            let genuine = try? secrets.signature(id: id, timestamp: seconds, body: request.body)
        else { return false }
        return ConstantTime.areEqual(signature.utf8.span, genuine.utf8.span)
    }

    private func take(_ body: [UInt8]) -> Bool {
        guard let event = JSONObject(body), let type = event.string("type"),
            let data = event.object("data"), let userID = event.string("user_id", of: data)
        else { return false }
        if type == "user.data_deletion_requested", let code = event.string("confirmation_code", of: data) {
            deletions = deletions.suffix(99) + [("code=\(code)", userID)]
        }
        StandardOutput.write(line: "webhook: \(type), user \(userID)")
        return true
    }
}
