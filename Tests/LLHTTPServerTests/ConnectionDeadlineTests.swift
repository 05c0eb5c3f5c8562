import LLTestSupport
import Testing

@testable import LLHTTP

@Suite("Deadlines of the connection engine, with a clock that the test moves")
struct ConnectionDeadlineTests {
    @Test("A silent connection is closed after the idle time, without an answer")
    func idle() {
        let driver = ConnectionDriver()
        driver.advance(by: .milliseconds(74_999))
        #expect(driver.closed == nil)
        driver.advance(by: .milliseconds(2))
        #expect(driver.closed == .idle)
        #expect(driver.received.isEmpty)
    }

    @Test("Dripping bytes do not extend the head's deadline")
    func dripHead() {
        let driver = ConnectionDriver()
        for byte in "GET / HTTP/1.1\r\nHost: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".utf8 {
            driver.send([byte])
            driver.advance(by: .milliseconds(100))
        }
        #expect(driver.statuses == [408])
        #expect(driver.responses.first?["connection"] == "close")
        #expect(driver.writeIsShut)
    }

    @Test("The body has its own deadline, from the end of the head")
    func dripBody() {
        let driver = ConnectionDriver(sending: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n")
        driver.advance(by: .seconds(4))
        driver.send("\r\n")
        for _ in 0..<49 {
            driver.advance(by: .milliseconds(100))
            driver.send("x")
        }
        #expect(driver.received.isEmpty)
        driver.advance(by: .milliseconds(200))
        #expect(driver.statuses == [408])
    }

    @Test("Empty lines alone are no request: the connection closes without an answer")
    func emptyLines() {
        let driver = ConnectionDriver(sending: "\r\n\r\n")
        driver.advance(by: .seconds(6))
        #expect(driver.received.isEmpty)
        #expect(driver.closed == .idle)
    }

    @Test("A client that reads too little is closed; a client that reads enough is waited for")
    func slowReader() {
        let single = [(Int64, Int)](repeating: (100, 1), count: 60)
        // The time that passes, in milliseconds, and the bytes that the client then reads.
        let readers: [(steps: [(Int64, Int)], closed: ConnectionCloseCause?)] = [
            ([(4_999, 0)], nil), ([(5_001, 0)], .writeStalled), (single, .writeStalled),
            ([(4_000, 4_096)] + single, .writeStalled), (Array(repeating: (4_000, 4_096), count: 4), nil),
        ]
        for (steps, closed) in readers {
            let driver = ConnectionDriver()
            driver.room = 100
            let body = String(repeating: "x", count: 16_000)
            driver.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 16000\r\n\r\n" + body)
            for (milliseconds, count) in steps where driver.closed == nil {
                driver.advance(by: .milliseconds(milliseconds))
                driver.drain(count)
            }
            #expect(driver.closed == closed)
            if closed != nil { continue }
            driver.drain(100_000)
            driver.send(plainGet)
            #expect(driver.statuses == [200, 200])
        }
    }

    @Test("Pipelined requests wait while output is blocked, and continue after that")
    func blockedPipeline() {
        let driver = ConnectionDriver()
        driver.room = 10
        driver.send(String(repeating: plainGet, count: 50))
        #expect(driver.connection.requestsServed == 32)
        #expect(driver.connection.interest == .outputSpace)
        driver.room = nil
        driver.drain(100_000)
        #expect(driver.statuses.count == 50)
    }

    @Test("After the last answer the connection waits for the peer's close, up to its limits of time and bytes")
    func linger() {
        let driver = ConnectionDriver(sending: "BAD\r\n")
        #expect(driver.statuses == [400])
        #expect(driver.closed == nil)
        driver.advance(by: .milliseconds(4_999))
        driver.send("more")
        #expect(driver.closed == nil)
        driver.advance(by: .milliseconds(2))
        #expect(driver.closed == .refused)
        let flooding = ConnectionDriver(sending: "BAD\r\n")
        flooding.send([UInt8](repeating: 0x78, count: 262_143))
        #expect(flooding.closed == nil)
        flooding.send("x")
        #expect(flooding.closed == .refused)
    }

    @Test("A parked request is answered at its deadline or when woken, even if its client has ended its side")
    func parking() {
        let park = "GET /park HTTP/1.1\r\nHost: a\r\n\r\n"
        let expiring = ConnectionDriver(sending: park + plainGet)
        #expect(expiring.received.isEmpty)
        #expect(expiring.connection.interest == .hangUp)
        expiring.advance(by: .milliseconds(599_999))
        #expect(expiring.received.isEmpty)
        expiring.advance(by: .milliseconds(2))
        #expect(expiring.responses.map(\.text) == ["expired", "OK"])
        let woken = ConnectionDriver(sending: park + plainGet)
        woken.endInput()
        #expect(woken.connection.interest == .nothing)
        woken.wake()
        #expect(woken.responses.map(\.text) == ["woken", "OK"])
        #expect(woken.closed == .client)
        woken.wake()
        #expect(woken.responses.count == 2)
    }

    @Test("A handler that parks a request again after its deadline causes a 500")
    func parkingForEver() {
        let handler = TestHandler(request: { exchange, _ in .park(until: exchange.context.now + .seconds(1)) })
        let driver = ConnectionDriver(handler: handler, sending: plainGet)
        driver.advance(by: .seconds(2))
        #expect(driver.statuses == [500])
        #expect(driver.writeIsShut)
    }

    @Test("An old connection closes with its next answer")
    func age() {
        var limits = HTTPServerLimits()
        limits.idleTimeout = .seconds(100_000)
        let driver = ConnectionDriver(limits: limits, sending: plainGet)
        driver.advance(by: .seconds(3_600))
        driver.send(plainGet)
        #expect(driver.responses.map { $0["connection"] } == [nil, "close"])
    }

    @Test("While draining, each answer closes its connection, and an idle connection has a short time left")
    func draining() {
        let busy = ConnectionDriver()
        busy.host.isDraining = true
        busy.connection.beginDrain(busy.host)
        busy.send(plainGet)
        #expect(busy.responses.first?["connection"] == "close")
        let idle = ConnectionDriver()
        idle.host.isDraining = true
        idle.connection.beginDrain(idle.host)
        idle.advance(by: .milliseconds(501))
        #expect(idle.closed == .stopped)
    }

    @Test("While draining, a client that reads its last answer late has the same short time left")
    func drainingLateReader() {
        let driver = ConnectionDriver()
        driver.room = 10
        driver.send(plainGet)
        driver.host.isDraining = true
        driver.connection.beginDrain(driver.host)
        driver.drain(100_000)
        #expect(driver.statuses == [200])
        driver.advance(by: .milliseconds(501))
        #expect(driver.closed == .stopped)
    }

    /// Moves the clock by 150 ms, then sends requests that have waited since `start`.
    private static func send(_ text: String, to driver: ConnectionDriver, since start: MonotonicInstant) {
        driver.advance(by: .milliseconds(150))
        driver.send(text, waitingSince: start)
    }

    @Test("Requests that wait too long are refused while the queue stays long; health checks never are")
    func overload() {
        let driver = ConnectionDriver()
        let start = driver.now
        Self.send(plainGet, to: driver, since: start)
        #expect(driver.statuses == [200])
        Self.send(plainGet, to: driver, since: start)
        #expect(driver.statuses == [200, 503])
        #expect(driver.responses.last?["retry-after"] == "1")
        #expect(driver.responses.last?["connection"] == nil)
        Self.send("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", to: driver, since: start)
        #expect(driver.statuses == [200, 503, 200])
        driver.host.endTurn()
        driver.host.endTurn()
        Self.send(plainGet, to: driver, since: start)
        #expect(driver.statuses == [200, 503, 200, 200])
    }

    @Test("Requests that come together have all waited as long as the first, so none jumps the queue")
    func overloadOfPipeline() {
        let driver = ConnectionDriver()
        let start = driver.now
        Self.send(plainGet, to: driver, since: start)
        Self.send(String(repeating: plainGet, count: 32), to: driver, since: start)
        #expect(driver.statuses == [200] + Array(repeating: 503, count: 32))
    }

    @Test("A connection beyond the limit gets one answer: its health check's, or 503")
    func overLimit() {
        let health = ConnectionDriver(isOverLimit: true, sending: "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n" + plainGet)
        #expect(health.statuses == [200])
        #expect(health.writeIsShut)
        let other = ConnectionDriver(isOverLimit: true, sending: plainGet + plainGet)
        #expect(other.statuses == [503])
        #expect(other.writeIsShut)
    }
}
