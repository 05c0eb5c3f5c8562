import HTTP1
import HTTPServer
import Sockets
import TestSupport
import Testing

@Suite("The server on a socket", .live)
struct HTTPServerTests {
    @Test("A request is answered, and the connection serves the next one", arguments: TestServer.Kind.allCases)
    func keepAlive(kind: TestServer.Kind) async throws {
        let server = try TestServer(kind)
        let client = try BlockingClient(server.address)
        let first = try #require(client.exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
        #expect(first.status == 200)
        #expect(first.text == "OK")
        #expect(first["date"]?.utf8.count == 29)
        #expect(first["connection"] == nil)
        let second = try #require(
            client.exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
        )
        #expect(second.text == "hello")
        await server.stop()
    }

    @Test("A port in use is told with the address")
    func portInUse() async throws {
        let server = try TestServer()
        let second = HTTPServer(configuration: HTTPServerConfiguration(addresses: [server.address], workerCount: 1)) {
            _ in ProbeHandler()
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
        #expect(answer.status == 501)
        #expect(answer["connection"] == "close")
        #expect(client.read().end == .endOfStream)
        await server.stop()
    }

    @Test("A parked request is answered when woken", arguments: TestServer.Kind.allCases)
    func park(kind: TestServer.Kind) async throws {
        let server = try TestServer(kind)
        let client = try BlockingClient(server.address)
        client.send("GET /park HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(server.waitUntil { $0.parked == 1 })
        server.server.wakeParked()
        #expect(client.readResponses(1).first?.text == "woken")
        await server.stop()
    }
}
