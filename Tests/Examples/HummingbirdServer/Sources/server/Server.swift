import Foundation
import Hummingbird
import LimitedLogin
import LimitedLoginHTTPS
import LimitedLoginKeys
import ServiceLifecycle

/// A login server on Hummingbird, built only on the library products. README.md has the command that starts it.
@main
struct Server {
    static func main() async {
        do {
            try await application().runService()
        } catch {
            FileHandle.standardError.write(Data("\(error)\n".utf8))
            exit(1)
        }
    }

    static func application() throws -> some ApplicationProtocol {
        let appID = try setting("APP_ID", "the id of your app at Facebook") { Int($0) == nil ? nil : $0 }
        // A session ends so many seconds after its login or its last refresh.
        let lifetime = try setting("SESSION_SECONDS", or: "3600", "a number of seconds, such as 3600") { UInt32($0) }
        let port = try setting("PORT", or: "3000", "a port number, such as 3000") { UInt16($0) }
        let source = try setting("JWKS_URL", or: JWKSetCache.facebookURL, "the address of Facebook's keys") {
            try? HTTPSJWKSetSource(url: $0)
        }
        let keys = try JWKSetCache(sources: [source]) { event in print(event) }
        let policy = try VerificationPolicy(appIDs: [appID])
        // One process keeps its sessions in memory. Several share the driver of hummingbird-valkey.
        let store = MemoryPersistDriver()
        let login = LoginController(
            verifier: LoginVerifier(policy: policy, keys: keys),
            sessions: Sessions(store: store, lifetime: Int(lifetime))
        )
        let router = Router()
        router.post("login/begin", use: login.begin)
        router.post("login", use: login.logIn)
        router.post("refresh", use: login.refresh)
        router.post("logout", use: login.logOut)
        router.get("me", use: login.me)
        return Application(
            router: router,
            configuration: .init(address: .hostname("127.0.0.1", port: Int(port))),
            services: [KeyService(keys: keys), store]
        )
    }

    /// Reads an environment variable.
    static func setting<Value>(
        _ name: String,
        or standard: String = "",
        _ meaning: String,
        _ read: (String) -> Value?
    ) throws -> Value {
        guard let value = read(ProcessInfo.processInfo.environment[name] ?? standard) else {
            throw WrongSetting(description: "\(name) must be \(meaning).")
        }
        return value
    }
}

struct WrongSetting: Error, CustomStringConvertible {
    let description: String
}

/// Fetches Facebook's keys as long as the application runs.
struct KeyService: Service {
    let keys: JWKSetCache

    func run() async throws {
        await cancelWhenGracefulShutdown { await keys.run() }
    }
}
