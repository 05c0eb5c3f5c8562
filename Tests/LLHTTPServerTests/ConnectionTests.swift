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
        let driver = ConnectionDriver()
        driver.send(String(repeating: ConnectionDriver.get, count: count))
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
        let waiting = ConnectionDriver()
        waiting.send(head)
        #expect(waiting.statuses == [100])
        waiting.send("ok")
        #expect(waiting.statuses == [100, 200])
        let together = ConnectionDriver()
        together.send(head + "ok")
        #expect(together.statuses == [200])
        let old = ConnectionDriver()
        old.send(head.replacing("HTTP/1.1", with: "HTTP/1.0"))
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
        let driver = ConnectionDriver()
        driver.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
        let text = String(decoding: driver.received, as: UTF8.self)
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"))
        #expect(text.hasSuffix("Content-Length: 2\r\n\r\n"))
    }

    @Test("An HTTP/1.0 connection closes unless the client asks to keep it")
    func oldVersion() {
        let closing = ConnectionDriver()
        closing.send("GET / HTTP/1.0\r\n\r\n" + ConnectionDriver.get)
        #expect(closing.statuses == [200])
        #expect(closing.responses.first?["connection"] == "close")
        #expect(closing.writeIsShut)
        let persistent = ConnectionDriver()
        persistent.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + ConnectionDriver.get)
        #expect(persistent.statuses == [200, 200])
        #expect(persistent.responses.first?["connection"] == "keep-alive")
        #expect(persistent.closed == nil)
    }

    @Test("The body of a request answered from its head is dropped, and the next request is served")
    func discarding() {
        let driver = ConnectionDriver()
        driver.send("DELETE / HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n")
        #expect(driver.statuses == [405])
        driver.send(String(repeating: "x", count: 30_000) + ConnectionDriver.get)
        #expect(driver.statuses == [405, 200])
        driver.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab")
        driver.send("cde\r\n0\r\n\r\n" + ConnectionDriver.get)
        #expect(driver.statuses == [405, 200, 405, 200])
        #expect(driver.closed == nil)
    }

    @Test("A body too long to be dropped closes the connection after the answer")
    func discardingTooMuch() {
        let driver = ConnectionDriver()
        driver.send("DELETE / HTTP/1.1\r\nHost: a\r\nContent-Length: 65537\r\n\r\n")
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
        let declared = ConnectionDriver()
        declared.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 49153\r\n\r\n")
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
        let driver = ConnectionDriver()
        driver.send(ConnectionDriver.get + ConnectionDriver.get)
        driver.endInput()
        #expect(driver.statuses == [200, 200])
        #expect(driver.closed == .client)
        let parked = ConnectionDriver()
        parked.send("GET /park HTTP/1.1\r\nHost: a\r\n\r\n" + ConnectionDriver.get + "GET /incompl")
        parked.endInput()
        parked.wake()
        #expect(parked.responses.map(\.text) == ["woken", "OK"])
        #expect(parked.closed == .disconnected)
        let incomplete = ConnectionDriver()
        incomplete.send("GET / HT")
        incomplete.endInput()
        #expect(incomplete.received.isEmpty)
        #expect(incomplete.closed == .disconnected)
    }

    @Test("The connection closes after its number of requests")
    func requestLimit() {
        var limits = HTTPServerLimits()
        limits.requestsPerConnection = 3
        let driver = ConnectionDriver(limits: limits)
        driver.send(String(repeating: ConnectionDriver.get, count: 5))
        #expect(driver.statuses == [200, 200, 200])
        #expect(driver.responses.map { $0["connection"] } == [nil, nil, "close"])
    }

    @Test("After a refusal nothing further is read as a request")
    func refusal() {
        let driver = ConnectionDriver()
        driver.send(
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n" + ConnectionDriver.get
        )
        #expect(driver.statuses == [400])
        driver.send(ConnectionDriver.get)
        #expect(driver.statuses == [400])
        driver.endInput()
        #expect(driver.closed == .refused)
    }
}
