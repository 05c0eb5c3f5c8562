import Dispatch
import Glibc
import LLTestSupport
import Testing

@testable import LLHTTP

@Suite("The memory of connections", .live)
struct ConnectionMemoryTests {
    /// A GET of 31 KB: as much as the limits of the grammar let through.
    private static let large: [UInt8] = {
        let field = "X-Filler: " + String(repeating: "a", count: 7_700) + "\r\n"
        return Array(("GET / HTTP/1.1\r\nHost: a\r\n" + String(repeating: field, count: 4) + "\r\n").utf8)
    }()

    @Test("A connection stays within its bound if each request comes with all but the last byte of the next")
    func pipelined() {
        let driver = ConnectionDriver()
        let last = Self.large.suffix(1)
        driver.send(Array(Self.large.dropLast()))
        var most = 0
        for _ in 0..<1_000 {
            driver.send(last + Self.large.dropLast())
            most = max(most, driver.connection.buffer?.content.bytes.capacity ?? 0)
        }
        #expect(driver.statuses.count == 1_000 && driver.closed == nil)
        #expect(most <= driver.host.limits.requestBytes, "\(most) bytes")
    }

    @Test("A trailer section counts as memory while it is unfinished, and no request behind it is kept with it")
    func trailers() {
        let driver = ConnectionDriver()
        let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
        func heldBesideTheBytes() -> Int? {
            driver.connection.buffer.map { $0.content.heldBytes - $0.content.bytes.capacity }
        }
        driver.send(Array((chunked + "X-A: " + String(repeating: "a", count: 4_000)).utf8))
        let unfinished = heldBesideTheBytes() ?? 0
        driver.send(Array(("\r\n\r\n" + plainGet).utf8) + Self.large + [UInt8(ascii: "G")])
        #expect(driver.statuses == [200, 200, 200])
        #expect(heldBesideTheBytes().map { $0 + 4_000 <= unfinished } == true)
    }

    @Test("A declared body takes no memory in advance, beyond one receive", arguments: [1, 1_000, 20_000, 49_000])
    func declared(count: Int) {
        let driver = ConnectionDriver()
        driver.send(Array("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 49152\r\n\r\n".utf8))
        for _ in 0..<count { driver.send([UInt8(ascii: "a")]) }
        let held = driver.connection.buffer?.content.bytes.capacity ?? 0
        // The bound adds one page for the head and one that is partly filled.
        #expect(held >= count && held <= max(count, driver.host.limits.receiveBytes) + 8_192, "\(held) bytes")
        driver.send([UInt8](repeating: UInt8(ascii: "a"), count: 49_152 - count))
        #expect(driver.statuses == [200] && driver.closed == nil)
    }

    @Test(
        "A shared body is sent whole and in order, also to a client that reads late",
        arguments: TestServer.Kind.allCases
    )
    func sharedBody(kind: TestServer.Kind) async throws {
        let server = try TestServer(kind)
        let client = try BlockingClient(server.address)
        let shared = "GET /shared HTTP/1.1\r\nHost: a\r\n\r\n"
        client.send(plainGet + shared + shared.replacing("GET", with: "HEAD") + plainGet + shared + plainGet)
        #expect(server.waitUntil { $0.requests == 2 })
        // The connection holds the body by reference, and so uses far less than the body's 8 MB.
        #expect(server.server.counters.heldBytes < 100_000)
        let end = Array("OK".utf8)
        let received = client.read { $0.count >= 2 * TestHandler.sharedBody.count && $0.suffix(2) == end[...] }.bytes
        // The rest is six heads and three small bodies.
        let rest = received.count - 2 * TestHandler.sharedBody.count
        #expect(rest > 0 && rest < 2_000, "\(rest)")
        await server.stop()
        // A worker publishes its counts once per turn, so they are complete only after the stop.
        #expect(server.server.counters.requests == 6)
    }

