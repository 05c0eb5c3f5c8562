import HTTPClient
import OpenSSL
import Sockets
import TestSupport
import Testing

/// A way to end an answer, and whether the connection may carry another request after it.
struct AnswerEnding: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let text: String
    let isKept: Bool

    init(_ description: String, _ text: String, isKept: Bool = false) {
        testDescription = description
        self.text = text
        self.isKept = isKept
    }

    static let all = [
        AnswerEnding("a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", isKept: true),
        AnswerEnding(
            "chunks",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            isKept: true
        ),
        AnswerEnding("no content", "HTTP/1.1 204 No Content\r\n\r\n", isKept: true),
        AnswerEnding("an interim answer before", "HTTP/1.1 103 E\r\n\r\nHTTP/1.1 204 N\r\n\r\n", isKept: true),
        AnswerEnding("an error with its length", "HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\nno", isKept: true),
        AnswerEnding(
            "an error in chunks",
            "HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            isKept: true
        ),
        AnswerEnding("keep-alive said aloud", "HTTP/1.1 204 N\r\nConnection: keep-alive\r\n\r\n", isKept: true),
        AnswerEnding("close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"),
        AnswerEnding("close among others", "HTTP/1.1 204 N\r\nConnection: keep-alive, CLOSE\r\n\r\n"),
        AnswerEnding("close on a second line", "HTTP/1.1 204 N\r\nConnection: a\r\nConnection:\tclose\r\n\r\n"),
        AnswerEnding("HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        AnswerEnding("HTTP/1.0 keep-alive", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"),
        AnswerEnding("garbage after a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokgarbage"),
        AnswerEnding("garbage after chunks", "HTTP/1.1 200 K\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx"),
        AnswerEnding("two answers", "HTTP/1.1 204 N\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
        AnswerEnding("bytes behind no content", "HTTP/1.1 204 N\r\nContent-Length: 2\r\n\r\nok"),
    ]
}

@Suite("The HTTPS client sends")
struct HTTPSClientSendTests {
    let certificates: TestCertificates

    init() throws {
        certificates = try TestCertificates.shared.get()
    }

    private func client() -> HTTPSClient { HTTPSClient(trust: .authorities(file: certificates.authorityFile)) }

