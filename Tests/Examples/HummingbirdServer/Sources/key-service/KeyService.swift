// snippet: service
import LimitedLoginHTTPS
import LimitedLoginKeys
import Logging
import ServiceLifecycle

struct KeyService: Service {
    let keys: JWKSetCache

    func run() async throws {
        await cancelWhenGracefulShutdown { await keys.run() }
    }
}

@main
struct Server {
    static func main() async throws {
        let source = try HTTPSJWKSetSource(url: JWKSetCache.facebookURL)
        let keys = try JWKSetCache(sources: [source]) { event in print(event.severity, event) }
        let group = ServiceGroup(
            services: [KeyService(keys: keys)],
            gracefulShutdownSignals: [.sigterm],
            logger: Logger(label: "server")
        )
        try await group.run()
    }
}
// end
