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
    private let live: LoopbackServer

    var cache: JWKSetCache { live.cache }
    var server: HTTPServer { live.server }

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
        let policy = try VerificationPolicy(appIDs: [InProcessService.appID])
        live = try LoopbackServer(
            RuntimeSettings(verifier: TokenVerifier(policy: policy), clients: nil),
            cache: JWKSetCache(sources: [source], limits: limits)
        )
        cache.onUpdate { [server = live.server] in server.wakeParked() }
    }

    func connect() throws -> BlockingClient { try live.connect() }

    func stop() async { await live.stop() }

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
        TokenMinter.jwkSet(keyIDs.map { TokenMinter(key: StandInKeys.current.key, keyID: $0) })
    }
}
