import Dispatch
import LLHTTP
import LLStandIn
import LLTestSupport
import LimitedLogin
import LimitedLoginHTTPS
import LimitedLoginKeys
import Logging
import Testing

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
        return GraphService.request("POST", "/verify", fields: [], body: body)
    }

    /// A token signed by the current key under this key ID.
    static func token(keyID: String) throws -> String {
        try TokenMinter(key: StandInKeys.current.key, keyID: keyID).mint(Tokens.claims())
    }
}

@Suite("Keys under load", .live)
struct LiveKeyTests {
    @Test("200 connections through 10 rotations cause one fetch each, and known keys are answered meanwhile")
    func rotations() async throws {
        // The rotations of this test follow each other faster than the default interval allows.
        let service = try LiveService(["constant"], isGated: true, interval: .milliseconds(1))
        #expect(await service.cache.refresh().isUsable)
        let clients = try (0..<200).map { _ in try service.connect() }
        let known = LiveService.request(try LiveService.token(keyID: "constant"))
        for rotation in 1...10 {
            service.publish(["key-\(rotation)", "constant"])
            let new = LiveService.request(try LiveService.token(keyID: "key-\(rotation)"))
            for client in clients[..<100] { client.send(new) }
            for client in clients[100...] { client.send(known) }
            // The issuer waits until every request with a known key has been answered.
            let knownAnswers = clients[100...].map { $0.readResponses(1).first?.status }
            #expect(knownAnswers.allSatisfy { $0 == 200 })
            service.gate.signal()
            let newAnswers = clients[..<100].map { $0.readResponses(1).first?.status }
            #expect(newAnswers.allSatisfy { $0 == 200 })
        }
        #expect(service.issuer.requestCount == 11)
        await service.stop()
    }

    @Test("Waiting clients that leave, and others that wait during a stop, end cleanly")
    func leaveAndStop() async throws {
        let service = try LiveService(["known"], isGated: true)
        #expect(await service.cache.refresh().isUsable)
        let clients = try (0..<40).map { _ in try service.connect() }
        let request = LiveService.request(try LiveService.token(keyID: "unknown"))
        for client in clients { client.send(request) }
        await eventually("all clients wait") { service.server.counters.parked >= 40 }
        #expect(service.server.counters.parked == 40)
        for client in clients[..<10] { client.reset() }
        // A client that ends its direction has usually left; it gives up its place, and gets its answer if it is still there.
        for client in clients[10..<20] { client.shutdownWrite() }
        await eventually("those that left give up their places") { service.server.counters.parked == 20 }
        #expect(clients[10..<20].allSatisfy { $0.readResponses(1).first?.status == 429 })
        service.cache.stop()
        let answers = clients[20...].map { $0.readResponses(1).first?.status }
        #expect(answers.allSatisfy { $0 == 503 })
        service.gate.signal()
        await service.stop()
    }
}
