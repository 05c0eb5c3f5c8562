import Dispatch
import LLHTTP
import LLTestSupport
import Testing

@Suite("The server on a socket", .live)
struct HTTPServerTests {
    @Test("The error for a port in use names the address")
    func portInUse() throws {
        let server = try TestServer()
        let second = HTTPServer(configuration: HTTPServerConfiguration(address: server.address, workerCount: 1)) {
            _ in TestHandler.probe()
        }
        let error = #expect(throws: SocketError.self) { try second.start() }
        #expect(error?.description == "cannot bind to \(server.address): Address already in use")
    }

    @Test("CONNECT is not implemented for any resource: 501 and a close (RFC 9110 §9.3.6, §15.6.2)")
    func connect() throws {
        let server = try TestServer()
        let client = try BlockingClient(server.address)
        let answer = try #require(client.exchange("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"))
        #expect(answer.status == 501 && answer["connection"] == "close")
        #expect(client.read().end == .endOfStream)
    }

    @Test(
        "A client that sends the whole of a too large body still reads the refusal",
        arguments: TestServer.Kind.allCases
    )
    func lingering(kind: TestServer.Kind) throws {
        let server = try TestServer(kind)
        let client = try BlockingClient(server.address)
        // The body is smaller than the limit of bytes dropped after the last answer, and larger than a socket's buffer.
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 250000\r\n\r\n")
        #expect(client.send([UInt8](repeating: 0x61, count: 250_000)))
        let answer = client.read()
        #expect(TestResponse.parseAll(answer.bytes).map(\.status) == [413])
        #expect(answer.end == .endOfStream)
        client.reset()
        #expect(server.waitUntil { $0.closed(.refused) == 1 && $0.open == 0 })
    }

    @Test("A client that ends its side still gets its answers", arguments: TestServer.Kind.allCases)
    func halfClose(kind: TestServer.Kind) throws {
        let server = try TestServer(kind)
        let client = try BlockingClient(server.address)
        client.send(plainGet + "GET /park HTTP/1.1\r\nHost: a\r\n\r\n")
        client.shutdownWrite()
        #expect(server.waitUntil { $0.parked == 1 })
        server.server.wakeParked()
        #expect(client.readResponses(2).map(\.text) == ["OK", "woken"])
        #expect(client.read().end == .endOfStream)
    }
}

@Suite("Stopping the server", .live)
struct HTTPServerStoppingTests {
    /// Sends requests until the server is gone, and counts the statuses; nil is that of a request without an answer.
    private static func load(_ address: ListenAddress, keepsConnection: Bool, _ statuses: Locked<[Int?: Int]>) {
        while let client = try? BlockingClient(address) {
            var isOpen = true
            while isOpen {
                let response = client.exchange(plainGet)
                statuses.withLock { $0[response?.status, default: 0] += 1 }
                isOpen = response.map { keepsConnection && $0["connection"] != "close" } ?? false
            }
        }
    }

