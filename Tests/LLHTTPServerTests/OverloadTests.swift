import Dispatch
import LLBytes
import LLHTTP
import LLTestSupport
import Testing

@Suite("A saturated server", .live)
struct OverloadTests {
    private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
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
        for client in many { client.send(Self.get) }
        others[1].send(Self.health)
        gate.open.signal()
        let answers = many.map { $0.readResponses(1).first }
        for client in others { #expect(client.readResponses(1).first?.status == 200) }
        await server.stop()
        return answers
    }
}
