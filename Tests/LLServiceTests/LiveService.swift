import LLHTTP
import LLStandIn
import LLTestSupport
import LimitedLogin
import LimitedLoginHTTPS
import LimitedLoginKeys
import Logging

@testable import LLService

/// The whole service on a loopback port. It fetches its keys over TLS from a scripted issuer.
final class LiveService: Sendable {
    let cache: JWKSetCache
    let server: HTTPServer

    /// The default limits, except that requests wait as long as a slow machine needs.
    static var patient: JWKSetCacheLimits {
        var limits = JWKSetCacheLimits()
        (limits.waitForFetch, limits.waitForUnknownKeyID) = (.seconds(600), .seconds(600))
        return limits
    }

    init(issuer: ScriptedIssuer, limits: JWKSetCacheLimits = LiveService.patient) throws {
        var fetch = HTTPSClientLimits()
        // A fetch lasts as long as the requests that wait for it, even if a test holds the issuer back.
        fetch.fetchTimeout = limits.waitForFetch
        let source = try HTTPSJWKSetSource(
            url: issuer.url,
            authoritiesFile: TestCertificates.shared.get().authorityFile,
            proxy: .none,
            limits: fetch
        )
        let cache = try JWKSetCache(sources: [source], limits: limits)
        let registry = PrometheusRegistry(help: ServiceMetrics.help)
        let core = ServiceCore(
            settings: RuntimeSettings(
                verifier: TokenVerifier(policy: try VerificationPolicy(appIDs: [InProcessService.appID])),
                clients: nil
            ),
            cache: cache,
            metrics: ServiceMetrics(registry: registry),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            identifiers: RequestIdentifier(process: 0xabc),
            exposition: { registry.render() }
        )
        let server = HTTPServer(
            configuration: HTTPServerConfiguration(
                addresses: [.loopback(port: 0)],
                workerCount: 2,
                limits: .patient
            )
        ) { _ in ServiceHandler(core: core, listener: .service) }
        cache.onUpdate { server.wakeParked() }
        self.cache = cache
        self.server = server
        try server.start()
    }

    func connect() throws -> BlockingClient {
        try BlockingClient(server.localAddresses.first ?? .loopback(port: 0))
    }

    func stop() async {
        cache.stop()
        await server.stop(drainDelay: .zero, grace: .seconds(5))
    }

    /// The bytes of a request to /verify with this token.
    static func request(_ token: String) -> String {
        let body = "{\"id_token\":\"\(token)\",\"nonce\":\"n-1\"}"
        return "POST /verify HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    /// A token signed by the current key under this key ID.
    static func token(keyID: String) throws -> String {
        try TokenMinter(key: StandInKeys.current.key, keyID: keyID).mint(Tokens.claims())
    }

    /// A key set with the current key under each of these key IDs.
    static func keySet(_ keyIDs: [String]) -> [UInt8] {
        let keys = keyIDs.map { keyID in
            String(decoding: TokenMinter(key: StandInKeys.current.key, keyID: keyID).jsonWebKey, as: UTF8.self)
        }
        return Array("{\"keys\":[\(keys.joined(separator: ","))]}".utf8)
    }
}
