import Dispatch
import Glibc
import LLTestSupport
import Testing

@testable import LLHTTP

@Suite("A server's Unix socket: one queue for all workers", .live)
struct SharedListenerTests {
    /// The number of these clients that each worker serves.
    private func shares(of clients: [BlockingClient]) -> [String: Int] {
        var shares: [String: Int] = [:]
        for client in clients { shares[client.exchange(plainGet)?.text ?? "none", default: 0] += 1 }
        return shares
    }

    @Test("Connections that come one by one or at once are spread over the workers", arguments: [1, 2, 3])
    func spread(workers: Int) throws {
        let server = try TestServer(.unix, workerCount: workers) { TestHandler.named("\($0)") }
        let clients = try (0..<48).map { _ in try BlockingClient(server.address) }
        let shares = shares(of: clients)
        #expect(shares == Dictionary(uniqueKeysWithValues: (0..<workers).map { ("\($0)", 48 / workers) }))
        // A connection of the worker with the fewest is replaced by one of the same worker.
        let leaving = clients[0].exchange(plainGet)?.text
        clients[0].shutdownWrite()
        #expect(server.waitUntil { $0.open == 47 })
        #expect(try BlockingClient(server.address).exchange(plainGet)?.text == leaving)
    }

    @Test("At most the reserve of connections waits for a worker that is stuck; the others are served elsewhere")
    func stuckWorker() throws {
        let gate = Gate()
        var limits = HTTPServerLimits.patient
        limits.reservedConnections = 4
        let server = try TestServer(.unix, limits: limits, workerCount: 2) { index in
            TestHandler.named("\(index)", index == 1 ? gate : nil)
        }
        var clients = try (0..<2).map { _ in try BlockingClient(server.address) }
        #expect(server.waitUntil { $0.open == 2 })
        clients[1].send(plainGet)
        gate.reached.wait()
        for _ in 0..<18 { clients.append(try BlockingClient(server.address)) }
        // The stuck worker has accepted one.
        #expect(server.waitUntil { $0.accepted == 20 - limits.reservedConnections })
        gate.open.signal()
        #expect(server.waitUntil { $0.accepted == 20 })
        for _ in clients { gate.open.signal() }
        #expect(clients[1].readResponses(1).first?.text == "1")
        #expect(shares(of: clients) == ["0": 15, "1": 5])
    }

    @Test("A connection that was handed over and not taken is closed when its worker ends")
    func handedOver() throws {
        let handle = try WorkerHandle(nil)
        let server = HTTPServer(configuration: HTTPServerConfiguration(address: .loopback(port: 0))) { _ in
            TestHandler.probe()
        }
        var worker = Worker(handle, of: server, handler: TestHandler.probe())
        let pair = try Socket.pair()
        defer { _ = close(pair[1]) }
        #expect(handle.send(.serve(pair[0])))
        worker.closeEverything()
        // The peer sees the end, and the worker takes no more.
        var byte = UInt8(0)
        #expect(unsafe read(pair[1], &byte, 1) == 0)
        #expect(!handle.send(.serve(pair[0])))
    }

    @Test("Clients in the queue when stopping begins are all answered; later ones cannot connect", arguments: [1, 2])
    func queued(workers: Int) async throws {
        let gate = Gate()
        let server = try TestServer(.unix, workerCount: workers) { _ in TestHandler.named("", gate) }
        // One request holds each worker, so the later connections wait in the queue.
        var clients = try (0..<workers).map { _ in try BlockingClient(server.address) }
        #expect(server.waitUntil { $0.open == workers })
        for client in clients {
            client.send(plainGet)
            gate.reached.wait()
        }
        clients += try server.clients(50, sending: Array(plainGet.utf8))
        server.server.beginStop(drainDelay: .zero, grace: .seconds(600))
        for _ in clients { gate.open.signal() }
        for client in clients { #expect(client.readResponses(1).first?.status == 200) }
        clients.removeAll()
        await server.server.untilEnded()
        #expect(throws: SocketError.self) { try BlockingClient(server.address) }
        #expect(server.server.cutOffRequests == 0)
        #expect(server.server.counters.accepted == UInt64(workers + 50))
    }
}

/// Holds each request until `open` is signalled once for it.
final class Gate: Sendable {
    let reached = DispatchSemaphore(value: 0)
    let open = DispatchSemaphore(value: 0)
}

extension TestHandler {
    /// Answers each head with a name, once the gate is open.
    static func named(_ name: String, _ gate: Gate? = nil) -> TestHandler {
        TestHandler(head: { exchange, _ in
            gate?.reached.signal()
            gate?.open.wait()
            exchange.response.body = Array(name.utf8)
            return .respond
        })
    }
}
