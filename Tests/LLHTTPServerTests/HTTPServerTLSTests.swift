import LLHTTP
import LLTestSupport
import Testing

@Suite("The server over TLS", .live)
struct HTTPServerTLSTests {
    @Test(
        "A connection serves one request after another over TLS 1.3, and ends with close_notify",
        arguments: TestServer.Kind.allCases
    )
    func keepAlive(kind: TestServer.Kind) throws {
        let server = try TestServer.secure(kind)
        let client = try TLSClient(server.address)
        #expect(client.version == "TLSv1.3")
        #expect(client.exchange(plainGet)?.text == "OK")
        #expect(client.exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")?.text == "hello")
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        let last = client.read()
        #expect(TestResponse.parseAll(last.bytes).first?.status == 200)
        #expect(last.end == .endOfStream)
        client.shutdownWrite()
        #expect(server.waitUntil { $0.closed(.finished) == 1 && $0.open == 0 })
    }

    @Test(
        "Requests sent at once, in one record or in many, are all answered in order",
        arguments: TestServer.Kind.allCases
    )
    func pipelined(kind: TestServer.Kind) throws {
        let server = try TestServer.secure(kind)
        let requests = (0..<200).map { number in
            let body = "\(number)-" + String(repeating: "x", count: number)
            return "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        }
        let whole = try TLSClient(server.address)
        whole.send(requests.joined())
        let answers = whole.readResponses(200)
        #expect(answers.map { $0.text.split(separator: "-")[0] } == (0..<200).map { "\($0)" })
        let single = try TLSClient(server.address)
        for byte in requests[3] { single.send(String(byte)) }
        #expect(single.readResponses(1).first?.text == "3-xxx")
    }

    @Test("Records larger than the receive buffer are read to their end")
    func smallBuffer() throws {
        let server = try TestServer.secure { limits in limits.receiveBytes = 100 }
        let client = try TLSClient(server.address)
        let body = String(repeating: "y", count: 10_000)
        let request = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\n\(body)"
        client.send(request + request + plainGet)
        let answers = client.readResponses(3)
        #expect(answers.map(\.body.count) == [10_000, 10_000, 2])
    }

    @Test("A client that reads late gets every byte", arguments: TestServer.Kind.allCases)
    func slowReader(kind: TestServer.Kind) throws {
        let server = try TestServer.secure(kind) {
            ($0.http.bodyBytes, $0.requestBytes, $0.waitingAnswerBytes) = (1_000_000, 2_000_000, 2_000_000)
        }
        let client = try TLSClient(server.address)
        let body = String(repeating: "z", count: 1_000_000)
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n\(body)")
        #expect(client.readResponses(1).first?.body.count == 1_000_000)
    }

    @Test("A client may end with or without close_notify", arguments: TestServer.Kind.allCases)
    func clientEnds(kind: TestServer.Kind) throws {
        let server = try TestServer.secure(kind)
        let polite = try TLSClient(server.address)
        #expect(polite.exchange(plainGet)?.status == 200)
        polite.sayClose()
        #expect(polite.read().end == .endOfStream)
        let abrupt = try TLSClient(server.address)
        #expect(abrupt.exchange(plainGet)?.status == 200)
        abrupt.shutdownWrite()
        #expect(server.waitUntil { $0.closed(.client) == 2 && $0.open == 0 })
    }

    @Test(
        "An unfinished record counts in the memory of connections; beyond its bound such connections are closed",
        arguments: [1, 5, 6, 16_000]
    )
    func recordBegun(_ byteCount: Int) throws {
        let mostBytes = 1_000_000
        let server = try TestServer.secure { limits in limits.connectionBytes = mostBytes }
        let quiet = try TLSClient(server.address)
        let others = try (0..<40).map { _ in try TLSClient(server.address) }
        var idle = 0
        // A connection may count as idle before the memory of its handshake is subtracted.
        let areIdle = server.waitUntil { counters in
            idle = counters.heldBytes
            return counters.idle == 41 && idle < 41 * 13_000
        }
        #expect(areIdle)
        others[0].beginRecord(byteCount)
        #expect(server.waitUntil { $0.heldBytes >= idle + 16_384 })
        for other in others.dropFirst() { other.beginRecord(byteCount) }
        #expect(server.waitUntil { $0.closed(.memory) > 0 })
        #expect(quiet.exchange(plainGet)?.status == 200)
        #expect(server.server.counters.heldBytes <= mostBytes)
    }

    @Test("An idle connection is closed with close_notify", arguments: TestServer.Kind.allCases)
    func idle(kind: TestServer.Kind) throws {
        let server = try TestServer.secure(kind) { limits in limits.idleTimeout = .milliseconds(50) }
        #expect(try TLSClient(server.address).read().end == .endOfStream)
        #expect(server.waitUntil { $0.closed(.idle) == 1 })
    }

    @Test("Stopping answers requests that have begun, and ends with close_notify", arguments: TestServer.Kind.allCases)
    func stopping(kind: TestServer.Kind) async throws {
        let server = try TestServer.secure(kind)
        let client = try TLSClient(server.address)
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel")
        #expect(server.waitUntil { $0.active == 1 })
        server.server.beginStop(drainDelay: .zero, grace: .seconds(600))
        client.send("lo")
        let answer = client.read()
        #expect(TestResponse.parseAll(answer.bytes).first?.text == "hello")
        #expect(answer.end == .endOfStream)
        client.shutdownWrite()
        await server.server.untilEnded()
        #expect(server.server.cutOffRequests == 0)
    }

    @Test("A new certificate serves new connections; earlier connections keep the old one")
    func exchangeOfCertificates() throws {
        let certificates = try TestCertificates.shared.get()
        let publisher = Published(try certificates.good.serverContext())
        let server = try TestServer(tls: publisher)
        let before = try TLSClient(server.address)
        publisher.publish(try certificates.untrusted.serverContext())
        #expect(throws: TLSError.self) { try TLSClient(server.address) }
        let after = try TLSClient(server.address, authorityFile: certificates.otherAuthorityFile)
        #expect(after.exchange(plainGet)?.status == 200)
        #expect(before.exchange(plainGet)?.status == 200)
        publisher.publish(try certificates.good.serverContext())
        #expect(try TLSClient(server.address).exchange(plainGet)?.status == 200)
    }
}

extension TLSClient {
    /// Sends the first bytes of an encrypted record of application data, and not the rest.
    fileprivate func beginRecord(_ byteCount: Int) {
        let record = [0x17, 3, 3, 0x40, 0x11] + [UInt8](repeating: 0x61, count: 0x4011)
        _ = Socket.send(descriptor, Array(record.prefix(byteCount)))
    }
}
