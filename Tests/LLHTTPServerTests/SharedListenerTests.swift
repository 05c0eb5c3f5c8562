import Dispatch
import Foundation
import LLHTTP1
import LLHTTPServer
import LLSockets
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

    @Test("64 connections that come one by one are spread over the workers", arguments: [2, 3])
    func oneByOne(workers: Int) async throws {
        let threads = WorkerThreads()
        let server = try TestServer(.unix, workerCount: workers) { index in
            threads.add()
            return TestHandler.named("\(index)")
        }
        var clients: [BlockingClient] = []
        for number in 1...64 {
            // On a busy machine, a worker still occupied with the last connection would leave the next to the others.
            #expect(server.waitUntil { _ in threads.areAsleep(workers) })
            clients.append(try BlockingClient(server.address))
            #expect(server.waitUntil { $0.open == number })
        }
        let shares = shares(of: clients)
        #expect(shares.count == workers && shares["none"] == nil)
        #expect(shares.values.allSatisfy { $0 >= 64 / workers - 8 }, "\(shares)")
        clients.removeAll()
        await server.stop()
    }

    @Test("64 connections that come at once are spread over the workers")
    func atOnce() async throws {
        let server = try TestServer(.unix, workerCount: 2) { TestHandler.named("\($0)") }
        var clients = try (0..<64).map { _ in try BlockingClient(server.address) }
        let shares = shares(of: clients)
        #expect(shares.count == 2 && shares["none"] == nil)
        #expect(shares.values.allSatisfy { $0 >= 16 }, "\(shares)")
        clients.removeAll()
        await server.stop()
    }

    @Test("A worker that pauses accepting recalls the worker that paused before, so one always accepts")
    func callsBack() async throws {
        var limits = HTTPServerLimits.patient
        limits.acceptLead = 1
        limits.acceptLeadPause = .seconds(600)
        let server = try TestServer(.unix, limits: limits, workerCount: 2) { TestHandler.named("\($0)") }
        var clients: [BlockingClient] = []
        for _ in 0..<32 {
            // The pause is longer than this test, so no worker resumes by itself.
            let client = try BlockingClient(server.address)
            #expect(client.exchange(Self.get)?.status == 200)
            clients.append(client)
        }
        clients.removeAll()
        await server.stop()
    }

    @Test("Clients in the queue when stopping begins are all answered; later ones cannot connect", arguments: [1, 2])
    func queued(workers: Int) async throws {
        let gate = Gate()
        let server = try TestServer(.unix, workerCount: workers) { _ in TestHandler.named("", gate) }
        // One request holds each worker, since a connection wakes a worker that sleeps.
        var clients: [BlockingClient] = []
        for _ in 0..<workers {
            let client = try BlockingClient(server.address)
            client.send(Self.get)
            gate.reached.wait()
            clients.append(client)
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

/// The threads of a server's workers.
private final class WorkerThreads: Sendable {
    /// The threads' folders below `/proc`.
    private let folders = Locked<[String]>([])

    /// Adds the calling thread.
    func add() {
        let folder = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
        folders.withLock { $0.append(folder ?? "") }
    }

    /// True if there are `count` threads and all of them sleep (state S of proc_pid_stat(5)).
    func areAsleep(_ count: Int) -> Bool {
        let folders = folders.withLock { $0 }
        return folders.count == count
            && folders.allSatisfy { folder in
                let text = try? String(contentsOf: URL(filePath: "/proc/\(folder)/stat"), encoding: .utf8)
                return text?.contains(") S ") == true
            }
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
