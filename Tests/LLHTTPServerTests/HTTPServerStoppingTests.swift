import Dispatch
import LLHTTP
import LLTestSupport
import Synchronization
import Testing

@Suite("Stopping the server", .live)
struct HTTPServerStoppingTests {
    static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    @Test(
        "Stopping under load, with new connections coming, answers every accepted request",
        arguments: 1...3,
        TestServer.Kind.allCases
    )
    func underLoad(round: Int, kind: TestServer.Kind) async throws {
        let server = try TestServer(kind, workerCount: 2)
        let load = RequestLoad(server.address, request: Self.get)
        load.start(persistent: 6, single: 4)
        #expect(server.waitUntil { $0.requests > 2_000 })
        let cutOff = await server.server.stop(drainDelay: .zero, grace: .seconds(600))
        let counts = load.end()
        #expect(cutOff == 0)
        #expect(counts.unanswered == 0 && counts.refused == 0)
        #expect(counts.answered >= 2_000)
        #expect(server.server.counters.open == 0)
    }

    @Test(
        "During the drain delay connections are accepted, and each answer closes its connection; a stop without grace ends it",
        arguments: TestServer.Kind.allCases
    )
    func drainDelay(kind: TestServer.Kind) async throws {
        let server = try TestServer(kind)
        async let stopped = server.server.stop(drainDelay: .seconds(60), grace: .seconds(5))
        await eventually("the server drains") { server.server.isDraining }
        var response: TestResponse?
        for _ in 0..<50 where response?["connection"] != "close" {
            response = try BlockingClient(server.address).exchange(Self.get)
        }
        #expect(response?["connection"] == "close")
        server.server.beginStop(drainDelay: .zero, grace: .zero)
        _ = await stopped
        #expect(throws: SocketError.self) { try BlockingClient(server.address) }
    }

    @Test("A parked request is answered before the server ends", arguments: TestServer.Kind.allCases)
    func parked(kind: TestServer.Kind) async throws {
        let server = try TestServer(kind)
        let client = try server.parkedClient()
        async let stopped = server.server.stop(drainDelay: .zero, grace: .seconds(600))
        await eventually("the server drains") { server.server.isDraining }
        server.server.wakeParked()
        #expect(client.readResponses(1).first?.text == "woken")
        #expect(await stopped == 0)
    }

    @Test("After the grace period the remaining requests are cut off and counted", arguments: TestServer.Kind.allCases)
    func grace(kind: TestServer.Kind) async throws {
        let server = try TestServer(kind)
        let client = try server.parkedClient()
        #expect(await server.server.stop(drainDelay: .zero, grace: .milliseconds(100)) == 1)
        #expect(client.read().end != .timedOut)
    }
}