    @Test("If all connections together hold too much, the largest are closed and the others are served")
    func largestFirst() async throws {
        var limits = HTTPServerLimits.patient
        limits.connectionBytes = 1_000_000
        let server = try TestServer(limits: limits)
        let small = try server.clients(20, sending: Array("GET / HTTP/1.1\r\nHost: a\r\n".utf8))
        let large = try server.clients(60, sending: Array(Self.large.dropLast()))
        #expect(server.waitUntil { $0.closed(.memory) >= large.count / 2 && $0.open <= 50 })
        for client in small { #expect(client.exchange("\r\n")?.status == 200) }
        #expect(server.server.counters.heldBytes <= limits.connectionBytes)
        await server.server.stop(drainDelay: .zero, grace: .zero)
        #expect(server.server.counters.heldBytes == 0)
    }

    @Test("Unread answers stay within the bound, with any number of waiting pipelined requests")
    func unreadPipelines() throws {
        var limits = HTTPServerLimits.patient
        limits.connectionBytes = 1_000_000
        limits.pipelineBudget = 1
        // The sockets accept as many answers as there are clients, then nothing.
        let faults = FaultPlan(.send, 40..<Int.max, errorNumber: EAGAIN)
        let (isAsked, mayAnswer) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let counters = Locked<(@Sendable () -> HTTPServerCounters)?>(nil)
        // The number of connections closed for memory when the last answer was made; nil before the first answer.
        let closedBefore = Locked<UInt64?>(nil)
        // A Unix socket delivers at once. Over TCP, requests may arrive late on a busy machine, in several turns.
        let server = try TestServer(.unix, limits: limits, faults: faults) { _ in
            TestHandler(head: { exchange, _ in
                if closedBefore.withLock({ $0 }) == nil {
                    isAsked.signal()
                    mayAnswer.wait()
                }
                let closed = counters.withLock { $0 }?().closed(.memory) ?? 0
                closedBefore.withLock { $0 = closed }
                exchange.response.body = [UInt8](repeating: UInt8(ascii: "a"), count: 60_000)
                return .respond
            })
        }
        let clients = try (0..<40).map { _ in try BlockingClient(server.address) }
        #expect(server.waitUntil { $0.open == clients.count })
        counters.withLock { $0 = { [server = server.server] in server.counters } }
        clients[0].send(plainGet + plainGet)
        isAsked.wait()
        for client in clients.dropFirst() { client.send(plainGet + plainGet) }
        // The first client's request has held the worker until now, so it answers the other requests in one turn.
        mayAnswer.signal()
        #expect(server.waitUntil { $0.closed(.memory) >= 10 })
        #expect(closedBefore.withLock { $0 ?? 0 } > 0)
    }

    @Test("If all hold too much, many connections of one address close before another's larger one")
    func largestPeerFirst() throws {
        let server = try TestServer.limited { ($0.connectionBytes, $0.connections) = (1_000_000, 200) }
        let other = try BlockingClient(server.address, from: [127, 0, 0, 2])
        other.send(Array(Self.large.dropLast()))
        #expect(server.waitUntil { $0.heldBytes > Self.large.count })
        let many = try server.clients(150, sending: Array(Self.large.prefix(16_000)))
        #expect(server.waitUntil { $0.closed(.memory) >= many.count / 2 })
        other.send(Array(Self.large.suffix(1)))
        #expect(other.readResponses(1).first?.status == 200)
    }

    @Test("The answer to a key update counts as memory until the socket accepts it")
    func blockedKeyUpdate() throws {
        let identity = try TestCertificates.shared.get().good
        let context = try identity.serverContext()
        let connection = ConnectionDriver().connection
        // Nothing is read or written here.
        connection.tls = try TLSConnection(server: context, descriptor: -1)
        let idle = connection.heldBytes
        connection.tlsInterest = .outputSpace
        #expect(connection.heldBytes >= idle + 16_384)
    }
}
