import Foundation
import Hummingbird
import LimitedLogin
import LimitedLoginHTTPS
import LimitedLoginKeys
import ServiceLifecycle

/// A login server on Hummingbird, built on the two library products alone.
///
///     APP_ID=123456789012345 JWKS_URL=https://… PORT=8080 swift run server
@main
struct Server {
    static func main() async throws {
        let environment = ProcessInfo.processInfo.environment
        let application = try application(
            appID: environment["APP_ID"] ?? "",
            jwksURL: environment["JWKS_URL"] ?? "https://limited.facebook.com/.well-known/oauth/openid/jwks/",
            port: environment["PORT"].flatMap { Int($0) } ?? 8080
        )
        try await application.runService()
    }

    static func application(appID: String, jwksURL: String, port: Int) throws -> some ApplicationProtocol {
        let keys = try JWKSetCache(sources: [try HTTPSJWKSetSource(url: jwksURL)]) { event in print(event) }
        let verifier = LoginVerifier(policy: try VerificationPolicy(appIDs: [appID]), keys: keys)
        let login = LoginController(verifier: verifier, sessions: Sessions())
        let router = Router()
        router.post("login/begin", use: login.begin)
        router.post("login", use: login.finish)
        router.post("refresh", use: login.refresh)
        router.get("me", use: login.me)
        return Application(
            router: router,
            configuration: .init(address: .hostname("127.0.0.1", port: port), serverName: "example"),
            services: [KeyService(keys: keys)]
        )
    }
}

/// Fetches Facebook's keys as long as the application runs.
struct KeyService: Service {
    let keys: JWKSetCache

    func run() async throws {
        await cancelWhenGracefulShutdown { await keys.run() }
    }
}
