import Dispatch
import LLHTTP
import LLTestSupport
import Testing

@Suite("A server's Unix socket: one queue for all workers", .live)
struct SharedListenerTests {
    static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    /// The number of these clients that each worker serves.
    private func shares(of clients: [BlockingClient]) -> [String: Int] {
        var shares: [String: Int] = [:]
        for client in clients { shares[client.exchange(Self.get)?.text ?? "none", default: 0] += 1 }
        return shares
    }

    @Test("Connections that come one by one or at once are spread over the workers", arguments: [1, 2, 3])
    func spread(workers: Int) async throws {
        let server = try TestServer(.unix, workerCount: workers) { TestHandler.named("\($0)") }
        let clients = try (0..<48).map { _ in try BlockingClient(server.address) }
        let shares = shares(of: clients)
        #expect(shares == Dictionary(uniqueKeysWithValues: (0..<workers).map { ("\($0)", 48 / workers) }))
        // A connection of the worker with the fewest is replaced by one of the same worker.
        let leaving = clients[0].exchange(Self.get)?.text
        clients[0].shutdownWrite()
        #expect(server.waitUntil { $0.open == 47 })
        #expect(try BlockingClient(server.address).exchange(Self.get)?.text == leaving)
        await server.stop()
    }

    @Test("Clients in the queue when stopping begins are all answered; later ones cannot connect", arguments: [1, 2])
    func queued(workers: Int) async throws {
        let gate = Gate()
        let server = try TestServer(.unix, workerCount: workers) { _ in TestHandler.named("", gate) }
        // One request holds each worker, so the later connections wait in the queue.
        var clients = try (0..<workers).map { _ in try BlockingClient(server.address) }
        #expect(server.waitUntil { $0.open == workers })
        for client in clients {
            client.send(Self.get)
            gate.reached.wait()
        }
        for _ in 0..<50 {
            let client = try BlockingClient(server.address)
            client.send(Self.get)
            clients.append(client)
        }
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
