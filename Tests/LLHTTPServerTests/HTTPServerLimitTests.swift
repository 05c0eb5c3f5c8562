import LLHTTP
import LLTestSupport
import Testing

@Suite("The server at its limits", .live)
struct HTTPServerLimitTests {
    @Test("At the limit the longest idle connection is closed to make room", arguments: TestServer.Kind.allCases)
    func oldestIdle(kind: TestServer.Kind) throws {
        let server = try TestServer.limited(kind) { limits in limits.connections = 3 }
        let clients = try (0..<3).map { _ in try BlockingClient(server.address) }
        for client in clients { #expect(client.exchange(plainGet)?.status == 200) }
        // The first is used once more, so the second is now the longest idle.
        #expect(clients[0].exchange(plainGet)?.status == 200)
        let fourth = try BlockingClient(server.address)
        #expect(fourth.exchange(plainGet)?.status == 200)
        #expect(clients[1].read().end != .timedOut)
        #expect(clients[0].exchange(plainGet)?.status == 200)
        #expect(clients[2].exchange(plainGet)?.status == 200)
        #expect(server.waitUntil { $0.closed(.limit) == 1 })
    }

    @Test(
        "If none is idle, a new connection gets 503 with Retry-After, and a health check its answer",
        arguments: TestServer.Kind.allCases
    )
    func overLimit(kind: TestServer.Kind) throws {
        let server = try TestServer.limited(kind) { ($0.connections, $0.reservedConnections) = (2, 1) }
        let parked = try server.parkedClients(2)
        let refused = try #require(try BlockingClient(server.address).exchange(plainGet))
        #expect(refused.status == 503 && refused["retry-after"] == "1" && refused["connection"] == "close")
        #expect(server.waitUntil { $0.open == 2 })
        let health = try BlockingClient(server.address).exchange("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(health?.status == 200)
        server.server.wakeParked()
        for client in parked { #expect(client.readResponses(1).first?.text == "woken") }
    }

    @Test("A connection beyond the reserve gets 503 at once", arguments: TestServer.Kind.allCases)
    func overReserve(kind: TestServer.Kind) throws {
        let server = try TestServer.limited(kind) { ($0.connections, $0.reservedConnections) = (1, 1) }
        let parked = try server.parkedClients(1)[0]
        // This connection has begun a request; an idle one would be closed to make room.
        let reserve = try BlockingClient(server.address)
        reserve.send("GET /livez HTTP/1.1\r\n")
        #expect(server.waitUntil { $0.open == 2 && $0.idle == 0 })
        let refused = try #require(try BlockingClient(server.address).readResponses(1).first)
        #expect(refused.status == 503 && refused["retry-after"] == "1" && refused["connection"] == "close")
        #expect(reserve.exchange("Host: a\r\n\r\n")?.status == 200)
        server.server.wakeParked()
        #expect(parked.readResponses(1).first?.text == "woken")
    }

    @Test("A client that begins each request before the last has ended still counts as slow")
    func neverWhollyIdle() throws {
        let server = try TestServer.limited {
            ($0.connections, $0.reservedConnections, $0.slowRequestAge) = (1, 0, .milliseconds(200))
        }
        let dripping = try BlockingClient(server.address)
        dripping.send("GET / HTTP/1.1\r\nHost: a\r\n")
        let isServed = try becomesTrue {
            dripping.send("\r\nGET / HTTP/1.1\r\nHost: a\r\n")
            return try dripping.readResponses(1).first?.status == 200
                && BlockingClient(server.address).exchange(plainGet)?.status == 200
        }
        #expect(isServed)
        #expect(dripping.read().end != .timedOut)
    }

    @Test("At the limit the address with most connections makes room for others, even if busy")
    func manyOfOne() throws {
        let server = try TestServer.limited { ($0.connections, $0.reservedConnections) = (4, 0) }
        let many = try server.parkedClients(3)
        let idle = try BlockingClient(server.address, from: [127, 0, 0, 3])
        #expect(idle.exchange(plainGet)?.status == 200)
        #expect(server.waitUntil { $0.parked == 3 && $0.open == 4 })
        // One more connection of that address closes no other, not even the idle one from another address.
        #expect(try BlockingClient(server.address).readResponses(1).first?.status == 503)
        #expect(idle.exchange(plainGet)?.status == 200)
        // A connection from another address closes the oldest one of that address.
        let other = try BlockingClient(server.address, from: [127, 0, 0, 2])
        #expect(other.exchange(plainGet)?.status == 200)
        #expect(many[0].read().end != .timedOut)
        #expect(server.waitUntil { $0.parked == 2 && $0.closed(.peer) == 1 })
    }

    @Test("An address with many connections makes room for clients of another worker, and no other does")
    func elsewhere() throws {
        var limits = HTTPServerLimits.patient
        limits.connections = 60
        let server = try TestServer(limits: limits, workerCount: 2) { TestHandler.named("\($0)") }
        var many: [BlockingClient] = []
        func client(of worker: String) throws -> BlockingClient? {
            let client = try BlockingClient(server.address)
            return client.exchange(plainGet)?.text == worker ? client : nil
        }
        while many.count < limits.connections {
            if let client = try client(of: "0") { many.append(client) }
            try #require(server.waitUntil { $0.open == many.count })
        }
        var others: [(client: BlockingClient, worker: String?)] = []
        while others.count(where: { $0.worker == "1" }) < 12, others.count < 50 {
            let client = try BlockingClient(server.address, from: [127, 0, 0, UInt8(others.count + 2)])
            others.append((client, client.exchange(plainGet)?.text))
        }
        for other in others { #expect(other.client.exchange(plainGet)?.text == other.worker) }
        #expect(server.waitUntil { $0.closed(.peer) == others.count && $0.open == limits.connections })
        #expect(server.server.counters.closed(.limit) == 0)
    }

    @Test("Many connections of a trusted peer or of a Unix socket close none", arguments: TestServer.Kind.allCases)
    func trustedPeer(kind: TestServer.Kind) throws {
        let server = try TestServer.limited(kind) { limits in
            limits.connections = 3
            limits.reservedConnections = 0
            limits.trustedPeers = try [#require(AddressPrefix("127.0.0.1/32"))]
        }
        let gateway = try server.parkedClients(3)
        let other = try BlockingClient(server.address, from: kind == .tcp ? [127, 0, 0, 2] : nil)
        #expect(other.readResponses(1).first?.status == 503)
        server.server.wakeParked()
        for client in gateway { #expect(client.readResponses(1).first?.text == "woken") }
    }

    @Test(
        "A client that never reads is closed, and uses little memory until then",
        arguments: TestServer.Kind.allCases,
        [false, true]
    )
    func neverReads(kind: TestServer.Kind, isSecure: Bool) throws {
        let stall = { (limits: inout HTTPServerLimits) in limits.writeStall = .milliseconds(100) }
        let server = try isSecure ? TestServer.secure(kind, adjust: stall) : TestServer.limited(kind, adjust: stall)
        let client = try isSecure ? TLSClient(server.address) : BlockingClient(server.address)
        let post = Array("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 16000\r\n\r\n".utf8)
        let body = [UInt8](repeating: 0x61, count: 16_000)
        #expect(client.sendUntilClosed(post + body))
        #expect(server.waitUntil { $0.closed(.writeStalled) == 1 })
    }

    @Test("Connections that reset leave nothing behind", arguments: TestServer.Kind.allCases)
    func resetChurn(kind: TestServer.Kind) throws {
        let plan = FaultPlan(.accept, 0..<0, errorNumber: 0)
        let server = try TestServer(kind, faults: plan)
        for number in 0..<2_000 {
            let client = try BlockingClient(server.address)
            client.send(number % 3 == 0 ? "GET / HT" : plainGet)
            client.reset()
        }
        #expect(server.waitUntil { $0.accepted == 2_000 && $0.open == 0 })
        // The three are the epoll set, the wake descriptor and the listener.
        #expect(plan.openDescriptors == 3)
    }

    @Test("An idle server does not wake up", arguments: TestServer.Kind.allCases)
    func idle(kind: TestServer.Kind) async throws {
        let plan = FaultPlan(.accept, 0..<0, errorNumber: 0)
        let server = try TestServer(kind, workerCount: 2, faults: plan)
        let client = try BlockingClient(server.address)
        #expect(client.exchange(plainGet)?.status == 200)
        #expect(server.waitUntil { $0.idle == 1 })
        var quietTimes = 0
        for _ in 0..<10 where quietTimes == 0 {
            let before = plan.count(.wait)
            // The sleep waits for no event; it measures a quiet time. A busy machine may still be starting.
            try await Task.sleep(for: .milliseconds(400))
            if plan.count(.wait) == before { quietTimes += 1 }
        }
        #expect(quietTimes == 1)
    }
}
