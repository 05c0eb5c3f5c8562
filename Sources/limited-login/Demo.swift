internal import ArgumentParser
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

    @Option(help: "Address and port of the service, HOST:PORT on loopback. Port 0 takes a free one.")
    var listen = ConfigurationKey.listen.defaultText

    @Option(help: "Address and port of the administrative listener, HOST:PORT on loopback. Port 0 takes a free one.")
    var adminListen = ConfigurationKey.adminListen.defaultText

    @Option(help: "Address and port of the stand-in issuer, HOST:PORT on loopback. Port 0 takes a free one.")
    var issuerListen = "127.0.0.1:8090"

    func validate() throws {
        for (name, value) in [("listen", listen), ("admin-listen", adminListen), ("issuer-listen", issuerListen)] {
            guard !value.hasPrefix(ListenAddress.unixPrefix) else {
                throw ValidationError("--\(name) takes an address and port: 'serve' alone listens on a Unix socket.")
            }
            guard let address = SocketAddress(value) else {
                throw ValidationError("--\(name) '\(value)' is no numeric address and port.")
            }
            // The stand-in signs whatever it is asked to, and the callers' key is public.
            guard address.isLoopback else {
                throw ValidationError("--\(name) must be a loopback address: this is for this machine alone.")
            }
        }
    }

    func run() async throws {
        guard let issuerAddress = SocketAddress(issuerListen) else {
            throw Exit.refusing("--issuer-listen: no address")
        }
        do {
            let backend = try DemonstrationBackend()
            try backend.start()
            let files = try DemonstrationFiles(appID: Demonstration.appID, webhookSecret: backend.secret)
            defer { files.remove() }
            var setUp = StandInIssuer.Configuration(address: issuerAddress, audience: Demonstration.appID)
            setUp.appSecret = files.appSecret
            let pages = Locked<DemoDesk?>(nil)
            let issuer = try StandInIssuer(configuration: setUp) { handler in
                guard let desk = pages.withLock({ $0 }) else { return handler }
                return PageHandler(desk: desk, behind: handler)
            }
            let desk = DemoDesk(issuer: issuer)
            pages.withLock { $0 = desk }
            try issuer.start()
            let configuration = try serviceConfiguration(files, backend, issuer: issuer.address ?? issuerAddress)
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
                .listen: listen,
                .adminListen: adminListen,
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
