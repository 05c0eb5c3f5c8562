import LLHTTP
import LLTestSupport
import Testing

@Suite("TLS handshakes that fail, stall or never come", .live)
struct HTTPServerHandshakeTests {
    func isServed(_ server: TestServer) throws -> Bool {
        try TLSClient(server.address).exchange(plainGet)?.status == 200
    }

    static let noHandshakes: [String: [UInt8]] = [
        "plain HTTP": Array(plainGet.utf8),
        "a greater plain request": Array((plainGet + String(repeating: "x", count: 30_000)).utf8),
        "zeros": [UInt8](repeating: 0, count: 100),
        "a record of an unknown type": [0x63, 3, 3, 0, 4, 1, 2, 3, 4],
        "a record too long": [0x16, 3, 1, 0xff, 0xff] + [UInt8](repeating: 1, count: 70_000),
        "an SSL 2 hello": [0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10],
        "application data first": [0x17, 3, 3, 0, 5, 1, 2, 3, 4, 5],
        "an empty hello": [0x16, 3, 1, 0, 4, 1, 0, 0, 0],
        "an alert": [0x15, 3, 1, 0, 2, 2, 40],
    ]

    @Test(
        "Bytes that are no handshake are refused at once, without a reset, and other clients are served",
        arguments: noHandshakes.keys.sorted()
    )
    func noHandshake(_ name: String) async throws {
        let bytes = try #require(Self.noHandshakes[name])
        let faults = FaultPlan(.accept, 0..<0, errorNumber: 0)
        let server = try TestServer.secure(faults: faults)
        let other = try TLSClient(server.address)
        let client = try BlockingClient(server.address)
        client.send(bytes)
        client.shutdownWrite()
        let answer = client.read()
        #expect(answer.end == .endOfStream)
        // The answer is an alert record, a plain 400 to other protocols, or nothing after the peer's own alert.
        #expect([0x15, nil].contains(answer.bytes.first) || answer.bytes.starts(with: Array("HTTP/1.1 400 ".utf8)))
        #expect(server.waitUntil { $0.closed(.handshake) == 1 && $0.open == 1 })
        #expect(other.exchange(plainGet)?.status == 200)
        await server.stop()
        // The wake descriptor lives as long as the server.
        #expect(faults.openDescriptors == 1)
    }

    @Test("A handshake has one deadline, before and after the server's messages", arguments: [0, 1, 50, 10_000])
    func deadline(_ count: Int) throws {
        let server = try TestServer.secure { limits in limits.handshakeDeadline = .milliseconds(100) }
        let client = try BlockingClient(server.address)
        client.send(Array(try TLSClient.clientHello().prefix(count)))
        #expect(client.read().end != .timedOut)
        #expect(server.waitUntil { $0.closed(.handshake) == 1 && $0.open == 0 })
    }

    @Test("A handshake that is abandoned leaves nothing behind", arguments: [0, 10, 10_000])
    func abandoned(_ count: Int) async throws {
        let faults = FaultPlan(.accept, 0..<0, errorNumber: 0)
        let server = try TestServer.secure(faults: faults)
        let hello = Array(try TLSClient.clientHello().prefix(count))
        for _ in 0..<50 {
            let client = try BlockingClient(server.address)
            client.send(hello)
            client.reset()
        }
        // A connection reset before it was accepted is never seen.
        #expect(server.waitUntil { $0.open == 0 && $0.closed(.handshake) == $0.accepted })
        #expect(try isServed(server))
        await server.stop()
        // The wake descriptor lives as long as the server.
        #expect(faults.openDescriptors == 1)
    }

    @Test("At the connection limit a slow handshake is closed to make room")
    func eviction() throws {
        let server = try TestServer.secure {
            ($0.connections, $0.reservedConnections, $0.slowRequestAge) = (2, 0, .zero)
        }
        let silent = try (0..<2).map { _ in try BlockingClient(server.address) }
        #expect(server.waitUntil { $0.open == 2 })
        #expect(try isServed(server))
        #expect(silent[0].read().end != .timedOut)
        #expect(server.waitUntil { $0.closed(.limit) == 1 })
    }

    @Test("At the handshake limit a slow handshake is closed to make room, and a new client is served")
    func handshakeLimit() throws {
        let server = try TestServer.secure { ($0.handshakes, $0.slowHandshakeAge) = (3, .milliseconds(20)) }
        let hello = try TLSClient.clientHello()
        let stalled = try (0..<20).map { number in
            let client = try BlockingClient(server.address)
            client.send(Array(hello.prefix(number % 2 == 0 ? 1 : hello.count)))
            return client
        }
        #expect(try isServed(server))
        // At most three are left; all earlier ones were closed.
        #expect(server.waitUntil { $0.closed(.handshake) >= 17 })
        #expect(stalled[0].read().end != .timedOut)
        #expect(server.server.counters.open <= 4)
    }

