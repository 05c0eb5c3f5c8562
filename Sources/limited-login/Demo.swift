internal import ArgumentParser
internal import Bytes
internal import FoundationEssentials
internal import HTTPServer
internal import LimitedLogin
internal import Logging
internal import OpenSSL
internal import Sockets
internal import StandInIssuer
internal import VerificationService

/// `demo`: a stand-in issuer and the service in one process, with requests ready to be pasted.
struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Runs the service and a stand-in for Facebook in one process, with a page that shows every check.",
        discussion: """
            It needs no network and no Facebook app; the stand-in plays Graph too. Callers need the key 'demo', which is \
            no secret. Stop it with Control-C.
            """
    )

    @Option(
        help:
            "Address and port of the service, HOST:PORT on loopback. Port 0 takes a free one. (default: 127.0.0.1:8080)",
        transform: Loopback.read
    )
    var listen = SocketAddress.loopback(port: 8080)

    @Option(
        help:
            "Address and port of the administrative listener, HOST:PORT on loopback. Port 0 takes a free one. (default: 127.0.0.1:8081)",
        transform: Loopback.read
    )
    var adminListen = SocketAddress.loopback(port: 8081)

    @Option(
        help:
            "Address and port of the stand-in issuer, HOST:PORT on loopback. Port 0 takes a free one. (default: 127.0.0.1:8090)",
        transform: Loopback.read
    )
    var issuerListen = SocketAddress.loopback(port: 8090)

    func run() async throws {
        do {
            let backend = try DemonstrationBackend()
            try backend.start()
            let files = try DemonstrationFiles(appID: Demonstration.appID, webhookSecret: backend.secret)
            defer { files.remove() }
            var setUp = StandInIssuer.Configuration(address: issuerListen, audience: Demonstration.appID)
            setUp.appSecret = files.appSecret
            let issuer = try StandInIssuer(configuration: setUp)
            let desk = DemoDesk(issuer: issuer)
            try issuer.start { PageHandler(desk: desk, behind: $0) }
            let configuration = try serviceConfiguration(files, backend, issuer: issuer.address ?? issuerListen)
            // A secret of this run alone: its nonces are worthless afterwards.
            let secret = try NonceSecret(bytes: RandomBytes.make(count: NonceSecret.leastByteCount))
            let application = try Application(
                configuration,
                logger: LoggingSetup.bootstrap(configuration).logger,
                demonstratingWith: NonceIssuer(secret: secret)
            )
            files.remove()
            try await Lifecycle.run { () throws(StartError) in
                try application.start()
                issuer.callbacks.service = application.server.localAddresses.first.map { "http://\($0)" }
                desk.open(application)
                Self.print(application, issuer)
            } stop: {
                await application.stop()
                await issuer.stop()
                await backend.stop()
            }
        } catch let error as any CustomStringConvertible & Error {
            throw Exit.refusing(error.description)
        }
    }

    private func serviceConfiguration(
        _ files: DemonstrationFiles,
        _ backend: DemonstrationBackend,
        issuer: SocketAddress
    ) throws(ConfigurationError) -> ServiceConfiguration {
        try ConfigurationLoader.load(
            flags: [
                .appIDs: Demonstration.appID,
                .jwksURLs: "http://\(issuer)/.well-known/oauth/openid/jwks/",
                .clientKeysFile: files.clientKeys,
                .appSecretsFile: files.appSecrets,
                .accessTokens: "accept",
                .graphURL: "http://\(issuer)",
                .uninstallURL: "http://\(issuer)/platform/uninstall/",
                .listen: listen.description,
                .adminListen: adminListen.description,
                .logLevel: "warning",
            ].merging(backend.settings(secretFile: files.webhookSecret)) { $1 },
            environment: [:],
            file: nil,
            readsDefaultFile: false
        ).configuration
    }

    private static func print(_ application: Application, _ issuer: StandInIssuer) {
        let service = application.server.localAddresses.first.map(\.description) ?? "?"
        let stand = issuer.address.map(\.description) ?? "?"
        StandardOutput.write(Demonstration.text(service: service, issuer: stand))
    }
}

/// What `demo` prints, and the app it demonstrates with.
enum Demonstration {
    /// The app id of the demonstration's tokens; no real app has it.
    static let appID = "123456789012345"

    /// The commands to paste: what each shows, the path of its token at the stand-in, and what the service answers.
    private static let commands = [
        ("a good login", "/login", "200, the Profile"),
        ("an expired token", "/login/expired", "401 expired"),
        ("a token that somebody changed", "/login/changed", "401 invalid_signature"),
    ]

    /// The whole text. Each command is one line: it has a token minted, and passes it on to the service.
    ///
    /// - Parameters:
    ///   - service: the service's host and port.
    ///   - issuer: the stand-in's.
    static func text(service: String, issuer: String) -> String {
        var lines = [
            "limited-login demo: the service on http://\(service), a stand-in for Facebook on http://\(issuer)",
            "",
            "Open the page:  http://\(issuer)/",
            "",
            "Or paste these into another terminal:",
        ]
        for (title, path, outcome) in commands {
            lines += [
                "",
                "# \(title) -> \(outcome)",
                "curl -s \(issuer)\(path) | curl -s --json @- -H X-Api-Key:\(DemonstrationFiles.clientKey) "
                    + "\(service)/verify",
            ]
        }
        lines += ["", "Control-C stops it."]
        return lines.joined(separator: "\n")
    }
}

/// The files that a demonstration's service is configured with: they are needed while it starts, and gone after.
struct DemonstrationFiles {
    /// The key of the demonstration's caller. It is no secret, and nothing but a demonstration takes it.
    static let clientKey = "demo"
    /// The secret of the demonstration's app, made anew each time.
    let appSecret: String
    let clientKeys: String
    let appSecrets: String
    let webhookSecret: String
    private let folder: URL

    init(appID: String, webhookSecret secret: String) throws {
        // A folder of its own, which only its user may look into.
        let place = FileManager.default.temporaryDirectory
        folder = place.appending(path: "limited-login-demo-\(UUID().uuidString)")
        do {
            try FileManager.default.createDirectory(
                at: folder,
                withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw StartError("\(place.path) cannot be written; set TMPDIR to a folder that you may write to")
        }
        appSecret = Hexadecimal.encode(try RandomBytes.make(count: 16))
        let digest = try SHA256.digest(of: Array(Self.clientKey.utf8).span).hexadecimal
        clientKeys = try Self.write("demo \(digest)\n", "client-keys", in: folder)
        appSecrets = try Self.write("\(appID) \(appSecret)\n", "app-secrets", in: folder)
        webhookSecret = try Self.write("\(secret)\n", "webhook-secret", in: folder)
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }

    private static func write(_ text: String, _ name: String, in folder: URL) throws -> String {
        let file = folder.appending(path: name)
        try Data(text.utf8).write(to: file)
        return file.path
    }
}
