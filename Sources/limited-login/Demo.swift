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
        abstract: "Runs a stand-in issuer and the service in one process and prints ready-made curl lines.",
        discussion: """
            It needs no network and no Facebook app; the stand-in plays Graph too. Callers need the key 'demo', which is \
            no secret. Stop it with Control-C.
            """
    )

    @Option(help: "Address and port of the service, HOST:PORT. Port 0 takes a free one.")
    var listen = ConfigurationKey.listen.defaultText

    @Option(help: "Address and port of the administrative listener, HOST:PORT. Port 0 takes a free one.")
    var adminListen = ConfigurationKey.adminListen.defaultText

    @Option(help: "Address and port of the stand-in issuer, HOST:PORT; a loopback address. Port 0 takes a free one.")
    var issuerListen = "127.0.0.1:0"

    func validate() throws {
        for (name, value) in [("listen", listen), ("admin-listen", adminListen), ("issuer-listen", issuerListen)] {
            guard !value.hasPrefix(ListenAddress.unixPrefix) else {
                throw ValidationError("--\(name) takes an address and port: 'serve' alone listens on a Unix socket.")
            }
            guard SocketAddress(value) != nil else {
                throw ValidationError("--\(name) '\(value)' is no numeric address and port.")
            }
        }
        guard SocketAddress(issuerListen)?.isLoopback == true else {
            throw ValidationError("--issuer-listen must be a loopback address.")
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
            let issuer = try StandInIssuer(configuration: setUp)
            let demonstration = try Demonstration(issuer: issuer, now: WallClock.unixSeconds())
            try issuer.start()
            let configuration = try serviceConfiguration(files, backend, issuer: issuer.address ?? issuerAddress)
            // A secret of this run alone: its nonces are nobody's afterwards.
            let secret = try NonceSecret(bytes: RandomBytes.make(count: NonceSecret.leastByteCount))
            let application = try Application(
                configuration,
                logger: LoggingSetup.bootstrap(configuration).logger,
                demonstratingWith: NonceIssuer(secret: secret)
            )
            files.remove()
            let service = ServerService(application: application) {
                issuer.callbacks.service = application.server.localAddresses.first.map { "http://\($0)" }
                Self.print(demonstration, application, issuer)
            }
            let backendService = DemonstrationBackendService(backend: backend)
            try await Lifecycle.run([backendService, IssuerService(issuer: issuer), service])
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

    private static func print(_ demonstration: Demonstration, _ application: Application, _ issuer: StandInIssuer) {
        let service = application.server.localAddresses.first.map(\.description) ?? "?"
        let administration = application.administration.localAddresses.first.map(\.description) ?? "?"
        let issuerBase = issuer.address.map { "http://\($0)" } ?? "?"
        let key = "-H 'X-Api-Key: \(DemonstrationFiles.clientKey)'"
        var lines = [
            "limited-login demo: service on http://\(service), stand-in issuer on \(issuerBase)",
            "",
            "Paste these into another terminal:",
        ]
        for request in demonstration.requests {
            lines.append("")
            lines.append("# \(request.title) -> \(request.outcome)")
            lines.append(
                "curl -sS -w '\\n%{http_code}\\n' \(key) -H 'Content-Type: application/json' "
                    + "http://\(service)/verify -d '\(request.body)'"
            )
        }
        lines += [
            "",
            "# a nonce of the service, a login with it, and its token judged twice: accepted, then 401 nonce_used",
            "nonce=$(curl -sS \(key) -X POST http://\(service)/nonces | cut -d'\"' -f4)",
            "token=$(curl -sS \(issuerBase)/tokens -d \"{\\\"nonce\\\":\\\"$nonce\\\"}\" | cut -d'\"' -f4)",
            "for time in first second; do curl -sS -w '\\n%{http_code}\\n' \(key) -H 'Content-Type: application/json' "
                + "http://\(service)/verify -d \"{\\\"id_token\\\":\\\"$token\\\",\\\"issued_nonce\\\":true}\"; done",
            "",
            "# mint a token of your own, rotate the issuer's keys, look at the keys",
            "curl -sS -X POST \(issuerBase)/tokens -d '{\"nonce\":\"abc\",\"email\":\"a@example.com\"}'",
            "curl -sS -X POST \(issuerBase)/rotate",
            "curl -sS 'http://\(administration)/readyz?verbose'",
        ]
        lines += Demonstration.life(service: "http://\(service)", issuer: issuerBase)
        lines += ["", "Control-C stops it."]
        StandardOutput.write(lines.joined(separator: "\n"))
    }
}
