import Foundation
import Hummingbird
import LimitedLogin
import LimitedLoginHTTPS
import LimitedLoginKeys
import ServiceLifecycle

/// A login server on Hummingbird, built only on the library products.
///
///     APP_ID=123456789012345 JWKS_URL=https://… PORT=8080 swift run server
@main
struct Server {
    static func main() async throws {
        let environment = ProcessInfo.processInfo.environment
        let facebook = "https://limited.facebook.com/.well-known/oauth/openid/jwks/"
        let source = try HTTPSJWKSetSource(url: environment["JWKS_URL"] ?? facebook)
        let keys = try JWKSetCache(sources: [source]) { event in print(event) }
        let policy = try VerificationPolicy(appIDs: [environment["APP_ID"] ?? ""])
        // One process keeps its sessions in memory. Several share the driver of hummingbird-valkey.
        let store = MemoryPersistDriver()
        let login = LoginController(verifier: LoginVerifier(policy: policy, keys: keys), store: store)
        let router = Router()
        router.post("login/begin", use: login.begin)
        router.post("login", use: login.finish)
        router.post("refresh", use: login.refresh)
        router.get("me", use: login.me)
        let application = Application(
            router: router,
            configuration: .init(
                address: .hostname("127.0.0.1", port: environment["PORT"].flatMap { Int($0) } ?? 8080)
            ),
            services: [KeyService(keys: keys), store]
        )
        try await application.runService()
    }
}

/// Fetches Facebook's keys as long as the application runs.
struct KeyService: Service {
    let keys: JWKSetCache

    func run() async throws {
        await cancelWhenGracefulShutdown { await keys.run() }
    }
}
