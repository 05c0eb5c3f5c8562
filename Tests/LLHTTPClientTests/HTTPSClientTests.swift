import Foundation
import LLHTTP
import LLTestSupport
import Testing

@Suite("The HTTPS client fetches", .live)
struct HTTPSClientTests {
    let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    @Test("A body with its length arrives whole over TLS, and the request is exact")
    func length() throws {
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { _, peer in
            try peer.answer(fields: ["ETag: \"a\"", "X-Twice: 1", "x-twice: 2"], "{\"keys\":[]}")
        }
        defer { issuer.stop() }
        let headers = [(name: "if-none-match", value: "\"b\"")]
        let response = try client().get(HTTPURL(parsing: issuer.url), headers: headers)
        #expect(response.status == 200)
        #expect(response.body == Array("{\"keys\":[]}".utf8))
        #expect(response.value(of: "etag") == "\"a\"")
        #expect(response.value(of: "x-twice") == "1, 2")
        let request = try #require(issuer.requests.first)
        #expect(request.line == "GET /keys HTTP/1.1")
        #expect(request.value(of: "host") == "localhost:\(issuer.port)")
        #expect(request.value(of: "if-none-match") == "\"b\"")
        #expect(request.value(of: "connection") == "close")
    }

    @Test(
        "Every framing yields the same body",
        arguments: [
            "Content-Length: 5\r\n\r\nhello",
            "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nX-Trailer: 1\r\n\r\n",
            "Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "\r\nhello",
        ]
    )
    func framings(_ rest: String) throws {
        for manner in [ScriptedIssuer.Manner.plain, .tls(certificates.good)] {
            let issuer = try ScriptedIssuer(manner) { _, peer in try peer.send("HTTP/1.1 200 OK\r\n" + rest) }
            defer { issuer.stop() }
            let response = try client().get(HTTPURL(parsing: issuer.url))
            #expect(response.body == Array("hello".utf8))
        }
    }

    @Test("An answer without a body ends at its head", arguments: ["304 Not Modified", "204 No Content", "500 Oops"])
    func bodiless(_ status: String) throws {
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { _, peer in
            try peer.send("HTTP/1.1 \(status)\r\nContent-Length: 1000000000\r\nETag: \"a\"\r\n\r\n")
            peer.waitUntilClosed()
        }
        defer { issuer.stop() }
        let response = try client().get(HTTPURL(parsing: issuer.url))
        #expect(response.status == Int(status.prefix(3)))
        #expect(response.body.isEmpty)
    }

    @Test("IPv6 and address literals are reached and verified by address")
    func ipv6() throws {
        let issuer = try ScriptedIssuer(.tls(certificates.good), ipv6: true) { _, peer in try peer.answer("x") }
        defer { issuer.stop() }
        let response = try client().get(HTTPURL(parsing: "https://[::1]:\(issuer.port)/"))
        #expect(response.body == Array("x".utf8))
        #expect(issuer.requests.first?.value(of: "host") == "[::1]:\(issuer.port)")
    }

    @Test("A name's addresses are tried until one accepts; one that never answers costs its head start alone")
    func silentAddress() throws {
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { _, peer in try peer.answer("x") }
        defer { issuer.stop() }
        let full = try FullListener(port: issuer.port)
        // Nothing listens on ::1 or 127.0.0.2 at this port.
        let others = ["::1", "127.0.0.2"].compactMap { SocketAddress(host: $0) }
        let addresses = others + [full.address.with(port: 0), .loopback(port: 0)]
        let client = HTTPSClient(trust: trust, proxy: .none, names: NameResolver { _ in .success(addresses) })
        var limits = HTTPSClientLimits()
        limits.connectTime = .seconds(300)
        limits.fetchTimeout = .seconds(600)
        let began = MonotonicClock.now()
        let response = try client.get(HTTPURL(parsing: "https://issuer.test:\(issuer.port)/"), limits: limits)
        #expect(response.body == Array("x".utf8))
        #expect(MonotonicClock.now().duration(since: began) < .seconds(60))
    }

    var trust: TLSContext.Trust { .authorities(file: certificates.authorityFile) }

    @Test("Concurrent connections share the trust store, and a later one reads it again")
    func trustStore() throws {
        let folder = try ShortFolder()
        let file = "\(folder.path)/authority.pem"
        let authority = try FileContents.read(path: certificates.authorityFile, limit: 65_536)
        try Data(authority).write(to: URL(filePath: file))
        let client = HTTPSClient(trust: .authorities(file: file))
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { request, peer in
            guard request.number == 1 else { return try peer.answer("inner") }
            try FileManager.default.removeItem(atPath: file)
            let inner = try client.get(HTTPURL(parsing: "https://\(request.value(of: "host") ?? "")/"))
            try peer.answer(inner.body)
        }
        defer { issuer.stop() }
        let url = try HTTPURL(parsing: issuer.url)
        #expect(try client.get(url).body == Array("inner".utf8))
        let error = #expect(throws: ClientError.self) { try client.get(url) }
        #expect("\(String(describing: error))".contains("the trusted authorities"))
    }

    func client() -> HTTPSClient { HTTPSClient(trust: trust) }
}
