import LLTestSupport
import Testing

@testable import LLHTTP

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
