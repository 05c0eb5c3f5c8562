import LLHTTP
import LLTestSupport
import Testing

@Suite("The HTTPS client sends", .live)
struct HTTPSClientSendTests {
    let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func client() -> HTTPSClient { HTTPSClient(trust: .authorities(file: certificates.authorityFile)) }

    @Test("A form, a JSON text and a request without a body arrive unchanged")
    func bodies() throws {
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { _, peer in try peer.answerAndStay("x") }
        defer { issuer.stop() }
        let client = client()
        let url = try HTTPURL(parsing: issuer.url)
        let form = HTTPSRequest.Body.form([("id_token", "a.b-c_d~"), ("x y", "1&2=ä|%")])
        _ = try client.send(HTTPSRequest(.post, url, body: form))
        _ = try client.send(HTTPSRequest(.delete, url, body: .json(Array("{}".utf8))))
        _ = try client.send(HTTPSRequest(.post, url))
        _ = try client.send(HTTPSRequest(.delete, url, headers: [(name: "authorization", value: "Bearer 1|s")]))
        let requests = issuer.requests
        #expect(requests.map { $0.line.prefix(6) } == ["POST /", "DELETE", "POST /", "DELETE"])
        #expect(requests.map { $0.value(of: "content-length") } == ["44", "2", "0", nil])
        #expect(String(decoding: requests[0].body, as: UTF8.self) == "id_token=a.b-c_d~&x%20y=1%262%3D%C3%A4%7C%25")
        #expect(requests[0].value(of: "content-type") == "application/x-www-form-urlencoded")
        #expect(requests[1].value(of: "content-type") == "application/json")
        #expect(requests[3].value(of: "authorization") == "Bearer 1|s")
        // Each request has its own connection, even if the peer would keep one open.
        #expect(requests.allSatisfy { $0.value(of: "connection") == "close" })
        #expect(issuer.connectionCount == 4)
    }

    @Test("The body of an error is read too, and no redirect is followed", arguments: ["400 Bad", "302 Found"])
    func statuses(_ status: String) throws {
        let issuer = try ScriptedIssuer { _, peer in
            try peer.answer(status: status, fields: ["Location: /elsewhere"], "reason")
        }
        defer { issuer.stop() }
        let response = try client().send(HTTPSRequest(.post, HTTPURL(parsing: issuer.url)))
        #expect("\(response.status)" == status.prefix(3))
        #expect(response.body == Array("reason".utf8))
        #expect(issuer.requestCount == 1)
    }

    @Test("A truncated answer is never requested again; if the body is not needed, the fault comes with the status")
    func cutAnswer() throws {
        let issuer = try ScriptedIssuer { _, peer in
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal")
        }
        defer { issuer.stop() }
        let request = HTTPSRequest(.get, try HTTPURL(parsing: issuer.url))
        #expect(throws: ClientError.closed) { try client().send(request) }
        #expect(issuer.requestCount == 1)
        let response = try client().send(request, needsBody: false)
        #expect(response.status == 200)
        #expect(response.bodyFault == .closed)
        #expect(response.body.isEmpty)
        issuer.setScript { _, peer in try peer.answer("whole") }
        #expect(try client().send(request, needsBody: false).body == Array("whole".utf8))
        issuer.setScript { _, peer in try peer.send("HTTP/1.1 200 OK\r\n") }
        #expect(throws: ClientError.closed) { try client().send(request, needsBody: false) }
    }

    @Test(
        "The content coding identity is accepted in any letter case, and every other is refused",
        arguments: [
            (["identity"], true), (["Identity"], true), (["IDENTITY", "identity"], true), (["gzip"], false),
            (["identity", "gzip"], false), (["identity, gzip"], false), ([""], false),
        ]
    )
    func codings(_ codings: [String], _ isTaken: Bool) throws {
        let issuer = try ScriptedIssuer { _, peer in
            try peer.answer(fields: codings.map { "Content-Encoding: \($0)" }, "x")
        }
        defer { issuer.stop() }
        let request = HTTPSRequest(.get, try HTTPURL(parsing: issuer.url))
        #expect((try? client().send(request).body) == (isTaken ? Array("x".utf8) : nil))
    }

    @Test("A pause lasts its time, and a cancelled client does not pause")
    func pause() throws {
        let client = client()
        let moment = MonotonicClock.now() + .milliseconds(20)
        try client.pause(until: moment)
        #expect(MonotonicClock.now() >= moment)
        client.cancel()
        #expect(throws: ClientError.cancelled) { try client.pause(until: .never) }
    }
}
