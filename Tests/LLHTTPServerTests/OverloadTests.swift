import Dispatch
import LLBytes
import LLHTTP
import LLTestSupport
import Testing

@Suite("A saturated server", .live)
struct OverloadTests {
    private static let health = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"

    private let gate = Gate()

    /// A sanitizer slows the clients. The worker must be slowed more, or they would not saturate it.
    private static let slowness = Sanitizer.isActive ? 4 : 1

    /// The time that each request keeps the worker busy.
    private static let requestTime = Duration.milliseconds(4) * slowness

    /// A request is late after it has waited for the time of twelve others.
    private static var strict: HTTPServerLimits {
        var limits = HTTPServerLimits.patient
        limits.queueDelay = .milliseconds(50) * slowness
        return limits
    }

    /// Keeps the processor busy for each request except health checks. A request to `/held` waits at the gate instead.
    private func makeHandler() -> TestHandler {
        TestHandler(head: { [gate] exchange, bytes in
            if bytes.equal(exchange.head.path, "/held") {
                gate.reached.signal()
                gate.open.wait()
            } else if !bytes.equal(exchange.head.path, "/livez") {
                let end = MonotonicClock.now() + Self.requestTime
                while MonotonicClock.now() < end {}
            }
            return .respond
        })
    }

    @Test(
        "If sixty requests wait, only those that can begin within twice the delay are served",
        arguments: TestServer.Kind.allCases
    )
    func servedSoon(kind: TestServer.Kind) async throws {
        let queued = try await wave(TestServer(kind, limits: .patient) { _ in makeHandler() })
        #expect(queued.allSatisfy { $0?.status == 200 })
        let answers = try await wave(TestServer(kind, limits: Self.strict) { _ in makeHandler() })
        let refused = answers.filter { $0?.status == 503 && $0?["retry-after"] == "1" }.count
        let served = answers.filter { $0?.status == 200 }.count
        // Requests are late after the delay, and are refused once some have been late for another delay. In each of
        // these two periods the first request begins at the very start. A slower worker begins fewer.
        let begun = 2 * (Int(Self.strict.queueDelay / Self.requestTime) + 1)
        #expect((1...begun).contains(served) && served + refused == 60)
    }

    /// Sends sixty requests and then a health check, all before the worker takes up the first request.
    private func wave(_ server: TestServer) async throws -> [TestResponse?] {
        let many = try (0..<60).map { _ in try BlockingClient(server.address) }
        let others = try (0..<2).map { _ in try BlockingClient(server.address) }
        for client in many + others { #expect(client.exchange(Self.health)?.status == 200) }
        others[0].send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
        gate.reached.wait()
        for client in many { client.send(plainGet) }
        others[1].send(Self.health)
        gate.open.signal()
        let answers = many.map { $0.readResponses(1).first }
        for client in others { #expect(client.readResponses(1).first?.status == 200) }
        await server.stop()
        return answers
    }
}

@Suite("A worker that is stuck")
struct StuckWorkerTests {
    @Test("A worker is reported once it has not answered within the limit, until it answers again")
    func stuck() throws {
        let (begun, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let server = try TestServer(workerCount: 1) { _ in
            TestHandler(head: { _, _ in
                begun.signal()
                gate.wait()
                return .respond
            })
        }
        let limit = Duration.seconds(10)
        var now = MonotonicClock.now()
        // Each check reports the answer to the check before. An idle worker answers them all.
        for _ in 0..<3 {
            #expect(becomesTrue { server.server.stuckWorker(at: now, within: limit) == nil })
            now = now + .seconds(1)
        }
        let client = try BlockingClient(server.address)
        client.send(plainGet)
        begun.wait()
        func stuckWorker() -> Int? {
            now = now + limit + .milliseconds(1)
            return server.server.stuckWorker(at: now, within: limit)
        }
        #expect(becomesTrue { stuckWorker() == 0 })
        gate.signal()
        #expect(client.readResponses(1).count == 1)
        #expect(becomesTrue { stuckWorker() == nil })
    }
}
