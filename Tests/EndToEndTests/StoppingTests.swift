import Dispatch
import Sockets
import StandInIssuer
import TestSupport
import Testing

@Suite("serve: SIGTERM while requests are under way", .live)
struct StoppingTests {
    @Test(
        "Under load, with new connections coming, no request of an accepted connection goes unanswered",
        arguments: TestServer.Kind.allCases
    )
    func underLoad(kind: TestServer.Kind) throws {
        let folder = try ShortFolder()
        let issuer = try IssuerProcess()
        defer { issuer.process.end() }
        let environment = kind == .unix ? ["LIMITED_LOGIN_LISTEN": "\(try folder.socketAddress())"] : [:]
        let service = try RunningService(jwksURL: issuer.jwksURL, environment: environment)
        #expect(try service.waitUntilReady())
        let body = "{\"id_token\":\"\(try issuer.token())\",\"nonce\":\"n-1\"}"
        let load = VerificationLoad(service.listenAddress, request: RunningService.request(body))
        load.start(persistent: 6, single: 6)
        #expect(load.waitUntilAnswered(1_000))
        service.process.terminate()
        load.waitForEnd()
        #expect(service.process.waitForExit() == 0)
        #expect(load.unanswered == 0)
        #expect(load.refused == 0)
        #expect(load.answered >= 1_000)
        #expect(service.process.errorText.contains("\"requests_cut_off\":\"0\""))
    }

    @Test("Requests that wait for a slow issuer are answered by their deadline, those whose client left are dropped")
    func parked() throws {
        let gate = DispatchSemaphore(value: 0)
        let issuer = try ScriptedIssuer { request, peer in
            if request.number > 1 { gate.wait() }
            try peer.answer(TokenMinter.jsonWebKeySet([StandInKeys.current]))
        }
        defer {
            gate.signal()
            issuer.stop()
        }
        let service = try RunningService(jwksURL: "http://127.0.0.1:\(issuer.port)/keys")
        #expect(try service.waitUntilReady())
        let token = try StandInKeys.stranger.mint(
            MintedClaims(audience: RunningService.appID, subject: "1", nonce: "n-1", issuedAt: WallClock.unixSeconds())
        )
        let request = RunningService.request("{\"id_token\":\"\(token)\",\"nonce\":\"n-1\"}")
        var clients = try (0..<40).map { _ in try BlockingClient(service.address) }
        // One is parked before the next comes: of many at once some may be told that the service is overloaded. On a slow
        // machine the first may have been answered by then, and no more are parked.
        for (number, client) in clients.enumerated() {
            client.send(request)
            let parked = "http_server_connections{state=\"parked\"} \(number + 1)\n"
            let patience = MonotonicClock.now() + .milliseconds(250)
            while try !service.get("/metrics", admin: true).text.contains(parked), MonotonicClock.now() < patience {}
        }
        // All of them wait for one fetch, which has begun when the issuer is asked a second time.
        let deadline = MonotonicClock.now() + .seconds(10)
        while issuer.requestCount < 2, MonotonicClock.now() < deadline {}
        #expect(issuer.requestCount == 2)
        for client in clients[..<20] { client.reset() }
        service.process.terminate()
        for client in clients[20...] {
            let answer = client.readResponses(1, timeout: .seconds(30)).first
            #expect(answer?.status == 503)
            #expect(answer?.code == "keys_unavailable")
            #expect(answer?["retry-after"] != nil)
        }
        // A client that does not close its side would have the server wait for that.
        clients.removeAll()
        #expect(service.process.waitForExit() == 0)
        #expect(service.process.errorText.contains("\"requests_cut_off\":\"0\""))
        #expect(issuer.requestCount == 2)
    }
}
