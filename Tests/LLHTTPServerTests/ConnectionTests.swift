import LLTestSupport
import Testing

@testable import LLHTTP

@Suite("The connection machine")
struct ConnectionTests {
    @Test("Requests in one piece are answered in order")
    func pipelining() {
        let driver = ConnectionDriver()
        driver.send(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n1"
                + "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n2\r\n0\r\n\r\n"
                + "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n3"
        )
        #expect(driver.responses.map(\.text) == ["1", "2", "3"])
        #expect(driver.closed == nil)
        #expect(driver.connection.phase == .idle)
        #expect(!driver.connection.hasBufferedInput)
    }

    @Test("A long pipeline is answered completely, in several turns", arguments: [1, 31, 32, 33, 64, 200])
    func longPipeline(count: Int) {
        let driver = ConnectionDriver(sending: String(repeating: plainGet, count: count))
        #expect(driver.statuses == Array(repeating: 200, count: count))
        #expect(driver.connection.requestsServed == count)
    }

    @Test("A request in single bytes is answered once, when it is complete")
    func singleBytes() {
        let driver = ConnectionDriver()
        let request = Array(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n"
                .utf8
        )
        for (index, byte) in request.enumerated() {
            #expect(driver.received.isEmpty, "before byte \(index)")
            driver.send([byte])
        }
        #expect(driver.responses.map(\.text) == ["abcde"])
        #expect(!driver.connection.hasBufferedInput)
    }

    @Test("100 Continue is sent only if the body is not there yet")
    func expectContinue() {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        let waiting = ConnectionDriver(sending: head)
        #expect(waiting.statuses == [100])
        waiting.send("ok")
        #expect(waiting.statuses == [100, 200])
        let together = ConnectionDriver(sending: head + "ok")
        #expect(together.statuses == [200])
        let old = ConnectionDriver(sending: head.replacing("HTTP/1.1", with: "HTTP/1.0"))
        #expect(old.statuses == [])
    }

