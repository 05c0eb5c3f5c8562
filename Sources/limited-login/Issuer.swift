internal import ArgumentParser
internal import HTTPClient
internal import Sockets
internal import StandInIssuer

struct Issuer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Runs a stand-in issuer: keys, POST /tokens, /refresh and /rotate, Graph, callbacks. Never for production.",
        discussion: """
            POST /tokens takes a JSON object of claims (all optional, any type) and answers {"id_token": "…"} in \
            Facebook's wire style; ?declined=NAME,NAME and ?expired=NAME say what else the person was asked for. \
            A claim cnf, {"jkt": "…"}, binds the token to a device's key. POST /refresh takes {"id_token": "…"} and answers a \
            new one with the login's nonce, or with ?way=silent one of its own. \
            POST /access-tokens takes {"user", "app", "scopes", "type", "expiry"} and fields of /me (all optional) and answers \
            {"access_token": "…"}; ?revoked is a token revoked since, ?dead the placeholder of an iPhone with tracking denied. \
            POST /proofs with {"id_token", "method", "url"} answers a DPoP proof and the thumbprint of its key. \
            POST /rotate makes a new signing key; the last one stays published, the one before is gone. Graph knows the \
            permissions of the people whose tokens were minted, and takes them back; /platform/uninstall/ takes a token. \
            POST /users/ID/deauthorize and /users/ID/data-deletion send Facebook's callback to the service of \
            --service-url, and answer what it answers.
            """
    )

    @Option(
        help: "Address and port, HOST:PORT; a loopback address. Port 0 takes a free one. (default: 127.0.0.1:8090)",
        transform: Loopback.read
    )
    var listen = SocketAddress.loopback(port: 8090)

    @Option(name: .customLong("app-id"), help: "The audience of tokens whose request names none.")
    var appID = Demo.appID

    @Option(help: "The issuer of tokens whose request names none.")
    var issuer = "https://www.facebook.com"

    @Option(help: "The secret of every app, with which Graph is asked.")
    var appSecret = "stand-in-app-secret"

    @Option(name: .customLong("service-url"), help: "The service that Facebook's callbacks go to: http://HOST:PORT.")
    var serviceURL: String?

    @Option(help: "Seconds the JWK Set may be cached (Cache-Control: max-age).")
    var maxAge = 3600

    func validate() throws {
        guard maxAge >= 0 else { throw ValidationError("--max-age must not be negative.") }
        if let serviceURL, (try? HTTPURL(parsing: serviceURL)) == nil || serviceURL.hasSuffix("/") {
            throw ValidationError("--service-url must be https, or http on a loopback address, without a path.")
        }
    }

    func run() async throws {
        let standIn = try StandInIssuer(issuer: issuer, audience: appID, maxAgeSeconds: maxAge, appSecret: appSecret)
        standIn.service.withLock { $0 = serviceURL }
        try await Lifecycle.run {
            try standIn.start(at: listen)
            let base = "http://\(standIn.address ?? listen)"
            StandardOutput.write("stand-in issuer on \(base)")
            StandardOutput.write("JWK Set: \(base)/.well-known/oauth/openid/jwks/")
            StandardOutput.write("curl -sS -X POST \(base)/tokens -d '{\"nonce\":\"abc\"}'")
            StandardOutput.write("curl -sS -X POST \(base)/rotate")
        } stop: {
            await standIn.stop()
        }
    }
}
