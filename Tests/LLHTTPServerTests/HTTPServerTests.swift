import LLHTTP
import LLTestSupport
import Testing

@Suite("The server on a socket", .live)
struct HTTPServerTests {
    static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    @Test("The error for a port in use names the address")
    func portInUse() async throws {
        let server = try TestServer()
        let second = HTTPServer(configuration: HTTPServerConfiguration(address: server.address, workerCount: 1)) {
            _ in TestHandler.probe()
        }
        let error = #expect(throws: SocketError.self) { try second.start() }
        #expect(error?.description == "cannot bind to \(server.address): Address already in use")
        await server.stop()
    }

    @Test("CONNECT is not implemented for any resource: 501 and a close (RFC 9110 §9.3.6, §15.6.2)")
    func connect() async throws {
        let server = try TestServer()
        let client = try BlockingClient(server.address)
        let answer = try #require(client.exchange("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"))
        #expect(answer.status == 501 && answer["connection"] == "close")
        #expect(client.read().end == .endOfStream)
        await server.stop()
    }

    @Test(
        "A client that sends the whole of a too large body still reads the refusal",
        arguments: TestServer.Kind.allCases
    )
    func lingering(kind: TestServer.Kind) async throws {
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
        await server.stop()
    }

    @Test("A client that ends its side still gets its answers", arguments: TestServer.Kind.allCases)
    func halfClose(kind: TestServer.Kind) async throws {
        let server = try TestServer(kind)
        let client = try BlockingClient(server.address)
        client.send(Self.get + "GET /park HTTP/1.1\r\nHost: a\r\n\r\n")
        client.shutdownWrite()
        #expect(server.waitUntil { $0.parked == 1 })
        server.server.wakeParked()
        #expect(client.readResponses(2).map(\.text) == ["OK", "woken"])
        #expect(client.read().end == .endOfStream)
        await server.stop()
    }
}
