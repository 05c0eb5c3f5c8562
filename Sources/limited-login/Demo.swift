internal import ArgumentParser
internal import Bytes
internal import FoundationEssentials
internal import HTTPServer
internal import LimitedLogin
internal import OpenSSL
internal import Sockets
internal import StandInIssuer
internal import VerificationService

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
            let webhookKey = try RandomBytes.make(count: 32)
            let backend = HTTPServer(
                configuration: HTTPServerConfiguration(addresses: [.network(.loopback(port: 0))], workerCount: 1)
            ) { _ in DemonstrationBackend(key: webhookKey) }
            try backend.start()
            let backendURL = backend.localAddresses.first.map { "http://\($0)" } ?? ""
            let files = try DemonstrationFiles(appID: Demonstration.appID, webhookKey: webhookKey)
            defer { files.remove() }
            let issuer = try StandInIssuer(audience: Demonstration.appID, appSecret: files.appSecret)
            let desk = DemoDesk(issuer: issuer)
            try issuer.start(at: issuerListen) { PageHandler(desk: desk, behind: $0) }
            let facebook = "http://\(issuer.address ?? issuerListen)"
            let configuration = try ConfigurationLoader.load(
                flags: [
                    .appIDs: Demonstration.appID,
                    .jwksURLs: "\(facebook)/.well-known/oauth/openid/jwks/",
                    .accessTokens: "accept",
                    .graphURL: facebook,
                    .uninstallURL: "\(facebook)/platform/uninstall/",
                    .callbacksURL: "\(backendURL)/webhooks",
                    .dataDeletionStatusURL: "\(backendURL)/deletion",
                    .listen: listen.description,
                    .adminListen: adminListen.description,
                    .logLevel: "warning",
                ].merging(files.settings) { $1 },
                environment: [:],
                file: nil,
                readsDefaultFile: false
            ).configuration
            let application = try Application(configuration, logger: LoggingSetup.bootstrap(configuration).logger)
            files.remove()
            try await Lifecycle.run { () throws(StartError) in
                try application.start()
                let service = application.server.localAddresses.first.map(\.description)
                issuer.service.withLock { $0 = service.map { "http://\($0)" } }
                desk.open(application)
                let stand = issuer.address.map(\.description)
                StandardOutput.write(Demonstration.text(service: service ?? "?", issuer: stand ?? "?"))
            } stop: {
                await application.stop()
                await issuer.stop()
                await backend.stop(drainDelay: .zero, grace: .seconds(1))
            }
        } catch let error as any CustomStringConvertible & Error {
            throw Exit.refusing(error.description)
        }
    }
}

/// What `demo` prints, and the app it demonstrates with.
enum Demonstration {
    /// The app id of the demonstration's tokens; no real app has it.
    static let appID = "123456789012345"

    /// The whole text. Each command is one line: it has a token minted, and passes it on to the service.
    ///
    /// - Parameters: the hosts and ports of the two.
    static func text(service: String, issuer: String) -> String {
        func command(_ path: String) -> String {
            "curl -s \(issuer)\(path) | curl -s --json @- -H X-Api-Key:\(DemonstrationFiles.clientKey) \(service)/verify"
        }
        return """
            limited-login demo: the service on http://\(service), a stand-in for Facebook on http://\(issuer)

            Open the page:  http://\(issuer)/

            Or paste these into another terminal:

            # a good login -> 200, the Profile
            \(command("/login"))

            # an expired token -> 401 expired
            \(command("/login/expired"))

            # a token that somebody changed -> 401 invalid_signature
            \(command("/login/changed"))

            Control-C stops it.
            """
    }
}

/// The files that a demonstration's service is configured with: they are needed while it starts, and gone after.
struct DemonstrationFiles {
    /// The key of the demonstration's caller. It is no secret, and nothing but a demonstration takes it.
    static let clientKey = "demo"
    /// The secret of the demonstration's app, made anew each time.
    let appSecret: String
    /// The settings that name the files.
    private(set) var settings: [ConfigurationKey: String] = [:]
    private let folder: URL

    init(appID: String, webhookKey: [UInt8]) throws {
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
        let texts: [ConfigurationKey: String] = [
            .clientKeysFile: "demo \(try SHA256.digest(of: Array(Self.clientKey.utf8).span).hexadecimal)",
            .appSecretsFile: "\(appID) \(appSecret)",
            .callbacksSecretFile: "whsec_" + Base64.encode(webhookKey),
            // Of this run alone: its nonces are worthless afterwards.
            .nonceSecretFile: Hexadecimal.encode(try RandomBytes.make(count: NonceSecret.leastByteCount)),
        ]
        for (key, text) in texts {
            let file = folder.appending(path: key.rawValue)
            try Data("\(text)\n".utf8).write(to: file)
            settings[key] = file.path
        }
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }
}