    @Test("A form, a JSON text and no body arrive as they were given")
    func bodies() throws {
        let issuer = try ScriptedIssuer(.tls(certificates.good)) { _, peer in try peer.answerAndStay("x") }
        defer { issuer.stop() }
        let client = client()
        let url = try HTTPURL(parsing: issuer.url)
        let form = HTTPSRequest.Body.form([("id_token", "a.b-c_d~"), ("x y", "1&2=ä|%")])
        _ = try client.send(HTTPSRequest(.post, url, body: form))
        _ = try client.send(HTTPSRequest(.delete, url, body: .json(Array("{}".utf8))))
        _ = try client.send(HTTPSRequest(.post, url))
        _ = try client.send(HTTPSRequest(.delete, url, headers: [.init(name: "authorization", value: "Bearer 1|s")]))
        let requests = issuer.requests
        #expect(requests.map { $0.line.prefix(6) } == ["POST /", "DELETE", "POST /", "DELETE"])
        #expect(requests.map { $0.value(of: "content-length") } == ["44", "2", "0", nil])
        #expect(String(decoding: requests[0].body, as: UTF8.self) == "id_token=a.b-c_d~&x%20y=1%262%3D%C3%A4%7C%25")
        #expect(requests[0].value(of: "content-type") == "application/x-www-form-urlencoded")
        #expect(requests[1].value(of: "content-type") == "application/json")
        #expect(requests[3].value(of: "authorization") == "Bearer 1|s")
        #expect(requests.allSatisfy { $0.value(of: "connection") == nil })
        #expect(issuer.connectionCount == 1)
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

    @Test("A connection carries another request exactly when the answer's end was clear", arguments: AnswerEnding.all)
    func reuse(_ ending: AnswerEnding) throws {
        for manner in [ScriptedIssuer.Manner.plain, .tls(certificates.good)] {
            let issuer = try ScriptedIssuer(manner) { _, peer in
                peer.keepsOpen = true
                try peer.send(ending.text)
            }
            defer { issuer.stop() }
            let client = client()
            let request = HTTPSRequest(.get, try HTTPURL(parsing: issuer.url))
            for _ in 1...3 {
                let body = try client.send(request).body
                #expect(body.count <= 2)
            }
            #expect(issuer.connectionCount == (ending.isKept ? 1 : 3))
        }
    }

    @Test("A connection that its peer closed while it was kept is not used again, not even for a POST")
    func closedWhileKept() throws {
        for manner in [ScriptedIssuer.Manner.plain, .tls(certificates.good)] {
            let issuer = try ScriptedIssuer(manner) { _, peer in try peer.answer("x") }
            defer { issuer.stop() }
            let client = client()
            let request = HTTPSRequest(.post, try HTTPURL(parsing: issuer.url))
            for _ in 1...3 {
                _ = try client.send(request)
                // The end arrives some time after the answer.
                let deadline = MonotonicClock.now() + .seconds(5)
                while client.hasQuietConnection(to: request.url), MonotonicClock.now() < deadline {}
            }
            #expect(issuer.requestCount == 3)
            #expect(issuer.connectionCount == 3)
        }
    }

    @Test(
        "A peer that closes on the second request of a connection is asked anew where that does nothing twice",
        arguments: [HTTPSRequest.Method.get, .delete, .post]
    )
    func closedUnderway(_ method: HTTPSRequest.Method) throws {
        let issuer = try ScriptedIssuer { request, peer in
            // The second request is read and never answered.
            if request.number != 2 { try peer.answerAndStay("x") }
        }
        defer { issuer.stop() }
        let client = client()
        let request = HTTPSRequest(method, try HTTPURL(parsing: issuer.url))
        _ = try client.send(request)
        if method == .post {
            #expect(throws: HTTPSClientError.connectionClosed) { try client.send(request) }
            #expect(issuer.requestCount == 2)
        } else {
            #expect(try client.send(request).status == 200)
            #expect(issuer.requestCount == 3)
        }
    }

    @Test("Once an answer has begun, its end is never asked for again")
    func cutAnswer() throws {
        let issuer = try ScriptedIssuer { request, peer in
            if request.number == 1 { return try peer.answerAndStay("x") }
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal")
        }
        defer { issuer.stop() }
        let client = client()
        let request = HTTPSRequest(.get, try HTTPURL(parsing: issuer.url))
        _ = try client.send(request)
        #expect(throws: HTTPSClientError.connectionClosed) { try client.send(request) }
        #expect(issuer.requestCount == 2)
    }

    @Test("A fresh connection that breaks is not tried twice")
    func freshFailure() throws {
        let issuer = try ScriptedIssuer { _, _ in }
        defer { issuer.stop() }
        let request = HTTPSRequest(.get, try HTTPURL(parsing: issuer.url))
        #expect(throws: HTTPSClientError.connectionClosed) { try client().send(request) }
        #expect(issuer.requestCount == 1)
    }

    @Test("Connections lead where they were opened to, are few, and end when their time is over")
    func bounds() throws {
        let first = try ScriptedIssuer { _, peer in try peer.answerAndStay("1") }
        let second = try ScriptedIssuer { _, peer in try peer.answerAndStay("2") }
        defer {
            first.stop()
            second.stop()
        }
        let client = client()
        let (one, two) = (try HTTPURL(parsing: first.url), try HTTPURL(parsing: second.url))
        for _ in 1...2 {
            #expect(try client.send(HTTPSRequest(.get, one)).body == Array("1".utf8))
            #expect(try client.send(HTTPSRequest(.get, two)).body == Array("2".utf8))
        }
        #expect(client.keptConnectionCount == 2)
        client.closeIdleConnections()
        #expect(client.keptConnectionCount == 2)
        client.closeIdleConnections(now: MonotonicClock.now() + .seconds(16))
        #expect(client.keptConnectionCount == 0)
        var limits = HTTPSClientLimits()
        limits.keptConnectionTime = .zero
        for _ in 1...2 { _ = try client.send(HTTPSRequest(.get, one), limits: limits) }
        #expect(first.connectionCount == 3)
        limits.keptConnectionCount = 0
        _ = try client.send(HTTPSRequest(.get, two), limits: limits)
        #expect(second.requests.last?.value(of: "connection") == "close")
    }

    @Test(
        "An error's body beyond the limit is cut off, however it is framed",
        arguments: ["Content-Length: 1073741824", ""]
    )
    func hugeError(_ field: String) throws {
        let issuer = try ScriptedIssuer { _, peer in
            let piece = [UInt8](repeating: 0x78, count: 65_536)
            let fields = field.isEmpty ? "" : field + "\r\n"
            try peer.repeatPiece(piece, head: "HTTP/1.1 500 X\r\n\(fields)\r\n", total: 1 << 30)
        }
        defer { issuer.stop() }
        let request = HTTPSRequest(.delete, try HTTPURL(parsing: issuer.url))
        #expect(throws: HTTPSClientError.bodyTooLarge(limit: 65_536)) { try client().send(request) }
    }

    @Test("The caller's deadline ends a call whose answer drips")
    func deadline() throws {
        let issuer = try ScriptedIssuer { _, peer in
            try peer.drip("HTTP/1.1 200 OK\r\nX: " + String(repeating: "y", count: 4096), every: .milliseconds(20))
        }
        defer { issuer.stop() }
        let request = HTTPSRequest(.get, try HTTPURL(parsing: issuer.url))
        let began = MonotonicClock.now()
        #expect(throws: HTTPSClientError.timedOut(phase: .receiving)) {
            try client().send(request, until: began + .milliseconds(200))
        }
        #expect(MonotonicClock.now().duration(since: began) < .seconds(5))
    }

    @Test("A pause lasts its time, and a cancelled client pauses no more")
    func pause() throws {
        let client = client()
        let moment = MonotonicClock.now() + .milliseconds(20)
        try client.pause(until: moment)
        #expect(MonotonicClock.now() >= moment)
        client.cancel()
        #expect(throws: HTTPSClientError.cancelled) { try client.pause(until: .never) }
    }
}