    @Test("A refusal instead of 100 Continue closes, since the client may or may not send the body")
    func expectContinueRefused() {
        let driver = ConnectionDriver()
        driver.send("DELETE / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        #expect(driver.statuses == [405])
        #expect(driver.responses.first?["connection"] == "close")
        #expect(driver.writeIsShut)
    }

    @Test("The answer to HEAD has the fields of GET and no content")
    func head() {
        let driver = ConnectionDriver(sending: "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
        let text = String(decoding: driver.received, as: UTF8.self)
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"))
        #expect(text.hasSuffix("Content-Length: 2\r\n\r\n"))
    }

    @Test("An HTTP/1.0 connection closes unless the client asks to keep it")
    func oldVersion() {
        let closing = ConnectionDriver(sending: "GET / HTTP/1.0\r\n\r\n" + plainGet)
        #expect(closing.statuses == [200])
        #expect(closing.responses.first?["connection"] == "close")
        #expect(closing.writeIsShut)
        let persistent = ConnectionDriver(sending: "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + plainGet)
        #expect(persistent.statuses == [200, 200])
        #expect(persistent.responses.first?["connection"] == "keep-alive")
        #expect(persistent.closed == nil)
    }

    @Test("The body of a request answered from its head is dropped, and the next request is served")
    func discarding() {
        let driver = ConnectionDriver(sending: "DELETE / HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n")
        #expect(driver.statuses == [405])
        driver.send(String(repeating: "x", count: 30_000) + plainGet)
        #expect(driver.statuses == [405, 200])
        driver.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab")
        driver.send("cde\r\n0\r\n\r\n" + plainGet)
        #expect(driver.statuses == [405, 200, 405, 200])
        #expect(driver.closed == nil)
    }

    @Test("A body too long to be dropped closes the connection after the answer")
    func discardingTooMuch() {
        let driver = ConnectionDriver(sending: "DELETE / HTTP/1.1\r\nHost: a\r\nContent-Length: 65537\r\n\r\n")
        #expect(driver.responses.first?["connection"] == "close")
        #expect(driver.writeIsShut)
        let chunked = ConnectionDriver()
        chunked.send("DELETE / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n")
        #expect(chunked.statuses == [405])
        #expect(chunked.writeIsShut)
        #expect(chunked.connection.phase == .lingering)
    }

    @Test("A body beyond the limit is 413, whether its length is declared or not")
    func bodyTooLarge() {
        let declared = ConnectionDriver(sending: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 49153\r\n\r\n")
        #expect(declared.statuses == [413])
        let chunked = ConnectionDriver()
        chunked.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nc000\r\n")
        chunked.send(String(repeating: "x", count: 49_152))
        #expect(chunked.statuses == [])
        chunked.send("\r\n1\r\n")
        #expect(chunked.statuses == [413])
        #expect(chunked.writeIsShut)
    }

    @Test("A client that ended its side still gets the answers to its complete requests")
    func halfClose() {
        let driver = ConnectionDriver(sending: plainGet + plainGet)
        driver.endInput()
        #expect(driver.statuses == [200, 200])
        #expect(driver.closed == .client)
        let parked = ConnectionDriver(sending: "GET /park HTTP/1.1\r\nHost: a\r\n\r\n" + plainGet + "GET /incompl")
        parked.endInput()
        parked.wake()
        #expect(parked.responses.map(\.text) == ["woken", "OK"])
        #expect(parked.closed == .disconnected)
        let incomplete = ConnectionDriver(sending: "GET / HT")
        incomplete.endInput()
        #expect(incomplete.received.isEmpty)
        #expect(incomplete.closed == .disconnected)
    }

    @Test("The connection closes after its number of requests")
    func requestLimit() {
        var limits = HTTPServerLimits()
        limits.requestsPerConnection = 3
        let driver = ConnectionDriver(limits: limits, sending: String(repeating: plainGet, count: 5))
        #expect(driver.statuses == [200, 200, 200])
        #expect(driver.responses.map { $0["connection"] } == [nil, nil, "close"])
    }

    @Test("After a refusal nothing further is read as a request")
    func refusal() {
        let driver = ConnectionDriver()
        driver.send("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n" + plainGet)
        #expect(driver.statuses == [400])
        driver.send(plainGet)
        #expect(driver.statuses == [400])
        driver.endInput()
        #expect(driver.closed == .refused)
    }
}

@Suite("Requests judged by their head alone")
struct IgnoredBodyTests {
    private static let get = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n"

    /// Answers from the head alone, with the number of body bytes it received.
    private func makeHandler(parks: Bool = false) -> TestHandler {
        TestHandler(head: { _, _ in .ignoreBody }) { exchange, _ in
            if parks, exchange.context.visit == .first { return .park(until: exchange.context.now + .seconds(1)) }
            exchange.response.body = Array("\(exchange.body.count) bytes".utf8)
            return .respond
        }
    }

    @Test(
        "The server does not wait for a declared body, and reads nothing after the head as a request",
        arguments: [
            "Content-Length: 10\r\n\r\n", "Content-Length: 10\r\n\r\n0123456789" + get,
            "Content-Length: 40\r\n\r\n" + get, "Transfer-Encoding: chunked\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + get, "Content-Length: 99999999\r\n\r\n",
            "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n",
        ]
    )
    func declaredBody(rest: String) {
        for method in ["GET", "POST", "BREW"] {
            let driver = ConnectionDriver(handler: makeHandler())
            driver.send("\(method) /auth HTTP/1.1\r\nHost: a\r\n\(rest)")
            #expect(driver.statuses == [200])
            #expect(driver.responses.first?["connection"] == "close")
            #expect(driver.responses.first?.text == "0 bytes")
            #expect(driver.writeIsShut)
        }
    }

    @Test("Without a body the connection stays open", arguments: ["", "Content-Length: 0\r\n"])
    func noBody(field: String) {
        let driver = ConnectionDriver(handler: makeHandler())
        driver.send("POST /auth HTTP/1.1\r\nHost: a\r\n\(field)\r\n" + Self.get)
        #expect(driver.statuses == [200, 200])
        #expect(!driver.writeIsShut)
        #expect(driver.connection.phase == .idle)
    }

    @Test("A parked request is answered when woken, and its connection closes if a body was declared")
    func parked() {
        for (rest, closes) in [("\r\n", false), ("Content-Length: 10\r\n\r\n01234", true)] {
            let driver = ConnectionDriver(handler: makeHandler(parks: true))
            driver.send("POST /auth HTTP/1.1\r\nHost: a\r\n\(rest)")
            #expect(driver.statuses == [])
            #expect(driver.connection.phase == .parked)
            driver.wake()
            #expect(driver.statuses == [200])
            #expect(driver.writeIsShut == closes)
        }
    }
}