    @Test("A silent connection does not count as a handshake")
    func silence() throws {
        let server = try TestServer.secure { ($0.handshakes, $0.slowHandshakeAge) = (1, .seconds(3_600)) }
        let silent = try (0..<20).map { _ in try BlockingClient(server.address) }
        #expect(server.waitUntil { $0.open == 20 })
        #expect(try isServed(server))
        #expect(server.server.counters.closed(.handshake) == 0)
        // A silent client can still begin its handshake.
        silent[0].send(try TLSClient.clientHello())
        #expect(silent[0].read { $0.count > 5 }.bytes.first == 0x16)
    }

    @Test("A handshake that waits for its turn has the same deadline, and is dropped if its client leaves")
    func waiting() throws {
        let server = try TestServer.secure {
            ($0.handshakes, $0.slowHandshakeAge, $0.handshakeDeadline) = (1, .seconds(3_600), .milliseconds(300))
        }
        let clients = try server.clients(3, sending: [0x16])
        #expect(server.waitUntil { $0.accepted == 3 })
        clients[2].reset()
        #expect(clients[1].read().end != .timedOut)
        #expect(server.waitUntil { $0.closed(.handshake) == 3 && $0.open == 0 })
    }

    @Test("Concurrent handshakes from one address are all served, even beyond its share", arguments: [4_000, 64])
    func manyOfOne(_ connections: Int) async throws {
        let server = try TestServer.secure {
            ($0.secureConnections, $0.handshakes, $0.slowHandshakeAge) = (connections, 4, .seconds(3_600))
        }
        let address = server.address
        let served = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<40 {
                group.addTask { (try? TLSClient(address).exchange(plainGet)?.status) == 200 }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(served == 40)
        #expect(server.server.counters.closed(.handshake) == 0)
    }

    /// The connection limit is so low that two connections from one address exceed its share.
    func serverForFew(handshakes: Int, slow: Duration) throws -> TestServer {
        try TestServer.secure { ($0.secureConnections, $0.handshakes, $0.slowHandshakeAge) = (64, handshakes, slow) }
    }

    @Test("Unfinished handshakes from one address do not delay clients from other addresses")
    func stalledPeer() throws {
        let server = try serverForFew(handshakes: 8, slow: .seconds(3_600))
        let many = try server.clients(30, from: [127, 0, 0, 2], sending: [0x16])
        #expect(server.waitUntil { $0.open == many.count })
        for _ in 0..<3 { #expect(try isServed(server)) }
        #expect(server.server.counters.closed(.handshake) == 0)
    }

    @Test("A slow handshake of a peer over its share is closed before an older one from another address")
    func slowPeer() throws {
        let server = try serverForFew(handshakes: 4, slow: .zero)
        let hello = try TLSClient.clientHello()
        let slow = try BlockingClient(server.address, from: [127, 0, 0, 3])
        slow.send(Array(hello.dropLast()))
        let handshakeBytes = 46 * 1_024
        #expect(server.waitUntil { $0.heldBytes > handshakeBytes })
        let many = try server.clients(3, from: [127, 0, 0, 2], sending: [0x16])
        #expect(server.waitUntil { $0.heldBytes > (many.count + 1) * handshakeBytes })
        for _ in 0..<3 { #expect(try isServed(server)) }
        #expect(server.waitUntil { $0.closed(.handshake) == 1 })
        slow.send(Array(hello.suffix(1)))
        #expect(slow.read { $0.count > 5 }.bytes.first == 0x16)
    }

    @Test("A peer over its share gets its turn, even if many other addresses leave their handshakes unfinished")
    func outnumberedPeer() throws {
        let server = try serverForFew(handshakes: 1, slow: .seconds(3))
        let hello = try TLSClient.clientHello()
        let others = try (1...8).map { try BlockingClient(server.address, from: [127, 0, 1, $0]) }
        for client in others { client.send([0x16]) }
        let many = try (0..<2).map { _ in try BlockingClient(server.address, from: [127, 0, 0, 2]) }
        #expect(server.waitUntil { $0.open == 10 })
        many[1].send(hello)
        #expect(many[1].read { $0.count > 5 }.bytes.first == 0x16)
        // The first of the others was closed to make room, not all of them one after another.
        #expect(server.server.counters.closed(.handshake) <= 3)
    }

    @Test("Handshakes that would exceed the memory of connections wait for their turn")
    func handshakeMemory() throws {
        let server = try TestServer.secure {
            ($0.connectionBytes, $0.slowHandshakeAge) = (500_000, .seconds(3_600))
            $0.handshakeDeadline = .milliseconds(500)
        }
        let hello = try TLSClient.clientHello()
        let clients = try server.clients(20, sending: hello)
        #expect(server.waitUntil { $0.closed(.handshake) == clients.count && $0.open == 0 })
        #expect(server.server.counters.closed(.memory) == 0)
    }

    @Test("Stopping does not wait for a handshake")
    func stopping() async throws {
        let server = try TestServer.secure()
        let client = try BlockingClient(server.address)
        #expect(server.waitUntil { $0.open == 1 })
        #expect(await server.stop() == 0)
        #expect(client.read().end != .timedOut)
    }
}