    @Test(
        "Stopping under load, with new connections coming, answers every accepted request",
        arguments: 1...3,
        TestServer.Kind.allCases
    )
    func underLoad(round: Int, kind: TestServer.Kind) async throws {
        var limits = HTTPServerLimits.patient
        // On a slow machine a client may be late by seconds with a handshake or a request.
        (limits.drainIdleWait, limits.drainHandshakeWait) = (.seconds(600), .seconds(5))
        let server = try TestServer(kind, limits: limits, workerCount: 2)
        let (address, load, statuses) = (server.address, DispatchGroup(), Locked<[Int?: Int]>([:]))
        for number in 0..<10 {
            DispatchQueue(label: "load-\(number)").async(group: load) {
                Self.load(address, keepsConnection: number < 6, statuses)
            }
        }
        #expect(server.waitUntil { $0.requests > 2_000 })
        let cutOff = await server.server.stop(drainDelay: .zero, grace: .seconds(600))
        load.wait()
        #expect(cutOff == 0)
        let counts = statuses.withLock { $0 }
        #expect(Array(counts.keys) == [200])
        #expect(counts[200, default: 0] >= 2_000)
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
            response = try BlockingClient(server.address).exchange(plainGet)
        }
        #expect(response?["connection"] == "close")
        server.server.beginStop(drainDelay: .zero, grace: .zero)
        _ = await stopped
        #expect(throws: SocketError.self) { try BlockingClient(server.address) }
    }

    /// Makes a worker late between its poll and its deadlines, after it read `first` from each late client and before
    /// `rest` comes. All deadlines have then passed.
    /// - Returns: The server, the clients that made the worker late, and the late ones.
    private static func delayed(
        _ limits: HTTPServerLimits,
        clients count: Int,
        _ first: String,
        _ rest: [UInt8]
    ) throws -> (server: TestServer, others: [BlockingClient], late: [BlockingClient]) {
        let (begun, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let server = try TestServer(limits: limits) { _ in
            TestHandler(head: { exchange, _ in
                if exchange.head.method == .post {
                    begun.signal()
                    gate.wait()
                }
                return exchange.head.method == .put ? .readBody(atMost: .max) : .respond
            })
        }
        let others = try (0..<3).map { _ in try BlockingClient(server.address) }
        let late = try (0..<count).map { _ in try BlockingClient(server.address) }
        for client in others + late { #expect(client.exchange(plainGet)?.status == 200) }
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
        others[0].send(post)
        begun.wait()
        server.server.beginStop(drainDelay: .zero, grace: .seconds(600))
        // The next turn of the worker has two more requests; its time is read anew for the second one.
        for client in late { client.send(first) }
        others[1].send(post)
        others[2].send(plainGet)
        gate.signal()
        begun.wait()
        for client in late { client.send(rest) }
        let sentAt = MonotonicClock.now()
        #expect(becomesTrue { MonotonicClock.now() > sentAt + .milliseconds(2) })
        gate.signal()
        return (server, others, late)
    }

    @Test(
        "A request that came before its deadline is answered, however late the worker is",
        arguments: [
            ("", plainGet), ("GET / HT", "TP/1.1\r\nHost: a\r\n\r\n"),
            ("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na", "b"),
        ]
    )
    func lateWorker(first: String, rest: String) throws {
        var limits = HTTPServerLimits.patient
        limits.drainIdleWait = .milliseconds(1)
        (limits.headDeadline, limits.bodyDeadline) = (.milliseconds(1), .milliseconds(1))
        let (_, others, late) = try Self.delayed(limits, clients: 1, first, Array(rest.utf8))
        #expect((others + late).map { $0.readResponses(1).first?.status } == [200, 200, 200, 200])
    }

    @Test("Bytes that a late worker finds at the deadlines stay within the memory of connections")
    func lateBytes() throws {
        var limits = HTTPServerLimits.patient
        limits.drainIdleWait = .milliseconds(1)
        limits.connectionBytes = 400_000
        let half = Array("GET / HTTP/1.1\r\nHost: a\r\nX-Filler: ".utf8) + [UInt8](repeating: 0x61, count: 7_000)
        let (server, others, _) = try Self.delayed(limits, clients: 60, "", half)
        var held = 0
        #expect(
            server.waitUntil {
                held = max(held, $0.heldBytes)
                return $0.closed(.memory) > 0
            }
        )
        // One read may go beyond the bound before another connection makes room.
        #expect(held <= limits.connectionBytes + limits.receiveBytes, "\(held) bytes")
        #expect(others.map { $0.readResponses(1).first?.status } == [200, 200, 200])
    }

    @Test("A parked request is answered before the server ends", arguments: TestServer.Kind.allCases)
    func parked(kind: TestServer.Kind) async throws {
        let server = try TestServer(kind)
        let client = try server.parkedClients(1)[0]
        async let stopped = server.server.stop(drainDelay: .zero, grace: .seconds(600))
        await eventually("the server drains") { server.server.isDraining }
        server.server.wakeParked()
        #expect(client.readResponses(1).first?.text == "woken")
        #expect(await stopped == 0)
    }

    @Test("After the grace period the remaining requests are cut off and counted", arguments: TestServer.Kind.allCases)
    func grace(kind: TestServer.Kind) async throws {
        let server = try TestServer(kind)
        let client = try server.parkedClients(1)[0]
        #expect(await server.server.stop(drainDelay: .zero, grace: .milliseconds(100)) == 1)
        #expect(client.read().end != .timedOut)
    }
}
