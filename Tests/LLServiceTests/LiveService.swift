import Dispatch
import LLHTTP
import LLStandIn
import LLTestSupport
import LimitedLogin
import LimitedLoginHTTPS
import LimitedLoginKeys
import Logging

@testable import LLService

/// The whole service on a loopback port. It fetches its keys over TLS from an issuer with key IDs that a test names.
final class LiveService: Sendable {
    let issuer: ScriptedIssuer
    /// A gated issuer answers its first request, and each later one when the test opens the gate.
    let gate = DispatchSemaphore(value: 0)
    private let keyIDs: Locked<[String]>
    private let live: LoopbackServer

    var cache: JWKSetCache { live.cache }
    var server: HTTPServer { live.server }

    /// - Parameter interval: The time between two fetches for unknown key IDs.
    init(_ keyIDs: [String], isGated: Bool = false, interval: Duration = JWKSetCacheLimits().unknownKeyIDInterval)
        throws
    {
        let (published, gate) = (Locked(keyIDs), gate)
        self.keyIDs = published
        issuer = try ScriptedIssuer(.tls(TestCertificates.shared.get().good)) { request, peer in
            if isGated && request.number > 1 { gate.wait() }
            let minters = published.withLock { $0 }.map { TokenMinter(key: StandInKeys.current.key, keyID: $0) }
            try peer.answer(TokenMinter.jwkSet(minters))
        }
        // Requests, and fetches with them, wait as long as a slow machine needs, or a test that holds the issuer back.
        var limits = JWKSetCacheLimits()
        (limits.waitForFetch, limits.waitForUnknownKeyID) = (.seconds(600), .seconds(600))
        limits.unknownKeyIDInterval = interval
        var fetch = HTTPSClientLimits()
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

    func publish(_ keyIDs: [String]) { self.keyIDs.withLock { $0 = keyIDs } }

    func connect() throws -> BlockingClient { try live.connect() }

    func stop() async {
        await live.stop()
        issuer.stop()
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
}
